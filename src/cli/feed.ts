/** `mesh-na feed`: exports and imports feeds of revoked attestations. */

import type { Command } from 'commander';
import { MOST_BYTES } from '../base/byte-bounds.ts';
import { EXIT, failure, usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import {
  addPublicOptions,
  collectAs,
  type NamedKey,
  namedKey,
  type PublicOptions,
} from './options.ts';
import { printResult } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { publicClient } from './server.ts';

interface ExportOptions extends PublicOptions, RecordOptions {
  readonly issuer?: string;
}

interface ImportOptions extends OperatorOptions {
  readonly issuerKey?: readonly NamedKey[];
  readonly expectIssuer?: string;
}

export function addFeedCommands(program: Command): void {
  const feed = program.command('feed').description('exchange revocations with other sovereigns');

  const exported = feed
    .command('export')
    .description('print the signed revocation feed of the authority, or save it')
    .option('--issuer <name>', "feed of this sovereign (default: the authority's)")
    .action(runExport);
  addPublicOptions(addOutOption(exported, 'the feed'), [
    'mesh-na feed export --out alpha-feed.json',
    'mesh-na feed export --url https://na.beta.example | mesh-na feed import -',
  ]);

  const imported = feed
    .command('import')
    .description('import the revocations of another sovereign (privileged)')
    .argument('<file>', 'the signed feed, - for standard input')
    .option(
      '--issuer-key <key>',
      'key that must have signed the feed, as key or id=key (repeatable; default: keys in active treaties)',
      collectAs(namedKey),
    )
    .option('--expect-issuer <name>', 'reject the feed unless this sovereign issued it')
    .action(runImport);
  addOperatorOptions(imported, [
    'mesh-na feed import beta-feed.json --expect-issuer beta',
    'mesh-na feed import beta-feed.json --issuer-key beta-na="$BETA_KEY"',
  ]);
}

async function runExport(options: ExportOptions): Promise<void> {
  const feed = await publicClient(options).readRevocationFeed({
    issuer_sovereign_id: options.issuer,
  });
  const { feed_id, issuer_sovereign_id, sequence, revoked_attestation_ids: revoked } = feed;
  deliverRecord(options, feed, {
    made: `Feed ${feed_id} of ${issuer_sovereign_id} is exported`,
    about: `Sequence: ${sequence}. Revoked attestations: ${revoked.length}.`,
  });
}

async function runImport(file: string, options: ImportOptions): Promise<void> {
  const { issuerKey } = options;
  const keys = issuerKey && issuerKeys(issuerKey);
  const imported = await operatorClient(options).importFeed({
    feed: await readJsonFile(file, MOST_BYTES.list),
    issuer_public_keys: keys,
    expected_issuer_sovereign_id: options.expectIssuer,
  });
  const { feed_id, issuer_sovereign_id, sequence, revoked_count, reason } = imported;
  if (!imported.accepted) {
    throw failure(EXIT.refused, reason, `The authority refused the feed: ${reason}`);
  }
  printResult(options, imported, [
    `Feed ${feed_id} of ${issuer_sovereign_id} is imported.`,
    `Sequence: ${sequence}. Revoked attestations: ${revoked_count}.`,
  ]);
}

/** An object when the keys have ids, else a list; authorities accept both. */
function issuerKeys(keys: readonly NamedKey[]) {
  const ids = new Set(keys.map(({ id }) => id));
  if (ids.size === 1 && ids.has(null)) return keys.map(({ key }) => key);
  if (ids.has(null)) throw usageFailure('Give an id to either all --issuer-key options or none');
  if (ids.size < keys.length) throw usageFailure('Two --issuer-key options have the same id');
  return Object.fromEntries(keys.map(({ id, key }) => [String(id), key]));
}
