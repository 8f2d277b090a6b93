/** What is counted in committed state, set as a whole when the metrics are read. */
import { Gauge, type Registry } from 'prom-client';
import { POSTURE_RULES } from '../../authority/views/posture.ts';
import type { PostureFinding } from '../../protocol/rows/posture.ts';

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
  /** Rules that cannot be judged yet. */
  readonly posture_unknown: readonly string[];
  /** What is wrong with nodes. */
  /** Null where that is not known. */
  readonly nodes: Readonly<Record<string, number | null>>;
  /** Bytes; null where it is not known. */
  readonly disk_free: number | null;
  readonly disk_min_free: number;
  /** Milliseconds since the epoch; null where it is not known. */
  readonly delegated_until: number | null;
  readonly signs: boolean;
  /** Milliseconds since the epoch, by kind; kinds of which nothing lapses are absent. */
  readonly soonest_ends: CountsByKind;
  readonly webhooks: readonly WebhookCounts[];
}

interface WebhookCounts {
  readonly host: string;
  /** Entries of the audit log that were not taken yet. */
  readonly lag_entries: number;
  /** The age of the first of them. */
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

/** Registers them; the result sets them all. */
export function createStateMetrics(registry: Registry): (counts: AuthorityCounts) => void {
  const registers = [registry];
  const gauges = Object.entries(COUNTS).map(([name, [help, count]]) => ({
    gauge: new Gauge({ name, help, registers }),
    count,
  }));
  const subjects = new Gauge({
    name: 'mesh_na_subjects',
    help: 'Trust subjects held',
    labelNames: ['kind'] as const,
    registers,
  });
  const removedSubjects = new Gauge({
    name: 'mesh_na_subjects_removed_total',
    help: 'Trust subjects that were removed when their time had passed, ever',
    labelNames: ['kind'] as const,
    registers,
  });
  const posture = new Gauge({
    name: 'mesh_na_posture_finding',
    help: 'What is wrong: 1 needs attention, 2 needs action now, 0 is well',
    labelNames: ['rule'] as const,
    registers,
  });
  const nodes = new Gauge({
    name: 'mesh_na_nodes',
    help: 'Nodes that report, and how many of them are silent, unwell, lapsing or lapsed; a number that is not known is absent',
    labelNames: ['state'] as const,
    registers,
  });
  const diskFree = new Gauge({
    name: 'mesh_na_disk_free_bytes',
    help: 'Bytes free on the disk of the data folder',
    registers,
  });
  const diskMinFree = new Gauge({
    name: 'mesh_na_disk_min_free_bytes',
    help: 'With fewer bytes free nothing new is enrolled; 0 where that never happens',
    registers,
  });
  const delegatedUntil = new Gauge({
    name: 'mesh_na_delegation_not_after_seconds',
    help: 'When the delegation of the root key to the authority ends, seconds since the epoch',
    registers,
  });
  const soonestEnds = new Gauge({
    name: 'mesh_na_expiry_timestamp_seconds',
    help: 'When the first of each kind lapses, seconds since the epoch; a kind of which nothing lapses is absent',
    labelNames: ['kind'] as const,
    registers,
  });
  const signs = new Gauge({
    name: 'mesh_na_signer_available',
    help: '1 while signatures of the authority can be had',
    registers,
  });
  const webhookLagEntries = new Gauge({
    name: 'mesh_na_webhook_lag_entries',
    help: 'Entries of the audit log that a webhook has yet to take',
    labelNames: ['host'] as const,
    registers,
  });
  const webhookLagSeconds = new Gauge({
    name: 'mesh_na_webhook_lag_seconds',
    help: 'The age of the first of them',
    labelNames: ['host'] as const,
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
      // What is not known is left out: 0 would say that all is well.
      if (counts.posture_unknown.includes(name)) posture.remove({ rule: name });
      else posture.set({ rule: name }, finding === undefined ? 0 : GRAVITY[finding.severity]);
    }
    for (const [state, count] of Object.entries(counts.nodes)) {
      if (count === null) nodes.remove({ state });
      else nodes.set({ state }, count);
    }
    diskFree.set(counts.disk_free ?? Number.NaN);
    diskMinFree.set(counts.disk_min_free);
    soonestEnds.reset();
    for (const [kind, end] of Object.entries(counts.soonest_ends)) {
      soonestEnds.set({ kind }, end / 1000);
    }
    setLags(counts.webhooks);
    signs.set(counts.signs ? 1 : 0);
    delegatedUntil.set((counts.delegated_until ?? Number.NaN) / 1000);
  }

  /** Of several webhooks at one host, the one that is furthest behind. */
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
