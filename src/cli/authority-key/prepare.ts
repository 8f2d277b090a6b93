/** `mesh-na authority-key prepare`: creates the next key, and a request for the offline root key to sign. */

import type { Command } from 'commander';
import type { Signer } from '../../base/crypto/primitives.ts';
import { DAY_MS } from '../../base/duration.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant, parseRequestDatetime } from '../../base/timestamp.ts';
import { CHAIN_TOOLS } from '../../client/followed-keys.ts';
import { portableSha256 } from '../../client/sha256.ts';
import { followChain, receivedChain } from '../../protocol/records/authority-chain.ts';
import {
  type AuthoritySuccession,
  MAX_SUCCESSIONS,
  type SuccessionTerms,
  successionDigest,
} from '../../protocol/records/authority-succession.ts';
import { type GenesisBlock, genesisDigest } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { buildSuccessionRequest } from '../../protocol/records/succession-request.ts';
import { DATA_DIR, define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { notHolding, readJsonFile, saveFile } from '../kernel/files.ts';
import { duration, timeAgo, timeAhead, wholeNumber } from '../kernel/options.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import type { NextKey } from './next-key.ts';

const NOTICE_MS = 7 * DAY_MS;
const OVERLAP_MS = 14 * DAY_MS;
/** Ten years. */
const MOST_DAYS = 3650;

const PREPARE = [
  DATA_DIR,
  option(
    '--na-private-key <file>',
    "authority's key file, if a signer or another folder has it; the next key goes next to it",
  ),
  option('--out <file>', 'write the request to this file', { required: true }),
  option(
    '--activate-at <time>',
    'when the next key takes over (default: in 7d; with --compromise now)',
    { parse: timeAhead },
  ),
  option('--overlap <length>', 'how long the old key keeps signing as well (default: 14d)', {
    parse: duration,
  }),
  option('--compromise', 'the key was stolen: no overlap and no rollback', {
    conflicts: 'overlap',
  }),
  option(
    '--distrusted-from <time>',
    'with --compromise: reject what the old key signed from this time on',
    { parse: timeAgo },
  ),
  option('--days <number>', 'days for which the root key delegates to the next key', {
    parse: wholeNumber(MOST_DAYS),
    fallback: 365,
  }),
  option('--authority-keys <file>', 'earlier statements, if the key was replaced before'),
] as const;

type PrepareOptions = OptionsIn<typeof PREPARE> & OutputOptions;

export function addPrepareCommand(authorityKey: Command): void {
  define(authorityKey, 'prepare', {
    about: 'create the next key unless it exists, and a request for the root key to sign',
    options: PREPARE,
    examples: [
      'mesh-na authority-key prepare --out request.json',
      'mesh-na authority-key prepare --activate-at 2026-12-01T08:00:00Z --overlap 30d --out request.json',
      'mesh-na authority-key prepare --compromise --distrusted-from 2d --out request.json',
    ],
    run: runPrepare,
  });
}

async function runPrepare(options: PrepareOptions): Promise<void> {
  const { dataDir, out, days } = options;
  const now = systemRuntime.now();
  const times = timesOf(options, now);
  if (times.activates + days * DAY_MS <= times.overlapEnd) {
    throw usageFailure(
      '--days must be longer than --overlap: the next key still needs a delegation afterward',
    );
  }
  const { currentAuthority, nextKey } = await import('./next-key.ts');
  const { genesis, signer, keyFile } = onLocalFiles(() =>
    currentAuthority(dataDir, options.naPrivateKey),
  );
  const successions = await earlierSuccessions(options.authorityKeys, genesis, now);
  assertLater(times.activates, genesis, successions);
  const next = onLocalFiles(() => nextKey(keyFile, () => systemRuntime.randomBytes(32)));
  assertUnused(next, { genesis, successions, now });
  const terms = termsOf({ genesis, successions, times, to: next.signer, now });
  const request = buildSuccessionRequest(
    {
      genesis,
      successions,
      terms,
      rollBackTerms: terms.kind === 'planned' ? rollBackOf : null,
      valid_to: formatInstant(times.activates + days * DAY_MS),
    },
    { from: signer, to: next.signer },
    { sha256: portableSha256 },
  );
  const text = `${JSON.stringify(request, null, 2)}\n`;
  onLocalFiles(() => saveFile(out, text, { isSecret: false, overwrites: false }));
  const { to_key, activates_at, overlap_until, distrusted_from } = terms;
  const result = {
    request_file: out,
    next_key_file: next.file,
    is_new_key: next.isNew,
    ...changeIn(terms),
    valid_to: request.valid_to,
  };
  printResult(options, result, [
    `Saved the request to replace the key of "${genesis.network_name}" to ${out}; nothing has changed yet.`,
    '',
    `  next key       ${to_key}`,
    `  in             ${next.file}${next.isNew ? '' : ' (already existed)'}`,
    `  takes over     ${activates_at}`,
    distrusted_from === null
      ? `  both sign      until ${overlap_until}`
      : `  old key        distrusted from ${distrusted_from}`,
    '',
    'On the machine with the root key, run:',
    `  mesh-na authority-key sign --root-key root.key --request ${out} --out succession.json`,
  ]);
}

/** Which key replaces which, and when. */
export function changeIn(terms: SuccessionTerms) {
  const { kind, from_key, to_key, activates_at, overlap_until, distrusted_from } = terms;
  return { kind, from_key, to_key, activates_at, overlap_until, distrusted_from };
}

type Times = ReturnType<typeof timesOf>;

/** `distrustedFrom` is null for a planned succession. */
function timesOf(options: PrepareOptions, now: number) {
  const { compromise = false, distrustedFrom, activateAt, overlap = OVERLAP_MS } = options;
  if (compromise !== (distrustedFrom !== undefined)) {
    throw usageFailure(
      '--compromise needs --distrusted-from, and vice versa: give the time from which the old key is distrusted',
    );
  }
  const given = activateAt === undefined ? null : parseRequestDatetime(activateAt);
  const activates = given?.instant ?? (compromise ? now : now + NOTICE_MS);
  if (activates < now) throw usageFailure('--activate-at has passed; give a time in the future');
  if (distrustedFrom === undefined) {
    return { activates, overlapEnd: activates + overlap, distrustedFrom: null };
  }
  const from = parseRequestDatetime(distrustedFrom);
  if (from === null || from.instant > activates) {
    throw usageFailure(
      '--distrusted-from must not be later than the time when the next key takes over',
    );
  }
  return { activates, overlapEnd: activates, distrustedFrom: from.text };
}

/** Returns the earlier statements, verified up to the current key of the genesis block. */
async function earlierSuccessions(
  file: string | undefined,
  genesis: GenesisBlock,
  now: number,
): Promise<readonly AuthoritySuccession[]> {
  if (file === undefined) return [];
  const received = receivedChain(await readJsonFile(file));
  if (received === null) throw notHolding(file, 'the statements of a chain of authority keys');
  const { network_name: networkName, root_public_key: rootKey, network_authority } = genesis;
  const verdict = followChain({ networkName, trusted: { rootKey } }, received, now, CHAIN_TOOLS);
  if (verdict.refusal !== null) {
    const { reason, message } = verdict.refusal;
    throw failure(EXIT.unusable, reason, `${file} is rejected: ${message}`);
  }
  // Unless the genesis block shows it, a staged statement has not changed the key: another one may take its place.
  const isShown = verdict.successions.at(-1)?.to_key === network_authority.public_key;
  const successions = isShown ? verdict.successions : verdict.inForce;
  const last = successions.at(-1);
  const current = last?.to_key ?? network_authority.public_key;
  if (current !== network_authority.public_key) {
    if (last?.from_key === network_authority.public_key) assertOverlapEnded(last, now);
    const message = `${file} leads to the key ${current}, but the genesis block names ${network_authority.public_key}: use the newest version of both`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  if (successions.length + 2 <= MAX_SUCCESSIONS) return successions;
  const message = `The key was already replaced ${MAX_SUCCESSIONS} times, which is the limit: create a new network`;
  throw failure(EXIT.unusable, 'too_long', message);
}

/** Nodes accept a genesis block only if its delegation begins later than the one they have. */
function assertLater(
  activates: number,
  { network_authority: { valid_from } }: GenesisBlock,
  successions: readonly AuthoritySuccession[],
): void {
  const last = successions.at(-1)?.activates_at ?? valid_from;
  const earliest = [valid_from, last].find((time) => activates <= instantOf(time));
  if (earliest === undefined) return;
  throw usageFailure(
    `--activate-at must be later than ${earliest}, when the current key took over`,
  );
}

/** The file of the next key holds one of the two keys that sign, so there is no place for a third one. */
function assertOverlapEnded({ overlap_until }: AuthoritySuccession, now: number): void {
  if (instantOf(overlap_until) <= now) return;
  const message = `Both keys of the last change sign until ${overlap_until}: prepare the next change after that, or end the overlap now with mesh-na authority-key finish`;
  throw failure(EXIT.refused, 'overlap_not_ended', message);
}

function assertUnused(
  { file, signer: { publicKey } }: NextKey,
  {
    genesis: { root_public_key, network_authority },
    successions,
    now,
  }: Omit<Draft, 'times' | 'to'>,
): void {
  const used = successions.flatMap(({ from_key, to_key }) => [from_key, to_key]);
  if (![root_public_key, network_authority.public_key, ...used].includes(publicKey)) return;
  const last = successions.at(-1);
  if (last !== undefined && used.includes(publicKey)) assertOverlapEnded(last, now);
  const message = `${file} contains a key that the network has used before: move the file away to get a new key`;
  throw failure(EXIT.unusable, 'key_used_before', message);
}

interface Draft {
  readonly genesis: GenesisBlock;
  readonly successions: readonly AuthoritySuccession[];
  readonly times: Times;
  readonly to: Signer;
  readonly now: number;
}

function termsOf({ genesis, successions, times, to, now }: Draft): SuccessionTerms {
  const previous = successions.at(-1);
  return {
    succession_id: systemRuntime.uuid(),
    network_name: genesis.network_name,
    root_public_key: genesis.root_public_key,
    sequence: successions.length + 1,
    previous_digest:
      previous === undefined
        ? genesisDigest(genesis, portableSha256)
        : successionDigest(previous, portableSha256),
    kind: times.distrustedFrom === null ? 'planned' : 'compromise',
    from_key: genesis.network_authority.public_key,
    to_key: to.publicKey,
    issued_at: formatInstant(now),
    activates_at: formatInstant(times.activates),
    overlap_until: formatInstant(times.overlapEnd),
    distrusted_from: times.distrustedFrom,
  };
}

function rollBackOf(statement: AuthoritySuccession): SuccessionTerms {
  const { proof_of_possession: _, signatures: __, ...terms } = statement;
  return {
    ...terms,
    succession_id: systemRuntime.uuid(),
    sequence: terms.sequence + 1,
    previous_digest: successionDigest(statement, portableSha256),
    kind: 'roll_back',
    from_key: terms.to_key,
    to_key: terms.from_key,
  };
}
