/** `mesh-na treaty follow`: replaces a treaty after its subject has replaced its authority key. */
import type { Command } from 'commander';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import { readPublicKey } from '../base/keys/public-key.ts';
import { systemRuntime } from '../base/runtime.ts';
import { verifyText } from '../client/keys.ts';
import type { PublicClient } from '../client/public-client.ts';
import { portableSha256 } from '../client/sha256.ts';
import {
  type FollowedChain,
  keysInForce,
  NO_CHAIN,
  receivedChain,
} from '../protocol/records/authority-chain.ts';
import type { RecognitionTreaty } from '../protocol/records/recognition-treaty.ts';
import { instantOf } from '../protocol/records/record.ts';
import { acceptedKeys, followForTreaty, rootKeyIn } from '../protocol/records/treaty-chain.ts';
import type { TreatyRow } from '../protocol/rows/treaty.ts';
import { isConfirmed, isTerminal } from './confirm.ts';
import { fromNow } from './duration.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from './exit-codes.ts';
import { notHolding, readJsonFile } from './json-file.ts';
import { type ReadingBounds, readJsonUrl } from './json-url.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { isPublicKey } from './options.ts';
import { printNote } from './output.ts';
import { addOutOption, type RecordOptions, showRecord } from './record-output.ts';
import { publicClient } from './server.ts';
import { treatyPages, wholeTreatyId } from './treaty-pages.ts';

interface FollowOptions extends OperatorOptions, RecordOptions {
  readonly keys: string;
  readonly rootKey?: string;
  readonly yes?: boolean;
}

/** The longest chain has about 400 kB. */
const CHAIN_BOUNDS: ReadingBounds = {
  longestMs: 30_000,
  mostBytes: 2 * 1024 * 1024,
  mostValues: 65_536,
};

export function addFollowCommand(treaty: Command): void {
  const follow = treaty
    .command('follow')
    .description('replace a treaty after its subject has replaced its authority key (privileged)')
    .argument('<treaty-id>', 'treaty id, or at least its first 8 characters')
    .requiredOption(
      '--keys <place>',
      "what /authority-keys of the subject answers: a file, - for standard input, or its URL, for which the system's CA certificates are trusted",
    )
    .option(
      '--root-key <key>',
      'root key of the subject, or a file with its public key (default: the one that the treaty names)',
    )
    .option('--yes', 'replace the treaty without asking; required when not on a terminal')
    .action(runFollow);
  addOperatorOptions(addOutOption(follow, 'the new treaty'), [
    'mesh-na treaty follow 7d0f6e0c --keys https://na.beta.example/authority-keys',
    'mesh-na treaty follow 7d0f6e0c --keys keys.json --root-key "$BETA_ROOT_KEY" --yes',
  ]);
}

async function runFollow(given: string, options: FollowOptions): Promise<void> {
  const { keys, yes = false } = options;
  const rootKey = rootKeyOf(options);
  const client = publicClient(options);
  const row = await client.treaty(await wholeTreatyId(client, given));
  const document = await readChain(keys);
  const now = systemRuntime.now();
  const changes = changesOf(row, { document, keys, rootKey, now });
  // Without changes, the authority says why there are none.
  if (changes !== null && !yes) await assertConfirmed(changes);
  const treaty = await operatorClient(options).followTreaty(row.treaty.treaty_id, {
    authority_keys: document,
    ...(rootKey !== null && { root_public_key: rootKey }),
  });
  const made = `Treaty ${treaty.treaty_id} replaces treaty ${row.treaty.treaty_id}`;
  showRecord(options, treaty, made, yes && changes !== null ? ['', ...changes] : []);
  if (!options.json) await noteOthers(client, row.treaty, treaty);
}

/** Each treaty is followed on its own, so another one with the subject may still name a key that was removed. */
async function noteOthers(
  client: PublicClient,
  { subject_public_keys: before, subject_sovereign_id }: RecognitionTreaty,
  { subject_public_keys: after }: RecognitionTreaty,
): Promise<void> {
  const removed = before.filter((key) => !after.includes(key));
  if (removed.length === 0) return;
  for await (const rows of treatyPages(client, { subject_sovereign_id, status: 'active' })) {
    for (const { treaty, lifecycle } of rows) {
      const namesRemoved = treaty.subject_public_keys.some((key) => removed.includes(key));
      if (!namesRemoved || lifecycle.state === 'expired') continue;
      printNote(`Treaty ${treaty.treaty_id} still names a removed key: follow it, too.`);
    }
  }
}

function rootKeyOf({ rootKey }: FollowOptions): string | null {
  if (rootKey === undefined) return null;
  if (isPublicKey(rootKey)) return rootKey;
  return onLocalFiles(() => readPublicKey(rootKey)).toString('base64');
}

async function readChain(place: string): Promise<JsonObject> {
  const isUrl = /^https?:/.test(place);
  const value = isUrl
    ? await readJsonUrl(place, undefined, CHAIN_BOUNDS)
    : await readJsonFile(place);
  if (isJsonObject(value) && receivedChain(value) !== null) return value;
  throw notHolding(place, 'a chain of authority keys: give what /authority-keys answers');
}

interface Offer {
  readonly document: JsonObject;
  /** Where the document came from. */
  readonly keys: string;
  readonly rootKey: string | null;
  readonly now: number;
}

/** What following changes, as lines; null if nothing, as far as can be seen from here. */
function changesOf(row: TreatyRow, { document, keys, rootKey, now }: Offer): string[] | null {
  const { treaty, lifecycle, followed } = row;
  if (lifecycle.state !== 'active' && lifecycle.state !== 'expiring_soon') return null;
  const { subject_sovereign_id: subject, subject_public_keys: subjectKeys } = treaty;
  const named = rootKeyIn(treaty.metadata);
  // The statements that the treaty has followed are known only to the authority, which checks them.
  const pin = { subject, subjectKeys, rootKey: named, followed: [] };
  const tools = { verify: verifyText, sha256: portableSha256 };
  const chain = followForTreaty(pin, rootKey, receivedChain(document) ?? NO_CHAIN, now, tools);
  if (chain.refusal !== null) {
    const { reason, message } = chain.refusal;
    throw failure(EXIT.refused, reason, `${keys} is rejected: ${message}`);
  }
  const accepted = acceptedKeys(chain.inForce, subjectKeys, now);
  const isSame =
    chain.inForce.length === (followed?.sequence ?? 0) && accepted.join() === subjectKeys.join();
  if (chain.inForce.length === 0 || isSame) return null;
  return [
    `Treaty ${treaty.treaty_id} recognizes "${subject}". It is replaced by one with the same scope, until ${treaty.expires_at}:`,
    '',
    ...chainLines(chain, named ?? rootKey, now),
    ...keyLines(chain, subjectKeys, now),
  ];
}

function chainLines(
  { inForce, rootKey }: FollowedChain,
  trusted: string | null,
  now: number,
): string[] {
  const last = inForce.at(-1);
  if (last === undefined) return [];
  const why = {
    planned: 'planned',
    compromise: 'the old key was stolen',
    roll_back: 'rolled back',
  };
  const at = `${last.activates_at} (${fromNow(instantOf(last.activates_at) - now)})`;
  const unknown = trusted === null ? '; new to the treaty: compare it with its operators' : '';
  return [
    `  statement      ${last.sequence} of the chain, in force since ${at}; ${why[last.kind]}`,
    `  root key       ${rootKey}${unknown}`,
  ];
}

function keyLines(
  { inForce }: FollowedChain,
  subjectKeys: readonly string[],
  now: number,
): string[] {
  const accepted = acceptedKeys(inForce, subjectKeys, now);
  const keys = new Map(keysInForce(inForce, now).map((key) => [key.public_key, key]));
  const isKept = new Set(subjectKeys);
  return [
    ...accepted.map((key) => {
      const { state, signs_until } = keys.get(key) ?? {};
      const until = state === 'previous' ? `, until ${signs_until}` : '';
      return `  ${isKept.has(key) ? 'keeps' : 'adds '}          ${key}${until}`;
    }),
    ...subjectKeys
      .filter((key) => !accepted.includes(key))
      .map((key) => `  removes        ${key}, ${keys.get(key)?.state}`),
  ];
}

async function assertConfirmed(changes: readonly string[]): Promise<void> {
  if (!isTerminal()) {
    throw usageFailure(
      'Replacing a treaty needs confirmation: add --yes, or run this on a terminal',
    );
  }
  for (const line of changes) printNote(line);
  if (await isConfirmed('', 'Replace it?')) return;
  throw failure(EXIT.refused, 'not_confirmed', 'Nothing was changed');
}
