/** Builds a new state from a backup and the revocations that came after it [backup-6]. */
import { restoredRevocationId } from '../../../machines/one-record.ts';
import type { Crl, SovereignFeed } from '../../../machines/signed-sequence.ts';
import type { Resting } from '../../../machines/step.ts';
import { type AuditDraft, createAuditChain } from '../../authority/audit/audit.ts';
import { CRL_ID, crlEntry } from '../../authority/lists/crl.ts';
import { feedEntry, feedSubjectId } from '../../authority/lists/feed.ts';
import { LIST_PERIOD, type ListEntry } from '../../authority/lists/list-document.ts';
import { crlDigest, feedDigest } from '../../authority/lists/stored-lists.ts';
import { refusedAfterRestore } from '../../authority/replay/replay.ts';
import { type SubjectKind, type SubjectTypes, transition } from '../../authority/subjects/kinds.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { compareCodePoints } from '../../base/json/write.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { AuditEntry, StoredSubject } from '../../store/store.ts';
import { factsOf, genesisOf } from '../../store/stream/manifest.ts';
import type { StateFacts, StateTarget } from '../../store/stream/ports.ts';
import { type RowBatch, readStream } from '../../store/stream/read.ts';
import { fill } from '../../store/stream/target.ts';
import { restoredKeys } from './authority-keys.ts';
import { type RestorePlan, replaysOf } from './plan.ts';

export interface RestoreOrder {
  readonly plan: RestorePlan;
  /** The bytes of the backup that the plan was made for. */
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly target: StateTarget;
  readonly verify: VerifySignature;
  readonly runtime: Pick<Runtime, 'now' | 'uuid'>;
  /** How far in the future a request may be signed, in milliseconds. */
  readonly clockTolerance: number;
}

export interface Restored {
  readonly facts: StateFacts;
  /** Requests signed after this time are accepted, in milliseconds since the epoch. */
  readonly refusedUntil: number;
}

/** If anything is wrong, rejects with a one-sentence error and leaves no state. */
export async function applyRestore(order: RestoreOrder): Promise<Restored> {
  const { plan, target, runtime, clockTolerance } = order;
  const at = runtime.now();
  const changes = createChanges(plan, at, runtime.uuid);
  const audit = createAuditChain(plan.manifest.audit_head, runtime as Runtime)
    .extend(auditOf(plan), at)
    .map(({ entry }) => entry);
  const refusedUntil = Math.ceil(at + clockTolerance);
  const facts = factsAfter(plan, audit, refusedUntil, at);
  await fill(target, restored(plannedBatches(order), changes, audit), facts);
  return { facts, refusedUntil };
}

function factsAfter(
  plan: RestorePlan,
  audit: readonly AuditEntry[],
  refusedUntil: number,
  at: number,
): StateFacts {
  const before = factsOf(plan.manifest);
  return {
    network: before.network,
    epoch: plan.epoch,
    revision: before.revision + replaysOf(plan) + 1,
    auditLength: before.auditLength + audit.length,
    auditHead: audit.at(-1)?.hash ?? before.auditHead,
    // As after a crash, the requests that the lost state accepted since the backup are unknown.
    isClosed: false,
    ...refusedAfterRestore(before.forgottenTimes, refusedUntil, at),
  };
}

/** The rows of the backup, if it is still the one that the plan was made for. */
async function* plannedBatches({ plan, bytes, verify }: RestoreOrder): AsyncGenerator<RowBatch> {
  const { manifest, batches } = await readStream(bytes, verify);
  if (JSON.stringify(manifest) !== JSON.stringify(plan.manifest)) {
    throw new Error('The backup has changed since the restore was planned');
  }
  yield* batches;
}

/** The rows of the backup with the changes applied; new rows follow the others of their table. */
async function* restored(
  batches: AsyncIterable<RowBatch>,
  changes: Changes,
  audit: readonly AuditEntry[],
): AsyncGenerator<RowBatch> {
  for await (const batch of batches) {
    if (batch.table !== 'subjects') yield batch;
    else yield { table: 'subjects', rows: batch.rows.flatMap(changes.of) };
  }
  yield { table: 'subjects', rows: changes.added() };
  if (audit.length > 0) yield { table: 'audit', rows: audit };
}

interface Changes {
  /** The restored subject; empty if it is removed. */
  of(subject: StoredSubject): readonly StoredSubject[];
  /** The subjects missing from the backup. Call after all others have been processed. */
  added(): readonly StoredSubject[];
}

function createChanges(plan: RestorePlan, at: number, uuid: () => string): Changes {
  const crl = nextCrl(plan, at, uuid());
  const feeds = new Map(
    Array.from(plan.feedSequences, ([issuer, sequence]) => [
      feedSubjectId(issuer),
      nextFeed(plan, issuer, sequence, at, uuid()),
    ]),
  );
  const revokedOperatorKeys = new Set(plan.operatorKeys);
  const authorityKeys = restoredKeys({
    stored: plan.authorityKeys,
    successions: plan.successions,
    before: genesisOf(plan.manifest),
    genesis: plan.genesis,
    crlSequence: plan.crlSequence,
    at,
  });

  return {
    of(subject) {
      const { kind, id, snapshot } = subject;
      if (kind === 'authority-key') return [];
      if (kind === 'invite' && snapshot.value === 'unused' && !plan.isProven) return [];
      if (kind === 'certificate') return [revokedCertificate(plan, subject)];
      if (kind === 'attestation') return [revokedAttestation(plan, subject, at)];
      if (kind === 'agent-registration' && plan.nodeKeys.has(id)) {
        return [evicted(subject, at)];
      }
      if (kind === 'crl' && id === CRL_ID) {
        return [sent(subject, 'crl', { type: 'resume', version: crl })];
      }
      // A key that an operator added stays in the state as revoked, so that nobody adds it again.
      if (kind === 'operator-key' && revokedOperatorKeys.delete(id))
        return [switchedOff(subject, at)];
      const feed = kind === 'sovereign-feed' ? feeds.get(id) : undefined;
      if (feed === undefined) return [subject];
      feeds.delete(id);
      return [sent(subject, 'sovereign-feed', { type: 'resume', version: feed })];
    },
    added: () => [
      ...authorityKeys,
      ...(plan.lists.crl() === null ? [made('crl', CRL_ID, { type: 'resume', version: crl })] : []),
      ...Array.from(feeds, ([id, version]) =>
        made('sovereign-feed', id, { type: 'resume', version }),
      ),
      ...plan.lostCertificates.map(({ id: revokedId, revokedAt, reason }) => {
        const crlSequence = crl.sequence;
        return lost({ list: 'crl', revokedId, issuer: '', revokedAt, reason, crlSequence });
      }),
      ...plan.lostAttestations.map(({ id: revokedId, issuer, reason }) => {
        const order = { revokedAt: at, crlSequence: null };
        return lost({ list: 'feed', revokedId, issuer, reason, ...order });
      }),
      ...Array.from(revokedOperatorKeys, (id) => keyOff(id, at)),
    ],
  };
}

/** A revocation of something that the backup does not contain. */
function lost(revocation: SubjectTypes['restored-revocation']['context']) {
  const { list, revokedId } = revocation;
  return made('restored-revocation', restoredRevocationId(list, revokedId), {
    type: 'record',
    record: revocation,
  });
}

function revokedCertificate(plan: RestorePlan, subject: StoredSubject): StoredSubject {
  const revoked = plan.certificates.get(subject.id);
  if (revoked === undefined) return subject;
  const { revokedAt, reason } = revoked;
  const event = { type: 'revoke' as const, at: revokedAt, reason, crlSequence: plan.crlSequence };
  return sent(subject, 'certificate', event);
}

function revokedAttestation(plan: RestorePlan, subject: StoredSubject, at: number): StoredSubject {
  const revoked = plan.attestations.get(subject.id);
  if (revoked === undefined) return subject;
  return sent(subject, 'attestation', { type: 'revoke', at, reason: revoked.reason });
}

/** Ends the agent registration of a node whose certificate is revoked. */
function evicted(subject: StoredSubject, at: number): StoredSubject {
  if (subject.snapshot.value !== 'registered') return subject;
  return sent(subject, 'agent-registration', { type: 'certificate_revoked', at });
}

/** The tier of a revoked key does not matter. */
function keyOff(id: string, at: number): StoredSubject {
  const usable = { type: 'configure' as const, tier: 'standard' as const, publicKey: null };
  return switchedOff(made('operator-key', id, usable), at);
}

function switchedOff(usable: StoredSubject, at: number): StoredSubject {
  return sent(usable, 'operator-key', {
    type: 'revoke',
    at,
    reason: 'restored',
    by: '',
    // The evidence already shows that the revocation was accepted.
    otherUsableKeys: 1,
    otherPrivilegedKeys: 1,
    unlessLastPrivileged: false,
  });
}

function made<Kind extends SubjectKind>(
  kind: Kind,
  id: string,
  event: SubjectTypes[Kind]['event'],
): StoredSubject {
  return { kind, id, version: 1, snapshot: after(kind, undefined, event) };
}

function sent<Kind extends SubjectKind>(
  { id, version, snapshot }: StoredSubject,
  kind: Kind,
  event: SubjectTypes[Kind]['event'],
): StoredSubject {
  return { kind, id, version: version + 1, snapshot: after(kind, snapshot, event) };
}

function after<Kind extends SubjectKind>(
  kind: Kind,
  resting: Resting | undefined,
  event: SubjectTypes[Kind]['event'],
): Resting {
  const { next, changed } = transition(kind, resting, event);
  if (!changed)
    throw new Error(`The backup has a ${kind} that cannot be changed as the restore requires`);
  return next;
}

function nextCrl(plan: RestorePlan, at: number, crlId: string): Crl {
  const issuer = plan.genesis.network_authority.public_key;
  const replayed = [...plan.certificates.values(), ...plan.lostCertificates]
    .sort((a, b) => compareCodePoints(a.id, b.id))
    .map(({ id, revokedAt, reason }) => crlEntry(issuer, id, revokedAt, reason));
  const entries = [...plan.lists.crlEntries(), ...replayed];
  return {
    sequence: plan.crlSequence,
    crlId,
    issuedAt: at,
    nextUpdate: at + LIST_PERIOD,
    digest: crlDigest(issuer, entries),
  };
}

function nextFeed(
  plan: RestorePlan,
  issuer: string,
  sequence: number,
  at: number,
  feedId: string,
): SovereignFeed {
  const replayed: ListEntry[] = [...plan.attestations.values(), ...plan.lostAttestations]
    .filter((revoked) => revoked.issuer === issuer)
    .map(({ id, reason }) => feedEntry(id, reason));
  const entries = [...(plan.lists.feeds().get(issuer)?.entries ?? []), ...replayed];
  return { issuer, sequence, feedId, issuedAt: at, digest: feedDigest(entries) };
}

/** A restore runs offline, without a signed request. */
const BY_NO_OPERATOR = { actorKeyId: null };

function auditOf(plan: RestorePlan): AuditDraft[] {
  const { restoredFrom: restored_from, crlSequence: crl_sequence } = plan;
  const certificates = [...plan.certificates.values(), ...plan.lostCertificates];
  const attestations = [...plan.attestations.values(), ...plan.lostAttestations];
  return [
    ...certificates.map(({ id: cert_id, reason }) => ({
      ...BY_NO_OPERATOR,
      type: 'certificate_revoked' as const,
      details: { cert_id, reason, crl_sequence, remote_addr: '', restored_from },
    })),
    ...attestations.map(({ id: attestation_id, reason }) => ({
      ...BY_NO_OPERATOR,
      type: 'membership_attestation_revoked' as const,
      details: { attestation_id, reason, restored_from },
    })),
    ...plan.operatorKeys.map((key_id) => ({
      ...BY_NO_OPERATOR,
      type: 'operator_key_revoked' as const,
      details: { key_id, reason: 'restored', revoked_by: '', remote_addr: '', restored_from },
    })),
    {
      ...BY_NO_OPERATOR,
      type: 'state_restored' as const,
      details: {
        restored_from,
        epoch: plan.epoch,
        revision: plan.manifest.revision,
        replayed: replaysOf(plan),
        removed_invites: plan.isProven ? 0 : plan.unusedInvites,
        lost_audit_entries: plan.lostAuditEntries,
        ...(plan.successions.length > 0 && { successions: plan.successions.length }),
      },
    },
  ];
}
