/** Compares the evidence with a backup and plans what a restore must add [backup-6]. */
import type { Certificate } from '../../../machines/certificate.ts';
import type { StoredFeed, StoredLists } from '../../authority/lists/stored-lists.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { GENESIS_HASH, type StoredSubject } from '../../store/store.ts';
import type { Manifest } from '../../store/stream/manifest.ts';
import type { StreamRows, StreamTable } from '../../store/stream/rows.ts';
import { verifyBackup } from '../backup/check-state.ts';
import { laterSuccessions } from './authority-keys.ts';
import { type Evidence, ForeignEvidence, type GivenEvidence, readEvidence } from './evidence.ts';

/** How far above the highest known number the lists continue: more than anyone could have published in between. */
const LEAP = 1_000_000;

export type RestorePlan = ReturnType<typeof planOf>;

/**
 * Reads the whole backup. Rejects with a one-sentence error if the backup or the evidence cannot be used. `now` is in
 * milliseconds since the epoch.
 */
export async function planRestore(
  bytes: AsyncIterable<Uint8Array>,
  given: GivenEvidence,
  now: number,
  verify: VerifySignature,
): Promise<RestorePlan> {
  let seen: Seen | null = null;
  const { manifest, check } = await verifyBackup(bytes, verify, (manifest) => {
    seen = lookFor(readEvidence(given, manifest, now, verify));
    return seen.watch;
  });
  if (seen === null) throw new Error('The backup was not read');
  return planOf(manifest, check.lists, seen);
}

type Seen = ReturnType<typeof lookFor>;

function lookFor(evidence: Evidence) {
  const certificates = new Set<string>();
  const attestations = new Set<string>();
  const operatorKeysOff = new Set<string>();
  const authorityKeys: StoredSubject[] = [];
  const nodeKeys = new Set<string>();
  const headLength = evidence.head?.audit_length ?? 0;
  let unusedInvites = 0;
  let entries = 0;
  let hashAtHead = GENESIS_HASH;

  function watchSubject(subject: StreamRows['subjects']): void {
    const { kind, id, snapshot } = subject;
    const { value, context } = snapshot;
    const isRevoked = value === 'revoked';
    if (kind === 'invite' && value === 'unused') unusedInvites += 1;
    if (kind === 'operator-key' && isRevoked) operatorKeysOff.add(id);
    if (kind === 'authority-key') authorityKeys.push(subject);
    if (kind === 'attestation' && evidence.attestations.has(id)) attestations.add(id);
    if (kind !== 'certificate' || !evidence.certificates.has(id)) return;
    certificates.add(id);
    if (!isRevoked) nodeKeys.add((context as Certificate).nodePublicKey);
  }

  return {
    evidence,
    certificates,
    attestations,
    operatorKeysOff,
    authorityKeys,
    nodeKeys,
    unusedInvites: () => unusedInvites,
    /** The hash of the last entry in the backup that the head covers. */
    hashAtHead: () => hashAtHead,
    watch<Table extends StreamTable>(table: Table, row: StreamRows[Table]): void {
      if (table === 'subjects') watchSubject(row as StreamRows['subjects']);
      if (table !== 'audit') return;
      entries += 1;
      if (entries === headLength) hashAtHead = (row as StreamRows['audit']).hash;
    },
  };
}

function planOf(manifest: Manifest, lists: StoredLists, seen: Seen) {
  const { evidence } = seen;
  const { head } = evidence;
  assertSameHistory(manifest, seen);
  const keys = lists.keys();
  const successions = laterSuccessions(keys.inForce, evidence.chain?.inForce ?? []);
  const { authority_public_key: firstKey } = manifest.network;
  assertNamesKey(
    evidence.genesis,
    successions.at(-1)?.to_key ?? keys.current?.publicKey ?? firstKey,
  );
  const listed = new Set(lists.crlEntries().map(({ id }) => id));
  const feeds = lists.feeds();
  const certificates = [...evidence.certificates.values()].filter(({ id }) => !listed.has(id));
  const published = new Set(
    [...feeds].flatMap(([issuer, { entries }]) => entries.map(({ id }) => `${issuer}\n${id}`)),
  );
  const attestations = [...evidence.attestations.values()].filter(
    ({ id, issuer }) => !published.has(`${issuer}\n${id}`),
  );
  const operatorKeys = (head?.operator_keys_off ?? []).filter(
    (id) => !seen.operatorKeysOff.has(id),
  );
  const lostAuditEntries = lostEntries(manifest, evidence);
  const replays = certificates.length + attestations.length + operatorKeys.length;
  return {
    manifest,
    /** Hex SHA-256 of the canonical manifest. */
    restoredFrom: sha256Hex(canonicalJson(manifest)),
    epoch: Math.max(manifest.epoch, head?.epoch ?? 0) + 1,
    /** Revocations to replay on subjects in the backup. */
    certificates: byId(certificates.filter(({ id }) => seen.certificates.has(id))),
    attestations: byId(attestations.filter(({ id }) => seen.attestations.has(id))),
    /** Revocations of certificates that the backup does not contain. */
    lostCertificates: certificates.filter(({ id }) => !seen.certificates.has(id)),
    lostAttestations: attestations.filter(({ id }) => !seen.attestations.has(id)),
    operatorKeys,
    /** The keys of the authority in the backup, and the statements in force that came later. */
    authorityKeys: seen.authorityKeys as readonly StoredSubject[],
    successions,
    /** The genesis block in force; it names the current authority key. */
    genesis: evidence.genesis,
    /** Node keys whose agents must no longer be listed. */
    nodeKeys: seen.nodeKeys as ReadonlySet<string>,
    unusedInvites: seen.unusedInvites(),
    /** Null if it is not known how many are missing. */
    lostAuditEntries,
    /** The kinds for which the evidence does not show the changes after the backup. */
    unknown: lostAuditEntries === 0 ? [] : notShown(manifest, lists, evidence),
    /** Whether it is proven that nothing is missing. */
    isProven: lostAuditEntries === 0 && replays === 0,
    lists,
    crlSequence: Math.max(lists.crl()?.sequence ?? -1, evidence.crlSequence) + LEAP,
    /** By issuer, for every feed in the backup or the evidence. */
    feedSequences: feedSequences(feeds, evidence, manifest.network.network_name),
  };
}

function assertSameHistory(manifest: Manifest, { evidence: { head }, hashAtHead }: Seen): void {
  if (head === null || head.audit_length > manifest.audit_length) return;
  if (head.audit_head === hashAtHead()) return;
  throw new Error(
    `The head belongs to a different history: its audit entry ${head.audit_length} is not the one in the backup`,
  );
}

function assertNamesKey({ network_authority }: GenesisBlock, currentKey: string): void {
  if (network_authority.public_key === currentKey) return;
  throw new ForeignEvidence('genesis', 0, `does not name the current authority key ${currentKey}`);
}

/** A later epoch may have begun from an older backup than this one, so its entries cannot be compared. */
function lostEntries(manifest: Manifest, { head }: Evidence): number | null {
  if (head === null || head.epoch !== manifest.epoch) return null;
  return Math.max(0, head.audit_length - manifest.audit_length);
}

/** The absence of a list does not mean that there were no revocations. */
function notShown(
  { network: { network_name } }: Manifest,
  lists: StoredLists,
  { head, given }: Evidence,
): ('certificates' | 'attestations' | 'operator_keys')[] {
  const crl = lists.crl()?.sequence ?? -1;
  const feed = lists.feeds().get(network_name)?.version?.sequence ?? -1;
  return [
    ...(isShown(given.crl, crl, head?.crl_sequence) ? [] : (['certificates'] as const)),
    ...(isShown(given.feed, feed, head?.feed_sequence) ? [] : (['attestations'] as const)),
    ...(head === null ? (['operator_keys'] as const) : []),
  ];
}

/** A head names the newest list; without a head, the given list is assumed to be the newest. */
function isShown(given: number, inBackup: number, newest: number | undefined): boolean {
  return newest === undefined ? given >= 0 : Math.max(given, inBackup) >= newest;
}

function feedSequences(
  feeds: ReadonlyMap<string, StoredFeed>,
  evidence: Evidence,
  ownName: string,
): ReadonlyMap<string, number> {
  const issuers = new Set([ownName, ...feeds.keys(), ...evidence.feedSequences.keys()]);
  return new Map(
    Array.from(issuers, (issuer) => {
      const stored = feeds.get(issuer)?.version?.sequence ?? -1;
      return [issuer, Math.max(stored, evidence.feedSequences.get(issuer) ?? -1) + LEAP];
    }),
  );
}

function byId<Item extends { readonly id: string }>(items: readonly Item[]) {
  return new Map(items.map((item) => [item.id, item]));
}

/** The number of revisions that the restore adds for revocations. */
export function replaysOf(plan: RestorePlan): number {
  const { certificates, attestations, lostCertificates, lostAttestations, operatorKeys } = plan;
  return (
    certificates.size +
    attestations.size +
    lostCertificates.length +
    lostAttestations.length +
    operatorKeys.length
  );
}

/** The loss that the operator must accept; null if nothing is missing. */
export function lossOf(plan: RestorePlan): string | null {
  if (plan.isProven) return null;
  const { lostAuditEntries, lostCertificates, lostAttestations } = plan;
  return [
    `audit=${lostAuditEntries ?? 'unknown'}`,
    `certificates=${lostCertificates.length}`,
    `attestations=${lostAttestations.length}`,
  ].join(',');
}
