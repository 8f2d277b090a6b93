/** Metrics counted from committed state, all set together when the metrics are read. */
import type { Gauge, Registry } from 'prom-client';
import { POSTURE_RULES } from '../../authority/dashboard/posture.ts';
import { KEY_STATES } from '../../protocol/records/authority-chain.ts';
import type { PostureFinding, RoleCounts } from '../../protocol/rows/dashboard.ts';
import { gauge, register } from './definitions.ts';

export interface AuthorityCounts {
  readonly issued_certificates: number;
  readonly active_nodes: number;
  readonly revoked_certificates: number;
  readonly crl_sequence: number;
  readonly policy_versions: number;
  readonly nonce_windows: number;
  readonly subjects: CountsByKind;
  readonly removed_subjects: CountsByKind;
  readonly posture: readonly PostureFinding[];
  /** Rules that cannot be evaluated yet. */
  readonly posture_unknown: readonly string[];
  /** The number of nodes with each kind of problem; null if not known. */
  readonly nodes: Readonly<Record<string, number | null>>;
  readonly roles: readonly RoleCounts[];
  /** Bytes; null if not known. */
  readonly disk_free: number | null;
  readonly disk_min_free: number;
  /** Milliseconds since the epoch; null if not known. */
  readonly delegated_until: number | null;
  readonly signs: boolean;
  /** Milliseconds since the epoch, by kind; kinds without anything that lapses are absent. */
  readonly soonest_ends: CountsByKind;
  readonly webhooks: readonly WebhookCounts[];
  readonly partners: readonly PartnerCounts[];
  /** The number of authority keys in each state. */
  readonly authority_keys: CountsByKind;
  /** The share of active nodes that have followed the change of the authority key; null if there is none, or not known. */
  readonly succession_adopted: number | null;
}

interface WebhookCounts {
  readonly host: string;
  /** Audit log entries not yet delivered. */
  readonly lag_entries: number;
  /** The age of the oldest undelivered entry. */
  readonly lag_seconds: number;
}

interface PartnerCounts {
  readonly host: string;
  /** The time since the partner was last fetched without a problem. */
  readonly lag_seconds: number;
}

type CountsByKind = { readonly [kind: string]: number };

const DEFINITIONS = {
  issued_certificates: gauge('mesh_na_issued_certs_total', 'Join certificates issued'),
  active_nodes: gauge('mesh_na_active_nodes', 'Nodes with a contact within the active-node window'),
  revoked_certificates: gauge('mesh_na_revoked_certs_total', 'Certificates revoked'),
  crl_sequence: gauge('mesh_na_crl_sequence', 'Sequence of the active CRL'),
  policy_versions: gauge('mesh_na_policy_versions_total', 'Policy versions persisted'),
  nonce_windows: gauge('mesh_na_nonce_windows', 'Nodes whose heartbeat nonces are remembered'),
  subjects: gauge('mesh_na_subjects', 'Trust subjects in the state', 'kind'),
  removedSubjects: gauge(
    'mesh_na_subjects_removed_total',
    'Trust subjects removed by retention since the network was created',
    'kind',
  ),
  posture: gauge(
    'mesh_na_posture_finding',
    'Problems by rule: 0 is well, 1 needs attention, 2 needs action now',
    'rule',
  ),
  nodes: gauge(
    'mesh_na_nodes',
    'Nodes that report, and how many of them are healthy, silent, unwell, lapsing or lapsed; absent if not known',
    'state',
  ),
  roleNodes: gauge(
    'mesh_na_role_nodes',
    'The same for the roles with the most nodes, except lapsed; a node counts in each of its roles',
    'role',
    'state',
  ),
  diskFree: gauge('mesh_na_disk_free_bytes', 'Bytes free on the disk of the data folder'),
  diskMinFree: gauge(
    'mesh_na_disk_min_free_bytes',
    'With fewer free bytes than this, nothing new is enrolled; 0 disables the limit',
  ),
  delegatedUntil: gauge(
    'mesh_na_delegation_not_after_seconds',
    'When the delegation from the root key to the authority ends, seconds since the epoch',
  ),
  soonestEnds: gauge(
    'mesh_na_expiry_timestamp_seconds',
    'When the first item of each kind lapses, seconds since the epoch; absent for kinds without one',
    'kind',
  ),
  signs: gauge('mesh_na_signer_available', '1 while the authority can sign'),
  webhookLagEntries: gauge(
    'mesh_na_webhook_lag_entries',
    'Audit log entries not yet delivered to a webhook',
    'host',
  ),
  webhookLagSeconds: gauge('mesh_na_webhook_lag_seconds', 'The age of the first of them', 'host'),
  partnerLag: gauge(
    'mesh_na_partner_lag_seconds',
    'The time since the feed and the keys of another sovereign were last fetched without a problem',
    'host',
  ),
  authorityKeys: gauge(
    'mesh_na_authority_key_state',
    'Keys of the authority by state: next, current, previous, retired or distrusted',
    'state',
  ),
  adopted: gauge(
    'mesh_na_succession_adopted_ratio',
    'The share of active nodes that have followed the change of the authority key; not a number if there is none, or not known',
  ),
};

/** Metrics that are counts as they are. */
const PLAIN = [
  'issued_certificates',
  'active_nodes',
  'revoked_certificates',
  'crl_sequence',
  'policy_versions',
  'nonce_windows',
] as const;

/** Registers the metrics; the returned function sets them all. */
export function createStateMetrics(registry: Registry): (counts: AuthorityCounts) => void {
  const metrics = register(registry, DEFINITIONS);
  return (counts) => {
    for (const name of PLAIN) metrics[name].set(counts[name]);
    setKinds(metrics.subjects, counts.subjects);
    setKinds(metrics.removedSubjects, counts.removed_subjects);
    setPosture(metrics, counts);
    setNodes(metrics, counts);
    metrics.diskFree.set(counts.disk_free ?? Number.NaN);
    metrics.diskMinFree.set(counts.disk_min_free);
    metrics.soonestEnds.reset();
    for (const [kind, end] of Object.entries(counts.soonest_ends)) {
      metrics.soonestEnds.set({ kind }, end / 1000);
    }
    setByHost(metrics.webhookLagEntries, counts.webhooks, (row) => row.lag_entries);
    setByHost(metrics.webhookLagSeconds, counts.webhooks, (row) => row.lag_seconds);
    setByHost(metrics.partnerLag, counts.partners, (row) => row.lag_seconds);
    for (const state of KEY_STATES) {
      metrics.authorityKeys.set({ state }, counts.authority_keys[state] ?? 0);
    }
    metrics.adopted.set(counts.succession_adopted ?? Number.NaN);
    metrics.signs.set(counts.signs ? 1 : 0);
    metrics.delegatedUntil.set((counts.delegated_until ?? Number.NaN) / 1000);
  };
}

type StateMetrics = ReturnType<typeof register<typeof DEFINITIONS>>;

function setKinds(metric: Gauge<'kind'>, counts: CountsByKind): void {
  for (const [kind, count] of Object.entries(counts)) metric.set({ kind }, count);
}

function setPosture(
  { posture }: StateMetrics,
  { posture: findings, posture_unknown: unknown }: AuthorityCounts,
): void {
  for (const { name } of POSTURE_RULES) {
    const finding = findings.find(({ rule }) => rule === name);
    // Unknown values are omitted, because 0 would mean that all is well.
    if (unknown.includes(name)) posture.remove({ rule: name });
    else posture.set({ rule: name }, finding === undefined ? 0 : GRAVITY[finding.severity]);
  }
}

function setNodes({ nodes, roleNodes }: StateMetrics, counts: AuthorityCounts): void {
  for (const [state, count] of Object.entries(counts.nodes)) {
    if (count === null) nodes.remove({ state });
    else nodes.set({ state }, count);
  }
  roleNodes.reset();
  for (const { role, ...states } of counts.roles) {
    for (const [state, count] of Object.entries(states)) {
      if (count !== null) roleNodes.set({ role, state }, count);
    }
  }
}

/** Of several on one host, the one that is furthest behind counts. */
function setByHost<Row extends { readonly host: string }>(
  metric: Gauge<'host'>,
  rows: readonly Row[],
  lagOf: (row: Row) => number,
): void {
  const longest = new Map<string, number>();
  for (const row of rows) {
    longest.set(row.host, Math.max(longest.get(row.host) ?? -Infinity, lagOf(row)));
  }
  metric.reset();
  for (const [host, value] of longest) metric.set({ host }, value);
}

const GRAVITY = { attention: 1, action: 2 } as const;
