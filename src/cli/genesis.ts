/** `mesh-na genesis`: what only the root key may do, offline, on the file that it signed. */
import type { Command } from 'commander';
import { systemRuntime } from '../base/runtime.ts';
import { formatInstant } from '../base/timestamp.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { instantOf } from '../protocol/records/record.ts';
import { signRecord } from '../protocol/records/signed-record.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { readGenesisFile } from './json-file.ts';
import { addLocalOptions, wholeNumber } from './options.ts';
import { asJson, type OutputOptions, printResult } from './output.ts';
import { readRootKey } from './root-key.ts';
import { saveFile } from './saved-file.ts';

interface RenewOptions extends OutputOptions {
  readonly rootKey: string;
  readonly genesis: string;
  readonly days: number;
  readonly out?: string;
}

const DAY = 86_400_000;
/** Ten years. */
const MOST_DAYS = 3650;

export function addGenesisCommands(program: Command): void {
  const genesis = program
    .command('genesis')
    .description('renew what the root key has signed; the authority is not asked');
  const renew = genesis
    .command('renew')
    .description('extend the delegation of the root key to the authority, and sign it again')
    .requiredOption('--root-key <file>', 'private root key')
    .requiredOption('--genesis <file>', 'genesis block that is replaced')
    .option('--days <number>', 'how many days from today it ends', wholeNumber(MOST_DAYS), 365)
    .option('--out <file>', 'write the new one here, and leave the old one as it is')
    .action(runRenew);
  addLocalOptions(renew, [
    'mesh-na genesis renew --root-key root.key --genesis mesh-data/genesis.json',
    'mesh-na genesis renew --root-key root.key --genesis genesis.json --days 730 --out new.json',
  ]);
}

async function runRenew({ rootKey, genesis: file, days, out, ...options }: RenewOptions) {
  const earlier = await readGenesisFile(file);
  const root = await readRootKey(rootKey, { rootPublicKey: earlier.root_public_key, file });
  const end = systemRuntime.now() + days * DAY;
  const until = earlier.network_authority.valid_to;
  if (end <= instantOf(until)) {
    const message = `The delegation lasts until ${until}, which is no earlier than ${days} days from today`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const renewed = signRecord(extended(earlier, end), root, root.publicKey);
  const path = out ?? file;
  const text = `${JSON.stringify(renewed, null, 2)}\n`;
  onLocalFiles(() => saveFile(path, text, { isSecret: false, overwrites: out === undefined }));
  const { valid_to } = renewed.network_authority;
  printResult(options, asJson({ genesis_file: path, valid_to, replaced_valid_to: until }), [
    `The delegation to the authority of ${renewed.network_name} ends on ${valid_to}, in ${path}.`,
    'The authority serves it after its next start.',
  ]);
}

/** Nothing else of it may change: nodes know the network by the rest. */
function extended({ signatures: _, ...genesis }: GenesisBlock, end: number) {
  const { network_authority } = genesis;
  return { ...genesis, network_authority: { ...network_authority, valid_to: formatInstant(end) } };
}
