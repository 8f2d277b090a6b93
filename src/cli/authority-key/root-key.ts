/** What only the root key can do, offline: sign the request for the next authority key, and renew its delegation. */

import type { Command } from 'commander';
import type { Signer } from '../../base/crypto/primitives.ts';
import { DAY_MS, fromNow } from '../../base/duration.ts';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { CHAIN_TOOLS } from '../../client/followed-keys.ts';
import { verifyText } from '../../client/keys.ts';
import { portableSha256 } from '../../client/sha256.ts';
import { successionDigest } from '../../protocol/records/authority-succession.ts';
import { type GenesisBlock, isSignedByRoot } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { signRecord, soleSigner } from '../../protocol/records/signed-record.ts';
import {
  isUnaltered,
  readSignedSuccession,
  readSuccessionRequest,
  type SignedSuccession,
  type SuccessionRequest,
  signSuccession,
  successionProblem,
} from '../../protocol/records/succession-request.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { notHolding, readGenesisFile, readJsonFile, saveFile } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import { assertConfirmed } from '../kernel/terminal.ts';
import { changeIn } from './prepare.ts';

const SIGN = [
  option('--root-key <file>', 'private root key', { required: true }),
  option('--request <file>', 'request from authority-key prepare', { required: true }),
  option('--out <file>', 'write the succession to this file', { required: true }),
  option('--yes', 'sign without asking; required when not on a terminal'),
] as const;

type SignOptions = OptionsIn<typeof SIGN> & OutputOptions;

export function addSignCommand(authorityKey: Command): void {
  define(authorityKey, 'sign', {
    about: 'sign a request to replace the key of the authority; works offline',
    options: SIGN,
    examples: [
      'mesh-na authority-key sign --root-key root.key --request request.json --out succession.json',
    ],
    run: runSign,
  });
}

async function runSign({ rootKey, request: file, out, yes = false, ...options }: SignOptions) {
  const request = await readRequest(file);
  const { genesis, successions } = request;
  const root = await readRootKey(rootKey, { rootPublicKey: genesis.root_public_key, file });
  const now = systemRuntime.now();
  const signed = signSuccession(request, root);
  const problem = successionProblem(signed, { genesis, successions }, now, CHAIN_TOOLS);
  if (problem !== null) {
    throw failure(EXIT.unusable, problem.reason, `${file} is rejected: ${problem.message}`);
  }
  const described = descriptionOf(signed, now);
  if (!yes) await assertConfirmed([...described, ''], CONFIRMATION);
  const text = `${JSON.stringify(signed, null, 2)}\n`;
  onLocalFiles(() => saveFile(out, text, { isSecret: true, overwrites: false }));
  const { network_name, sequence } = signed.statement;
  const result = {
    succession_file: out,
    network_name,
    sequence,
    ...changeIn(signed.statement),
    valid_to: signed.genesis.network_authority.valid_to,
    digest: successionDigest(signed.statement, portableSha256),
  };
  const kept =
    signed.roll_back === null
      ? 'It contains no secret. Keep it: restoring an older backup needs its genesis block.'
      : 'It contains no secret, but it allows rolling back: keep it with the authority.';
  printResult(options, result, [
    ...(yes ? [...described, ''] : []),
    `Saved the signed succession to ${out}. ${kept}`,
    '',
    'On a machine that reaches the authority, run:',
    `  mesh-na authority-key stage ${out}`,
  ]);
}

async function readRequest(file: string): Promise<SuccessionRequest> {
  const given = await readJsonFile(file);
  if (readSignedSuccession(given) !== null) {
    throw notHolding(file, 'a request, but a succession, which is signed already: stage it');
  }
  const request = readSuccessionRequest(given);
  if (request === null) {
    throw notHolding(file, 'a request from authority-key prepare: name the file that it wrote');
  }
  if (isUnaltered(request, verifyText) && isSignedByRoot(request.genesis, verifyText)) {
    return request;
  }
  const message = `${file} was altered after authority-key prepare wrote it: prepare it again, and transfer it unchanged`;
  throw failure(EXIT.unusable, 'altered_request', message);
}

const CONFIRMATION = {
  question: 'Sign it?',
  otherwise: 'Signing with the root key needs confirmation: add --yes, or run this on a terminal',
  declined: 'Nothing was signed',
};

function descriptionOf({ statement, genesis, roll_back }: SignedSuccession, now: number): string[] {
  const { kind, sequence, distrusted_from, overlap_until } = statement;
  const at = (time: string) => `${time} (${fromNow(instantOf(time) - now)})`;
  const { valid_from, valid_to } = genesis.network_authority;
  const why = kind === 'compromise' ? 'because the old one was stolen' : 'as planned';
  return [
    `The root key of "${statement.network_name}" replaces the key of the authority, ${why}:`,
    '',
    `  statement      ${sequence} of the network, prepared ${at(statement.issued_at)}`,
    `  root key       ${statement.root_public_key}`,
    `  old key        ${statement.from_key}`,
    `  next key       ${statement.to_key}`,
    `  takes over     ${at(statement.activates_at)}`,
    distrusted_from === null
      ? `  both sign      until ${at(overlap_until)}`
      : `  old key        distrusted from ${at(distrusted_from)}`,
    `  genesis block  delegates to the next key from ${valid_from} until ${valid_to}`,
    roll_back === null
      ? '  rollback       none'
      : `  rollback       to the old key until ${overlap_until}, also signed`,
  ];
}

/** Ten years. */
const MOST_DAYS = 3650;

const RENEW = [
  option('--root-key <file>', 'private root key', { required: true }),
  option('--genesis <file>', 'genesis block to replace', { required: true }),
  option('--days <number>', 'number of days from today until the delegation ends', {
    parse: wholeNumber(MOST_DAYS),
    fallback: 365,
  }),
  option('--out <file>', 'write the new genesis to this file instead of replacing the old one'),
] as const;

type RenewOptions = OptionsIn<typeof RENEW> & OutputOptions;

export function addGenesisCommands(genesis: Command): void {
  define(genesis, 'renew', {
    about: 'extend the delegation to the authority, and sign the genesis again',
    options: RENEW,
    examples: [
      'mesh-na genesis renew --root-key root.key --genesis mesh-data/genesis.json',
      'mesh-na genesis renew --root-key root.key --genesis genesis.json --days 730 --out new.json',
    ],
    run: runRenew,
  });
}

async function runRenew({ rootKey, genesis: file, days, out, ...options }: RenewOptions) {
  const earlier = await readGenesisFile(file);
  const root = await readRootKey(rootKey, { rootPublicKey: earlier.root_public_key, file });
  const end = systemRuntime.now() + days * DAY_MS;
  const until = earlier.network_authority.valid_to;
  if (end <= instantOf(until)) {
    const message = `The delegation already lasts until ${until}, which is at least ${days} days from today`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const renewed = signRecord(extended(earlier, end), soleSigner(root));
  const path = out ?? file;
  const text = `${JSON.stringify(renewed, null, 2)}\n`;
  onLocalFiles(() => saveFile(path, text, { isSecret: false, overwrites: out === undefined }));
  const { valid_to } = renewed.network_authority;
  printResult(options, asJson({ genesis_file: path, valid_to, replaced_valid_to: until }), [
    `Saved ${path}: the delegation to the authority of ${renewed.network_name} now ends on ${valid_to}.`,
    'Restart the authority to serve it.',
  ]);
}

/** Changes nothing else, because nodes identify the network by the rest. */
function extended({ signatures: _, ...genesis }: GenesisBlock, end: number) {
  const { network_authority } = genesis;
  return { ...genesis, network_authority: { ...network_authority, valid_to: formatInstant(end) } };
}

/** Reads the root key, for commands that sign with it offline. `file` is the file that contains the public key, `rootPublicKey`. */
async function readRootKey(
  path: string,
  { rootPublicKey, file }: { readonly rootPublicKey: string; readonly file: string },
): Promise<Signer> {
  const { signerFromSeed } = await import('../../base/crypto/ed25519.ts');
  const seed = onLocalFiles(() => readPrivateKey(path, readArgument));
  const root = signerFromSeed(seed);
  if (root.publicKey === rootPublicKey) return root;
  const isPublic = seed.toString('base64') === rootPublicKey;
  const message = isPublic
    ? `${path} contains the public root key of ${file}: give the private one, from the matching root.key`
    : `${path} is not the root key of ${file}`;
  throw failure(EXIT.unusable, 'local_files', message);
}
