/** `mesh-na feed`: exports and imports feeds of revoked attestations. */

import type { Command } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { routeCommand } from '../connection/route-command.ts';
import { option } from '../kernel/command.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { readRecordFile } from '../kernel/files.ts';
import { type NamedKey, namedKey } from '../kernel/options.ts';

export function addFeedCommands(program: Command): void {
  const feed = program.command('feed').description('exchange revocations with other sovereigns');

  routeCommand(feed, 'export', 'readRevocationFeed', {
    about: 'print the signed revocation feed of the authority, or save it',
    values: {
      issuer_sovereign_id: ['--issuer <name>', "feed of this sovereign (default: the authority's)"],
    },
    out: 'the feed',
    examples: [
      'mesh-na feed export --out alpha-feed.json',
      'mesh-na feed export --url https://na.beta.example | mesh-na feed import -',
    ],
    record: ({ feed_id, issuer_sovereign_id, sequence, revoked_attestation_ids }) => ({
      made: `Feed ${feed_id} of ${issuer_sovereign_id} is exported`,
      about: `Sequence: ${sequence}. Revoked attestations: ${revoked_attestation_ids.length}.`,
    }),
  });

  routeCommand(feed, 'import', 'importFeed', {
    about: 'import the revocations of another sovereign (privileged)',
    values: {
      expected_issuer_sovereign_id: [
        '--expect-issuer <name>',
        'reject the feed unless this sovereign issued it',
      ],
    },
    args: [['<file>', 'the signed feed, - for standard input']],
    options: [
      option(
        '--issuer-key <key>',
        'key that must have signed the feed, as key or id=key (repeatable; default: keys in active treaties)',
        { parse: namedKey, many: true },
      ),
    ],
    examples: [
      'mesh-na feed import beta-feed.json --expect-issuer beta',
      'mesh-na feed import beta-feed.json --issuer-key beta-na="$BETA_KEY"',
    ],
    sent: async (given, { issuerKey }, [file = '']) => ({
      ...given,
      issuer_public_keys: issuerKey && issuerKeys(issuerKey),
      feed: await readRecordFile('feed', file, MOST_BYTES.list),
    }),
    text({ accepted, feed_id, issuer_sovereign_id, sequence, revoked_count, reason }) {
      if (!accepted) {
        throw failure(EXIT.refused, reason, `The authority refused the feed: ${reason}`);
      }
      return [
        `Feed ${feed_id} of ${issuer_sovereign_id} is imported.`,
        `Sequence: ${sequence}. Revoked attestations: ${revoked_count}.`,
      ];
    },
  });
}

/** An object when the keys have ids, else a list; authorities accept both. */
function issuerKeys(keys: readonly NamedKey[]) {
  const ids = new Set(keys.map(({ id }) => id));
  if (ids.size === 1 && ids.has(null)) return keys.map(({ key }) => key);
  if (ids.has(null)) throw usageFailure('Give an id to either all --issuer-key options or none');
  if (ids.size < keys.length) throw usageFailure('Two --issuer-key options have the same id');
  return Object.fromEntries(keys.map(({ id, key }) => [String(id), key]));
}
