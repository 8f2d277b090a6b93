/** `mesh-na genesis`: offline changes to the genesis file that only the root key can make. */

import type { Command } from 'commander';
import type { Signer } from '../../base/crypto/primitives.ts';
import { readPrivateKey } from '../../base/keys/private-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { signRecord, soleSigner } from '../../protocol/records/signed-record.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { readGenesisFile, saveFile } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';

const DAY = 86_400_000;
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

export function addGenesisCommands(program: Command): void {
  const genesis = program
    .command('genesis')
    .description('renew the delegation of the root key, offline');
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
  const end = systemRuntime.now() + days * DAY;
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
export async function readRootKey(
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
