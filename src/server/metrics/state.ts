/** Metrics counted from committed state, all set together when the metrics are read. */
import { Gauge, type Registry } from 'prom-client';
import { POSTURE_RULES } from '../../authority/dashboard/posture.ts';
import { KEY_STATES } from '../../protocol/records/authority-chain.ts';
import type { PostureFinding, RoleCounts } from '../../protocol/rows/posture.ts';

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
  /** The number of nodes with each kind of problem. */
  /** Null if not known. */
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

type CountsByKind = { readonly [kind: string]: number };

const COUNTS = {
  mesh_na_issued_certs_total: ['Join certificates issued', 'issued_certificates'],
  mesh_na_active_nodes: ['Nodes with a contact within the active-node window', 'active_nodes'],
  mesh_na_revoked_certs_total: ['Certificates revoked', 'revoked_certificates'],
  mesh_na_crl_sequence: ['Sequence of the active CRL', 'crl_sequence'],
  mesh_na_policy_versions_total: ['Policy versions persisted', 'policy_versions'],
  mesh_na_nonce_windows: ['Nodes whose heartbeat nonces are remembered', 'nonce_windows'],
} as const;

/** Registers the metrics; the returned function sets them all. */
export function createStateMetrics(registry: Registry): (counts: AuthorityCounts) => void {
  const registers = [registry];
  const gauges = Object.entries(COUNTS).map(([name, [help, count]]) => ({
    gauge: new Gauge({ name, help, registers }),
    count,
  }));
  const subjects = new Gauge({
    name: 'mesh_na_subjects',
    help: 'Trust subjects in the state',
    labelNames: ['kind'] as const,
    registers,
  });
  const removedSubjects = new Gauge({
    name: 'mesh_na_subjects_removed_total',
    help: 'Trust subjects removed by retention since the network was created',
    labelNames: ['kind'] as const,
    registers,
  });
  const posture = new Gauge({
    name: 'mesh_na_posture_finding',
    help: 'Problems by rule: 0 is well, 1 needs attention, 2 needs action now',
    labelNames: ['rule'] as const,
    registers,
  });
  const nodes = new Gauge({
    name: 'mesh_na_nodes',
    help: 'Nodes that report, and how many of them are healthy, silent, unwell, lapsing or lapsed; absent if not known',
    labelNames: ['state'] as const,
    registers,
  });
  const roleNodes = new Gauge({
    name: 'mesh_na_role_nodes',
    help: 'The same for the roles with the most nodes, except lapsed; a node counts in each of its roles',
    labelNames: ['role', 'state'] as const,
    registers,
  });
  const diskFree = new Gauge({
    name: 'mesh_na_disk_free_bytes',
    help: 'Bytes free on the disk of the data folder',
    registers,
  });
  const diskMinFree = new Gauge({
    name: 'mesh_na_disk_min_free_bytes',
    help: 'With fewer free bytes than this, nothing new is enrolled; 0 disables the limit',
    registers,
  });
  const delegatedUntil = new Gauge({
    name: 'mesh_na_delegation_not_after_seconds',
    help: 'When the delegation from the root key to the authority ends, seconds since the epoch',
    registers,
  });
  const soonestEnds = new Gauge({
    name: 'mesh_na_expiry_timestamp_seconds',
    help: 'When the first item of each kind lapses, seconds since the epoch; absent for kinds without one',
    labelNames: ['kind'] as const,
    registers,
  });
  const signs = new Gauge({
    name: 'mesh_na_signer_available',
    help: '1 while the authority can sign',
    registers,
  });
  const webhookLagEntries = new Gauge({
    name: 'mesh_na_webhook_lag_entries',
    help: 'Audit log entries not yet delivered to a webhook',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookLagSeconds = new Gauge({
    name: 'mesh_na_webhook_lag_seconds',
    help: 'The age of the first of them',
    labelNames: ['host'] as const,
    registers,
  });
  const authorityKeys = new Gauge({
    name: 'mesh_na_authority_key_state',
    help: 'Keys of the authority by state: next, current, previous, retired or distrusted',
    labelNames: ['state'] as const,
    registers,
  });
  const adopted = new Gauge({
    name: 'mesh_na_succession_adopted_ratio',
    help: 'The share of active nodes that have followed the change of the authority key; not a number if there is none, or not known',
    registers,
  });

  function set(counts: AuthorityCounts): void {
    for (const { gauge, count } of gauges) gauge.set(counts[count]);
    for (const [kind, count] of Object.entries(counts.subjects)) subjects.set({ kind }, count);
    for (const [kind, count] of Object.entries(counts.removed_subjects)) {
      removedSubjects.set({ kind }, count);
    }
    for (const { name } of POSTURE_RULES) {
      const finding = counts.posture.find(({ rule }) => rule === name);
      // Unknown values are omitted, because 0 would mean that all is well.
      if (counts.posture_unknown.includes(name)) posture.remove({ rule: name });
      else posture.set({ rule: name }, finding === undefined ? 0 : GRAVITY[finding.severity]);
    }
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
    diskFree.set(counts.disk_free ?? Number.NaN);
    diskMinFree.set(counts.disk_min_free);
    soonestEnds.reset();
    for (const [kind, end] of Object.entries(counts.soonest_ends)) {
      soonestEnds.set({ kind }, end / 1000);
    }
    setLags(counts.webhooks);
    for (const state of KEY_STATES) {
      authorityKeys.set({ state }, counts.authority_keys[state] ?? 0);
    }
    adopted.set(counts.succession_adopted ?? Number.NaN);
    signs.set(counts.signs ? 1 : 0);
    delegatedUntil.set((counts.delegated_until ?? Number.NaN) / 1000);
  }

  /** If one host has several webhooks, reports the one that is furthest behind. */
  function setLags(webhooks: readonly WebhookCounts[]): void {
    webhookLagEntries.reset();
    webhookLagSeconds.reset();
    for (const { host } of webhooks) {
      const there = webhooks.filter((other) => other.host === host);
      webhookLagEntries.set({ host }, Math.max(...there.map((other) => other.lag_entries)));
      webhookLagSeconds.set({ host }, Math.max(...there.map((other) => other.lag_seconds)));
    }
  }

  return set;
}

const GRAVITY = { attention: 1, action: 2 } as const;
