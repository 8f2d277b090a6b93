/** `mesh-na restore`: restores a state from a backup, including all later revocations. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { counted } from '../../base/counts.ts';
import { jsonText } from '../../base/json/write.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { ForeignEvidence, GivenEvidence } from '../../maintenance/restore/evidence.ts';
import type { RestorePlan } from '../../maintenance/restore/plan.ts';
import { FILES } from '../../server/config/data-folder.ts';
import { CA_OPTION, readJsonUrl } from '../connection/server.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { readGenesisFile, readJsonFile, saveFile } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import { whileWaiting } from '../kernel/terminal.ts';
import { IDENTITY, identitiesIn, sound, summaryText } from './backup.ts';
import { databaseOf, onState, openTarget, storeOption } from './place.ts';

const PLAN = [
  option('--backup <file>', 'the backup', { required: true }),
  IDENTITY,
  option('--crl <file-or-url>', 'a later revocation list, from any node (repeatable)', {
    many: true,
  }),
  option('--feed <file-or-url>', 'a later revocation feed, from any partner (repeatable)', {
    many: true,
  }),
  option('--head <file>', 'the head file of the lost authority'),
  option(
    '--authority-keys <file-or-url>',
    'the chain of authority keys, if the key has changed since the backup',
  ),
  option(
    '--genesis <file-or-url>',
    'the genesis block that names the current authority key, if it has changed since the backup',
  ),
  CA_OPTION,
] as const;

const APPLY = [
  ...PLAN,
  option('--data-dir <folder>', 'a new folder, or one that contains only the keys', {
    env: 'MESH_DATA_DIR',
    required: true,
  }),
  storeOption('empty database to restore into, as for serve'),
  option('--accept-loss <numbers>', 'accept exactly the loss that restore plan prints'),
  option('--clock-tolerance <seconds>', 'clock tolerance of the lost authority', {
    env: 'MESH_CLOCK_TOLERANCE_SECONDS',
    fallback: 300,
    parse: wholeNumber(3600),
  }),
] as const;

type PlanOptions = OptionsIn<typeof PLAN> & OutputOptions;

type ApplyOptions = OptionsIn<typeof APPLY> & OutputOptions;

export function addRestoreCommands(restore: Command): void {
  define(restore, 'plan', {
    about: 'show what happened after a backup, as far as known, and what would be lost',
    options: PLAN,
    examples: ['mesh-na restore plan --backup mesh.backup --crl http://node/crl.json'],
    run: plan,
  });
  define(restore, 'apply', {
    about: 'restore into a data folder without state, or into an empty database',
    options: APPLY,
    examples: [
      'mesh-na restore apply --backup mesh.backup --head /second/head --crl crl.json --data-dir ./new',
    ],
    run: apply,
  });
}

async function plan(options: PlanOptions): Promise<void> {
  const found = await planned(options);
  const { lossOf } = await import('../../maintenance/restore/plan.ts');
  const loss = lossOf(found);
  printResult(options, { ...jsonOf(found), loss }, [
    ...summaryText(found.manifest),
    ...planText(found),
    loss === null
      ? 'Nothing is missing: the head ends where the backup ends.'
      : `To accept this loss, use --accept-loss ${loss}`,
  ]);
}

async function apply(options: ApplyOptions): Promise<void> {
  const { dataDir, acceptLoss, clockTolerance, backup } = options;
  const found = await planned(options);
  const { lossOf } = await import('../../maintenance/restore/plan.ts');
  const loss = lossOf(found);
  if (loss !== null && acceptLoss !== loss) throw notAccepted(loss, acceptLoss);
  await assertSameGenesis(dataDir, found);
  const { verifySignature } = await import('../../base/crypto/ed25519.ts');
  const { readBackup } = await import('../../maintenance/backup/file.ts');
  const { applyRestore } = await import('../../maintenance/restore/apply.ts');
  const { facts, refusedUntil } = await onState(async () => {
    const address = await databaseOf(options);
    onLocalFiles(() => mkdirSync(dataDir, { recursive: true, mode: 0o700 }));
    return applyRestore({
      plan: found,
      bytes: await readBackup(backup, identitiesIn(options.identity)),
      target: await openTarget(dataDir, address),
      verify: verifySignature,
      runtime: systemRuntime,
      clockTolerance: clockTolerance * 1000,
    });
  });
  saveGenesis(dataDir, found);
  const until = formatInstant(refusedUntil);
  // It has the head of the lost authority, whose log was longer.
  const newHead = options.head === undefined ? '' : ` --head-file ${options.head} --new-head`;
  // The URL may contain a password.
  const sameStore = options.store ? ', with the same --store' : '';
  const result = { ...jsonOf(found), data_dir: dataDir, revision: facts.revision, until };
  printResult(options, result, [
    `Restored the state at revision ${facts.revision} of epoch ${facts.epoch}.`,
    ...planText(found),
    `Requests signed before ${until} will be refused as replays.`,
    `${toBring(dataDir)}mesh-na serve --data-dir ${dataDir}${newHead}${sameStore}`,
  ]);
}

/** What the folder still lacks. */
function toBring(dataDir: string): string {
  const missing = [FILES.keys, FILES.config].filter((name) => !existsSync(join(dataDir, name)));
  return missing.length === 0 ? 'Then: ' : `Put ${missing.join(' and ')} into ${dataDir}, then: `;
}

function notAccepted(loss: string, given: string | undefined) {
  const found = given === undefined ? 'Some data may be missing' : 'The loss has changed';
  return failure(
    EXIT.refused,
    'loss_not_accepted',
    `${found}; to restore anyway, use --accept-loss ${loss}`,
  );
}

async function planned(options: PlanOptions): Promise<RestorePlan> {
  const { verifySignature } = await import('../../base/crypto/ed25519.ts');
  const { readBackup } = await import('../../maintenance/backup/file.ts');
  const { planRestore } = await import('../../maintenance/restore/plan.ts');
  const { ForeignEvidence } = await import('../../maintenance/restore/evidence.ts');
  const { ca, crl = [], feed = [], head, authorityKeys, genesis } = options;
  const evidence: GivenEvidence = {
    crls: await Promise.all(crl.map((place) => readDocument(place, ca))),
    feeds: await Promise.all(feed.map((place) => readDocument(place, ca))),
    head: head === undefined ? null : await readDocument(head, ca),
    authorityKeys: authorityKeys === undefined ? undefined : await readDocument(authorityKeys, ca),
    genesis: genesis === undefined ? undefined : await readDocument(genesis, ca),
  };
  const identities = identitiesIn(options.identity);
  return sound(options.backup, () =>
    whileWaiting('Reading the backup', async () => {
      const bytes = await readBackup(options.backup, identities);
      return planRestore(bytes, evidence, systemRuntime.now(), verifySignature).catch(
        (cause: unknown) => {
          throw cause instanceof ForeignEvidence ? foreign(cause, options) : cause;
        },
      );
    }),
  );
}

const SIGNED_BY_AUTHORITY =
  'get it from that authority or one of its nodes, or omit it; if the authority key has changed since the backup, pass --authority-keys and --genesis';
const EVIDENCE_CURES: { readonly [option in ForeignEvidence['option']]: string } = {
  crl: SIGNED_BY_AUTHORITY,
  feed: SIGNED_BY_AUTHORITY,
  head: SIGNED_BY_AUTHORITY,
  authorityKeys: 'get it from any instance or partner of the network, at /authority-keys',
  genesis: 'take it from the succession file, or from any node that has followed the succession',
};

function foreign({ option, index, message }: ForeignEvidence, options: PlanOptions) {
  const given = options[option];
  const place = typeof given === 'string' ? given : given?.[index];
  return failure(
    EXIT.refused,
    'evidence_not_genuine',
    `${message}: ${place ?? 'none was passed'}; ${EVIDENCE_CURES[option]}`,
  );
}

function readDocument(place: string, ca: string | undefined): Promise<unknown> {
  return /^https?:/.test(place) ? readJsonUrl(place, ca) : readJsonFile(place, MOST_BYTES.list);
}

/** The folder may already contain the keys and genesis, which must match the backup. */
async function assertSameGenesis(
  dataDir: string,
  { manifest, genesis }: RestorePlan,
): Promise<void> {
  const path = join(dataDir, FILES.genesis);
  if (!existsSync(path)) return;
  const { root_public_key: root, network_authority } = await readGenesisFile(path);
  const { network } = manifest;
  if (root !== network.root_public_key) {
    throw failure(
      EXIT.unusable,
      'local_files',
      `The backup belongs to another network than ${path}, with the root key ${network.root_public_key}`,
    );
  }
  const current = genesis.network_authority.public_key;
  if (network_authority.public_key === current) return;
  throw failure(
    EXIT.unusable,
    'local_files',
    `${path} names the authority key ${network_authority.public_key}, but the restored state ends with ${current}: if the key has changed since the backup, pass --authority-keys and --genesis; otherwise move that file away`,
  );
}

function saveGenesis(dataDir: string, { genesis }: RestorePlan): void {
  const path = join(dataDir, FILES.genesis);
  if (existsSync(path)) return;
  onLocalFiles(() =>
    saveFile(path, `${jsonText(genesis)}\n`, { isSecret: false, overwrites: false }),
  );
}

function jsonOf(plan: RestorePlan) {
  const { certificates, attestations, lostCertificates, lostAttestations } = plan;
  return {
    restored_from: plan.restoredFrom,
    epoch: plan.epoch,
    replayed_certificates: [...certificates.keys()],
    replayed_attestations: [...attestations.keys()],
    lost_certificates: lostCertificates.map(({ id }) => id),
    lost_attestations: lostAttestations.map(({ id }) => id),
    operator_keys_off: plan.operatorKeys,
    successions: plan.successions.map(({ sequence, kind, to_key }) => ({ sequence, kind, to_key })),
    removed_invites: plan.isProven ? 0 : plan.unusedInvites,
    lost_audit_entries: plan.lostAuditEntries,
    unknown: plan.unknown,
    crl_sequence: plan.crlSequence,
    feed_sequences: Object.fromEntries(plan.feedSequences),
  };
}

const CURES = {
  certificates: '--crl',
  attestations: '--feed',
  operator_keys: '--head',
} as const;

function planText(plan: RestorePlan): string[] {
  const { certificates, attestations, lostCertificates, lostAttestations } = plan;
  const { lostAuditEntries: lost } = plan;
  const revoked = (what: RestorePlan['unknown'][number], found: number) => {
    const noun = what.replace('_', ' ');
    const known = counted(found, noun.slice(0, -1));
    if (!plan.unknown.includes(what)) return known;
    return found === 0 ? `an unknown number of ${noun}` : `at least ${known}`;
  };
  const cures = plan.unknown.map((what) => CURES[what]);
  return [
    `Revoked since: ${revoked('certificates', certificates.size)}, ${revoked('attestations', attestations.size)}, ${revoked('operator_keys', plan.operatorKeys.length)}`,
    `Issued and revoked since: ${revoked('certificates', lostCertificates.length)}, ${revoked('attestations', lostAttestations.length)}; they stay revoked`,
    ...(cures.length === 0
      ? []
      : [`To find out what is unknown, give the newest ${cures.join(', ')}`]),
    ...plan.successions.map(
      ({ kind, to_key }) => `Succession since (${kind}): the authority key is ${to_key}`,
    ),
    lost === null
      ? 'An unknown number of audit entries lost'
      : `${counted(lost, 'audit entry', 'audit entries')} lost`,
    `${counted(plan.isProven ? 0 : plan.unusedInvites, 'unused invite')} to be removed`,
    `Next revocation list ${plan.crlSequence}, next feeds ${[...plan.feedSequences.values()].join(', ')}`,
  ];
}
