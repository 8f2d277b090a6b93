/**
 * The treaties on the dashboard, most urgent first. Rendering a row takes some 20 µs, and rendering thousands of them
 * would block the authority for longer than any request may, so each row is rendered again only when its treaty or its
 * lifecycle changes.
 */
import type { Treaty } from '../../../machines/recognition-treaty.ts';
import { JsonText } from '../../base/json/write.ts';
import { displayTime, formatInstantIfAny } from '../../base/timestamp.ts';
import type { DashboardTreaty, TreatySummary } from '../../protocol/rows/dashboard.ts';
import { expiresSoonFrom, nextLifecycleChange } from '../recognition/lifecycle.ts';
import { edgeRow } from '../recognition/recognition-graph.ts';
import type { Edge } from '../recognition/recognition-index.ts';

export interface ListedTreaties {
  readonly treaties: JsonText;
  readonly summary: TreatySummary;
  /** Since when the first of those in the state has been in it, in milliseconds since the epoch; null without any. */
  readonly since: Readonly<Record<'expired' | 'expiring_soon', number | null>>;
}

interface Row {
  readonly json: string;
  readonly state: DashboardTreaty['lifecycle_state'];
  /** Lower is more urgent. */
  readonly rank: number;
  readonly expiresAt: number;
  /** The period in which the row is valid, in milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
}

/** One slice takes two or three milliseconds. */
const ROWS_PER_SLICE = 100;
const RISK_ORDER = ['high', 'expired', 'medium', 'low', 'none'];

export function createDashboardTreaties() {
  const rows = new WeakMap<Treaty, Row>();

  function current(edge: Edge, now: number): Row | null {
    const row = rows.get(edge.treaty);
    return row !== undefined && now >= row.from && now < row.until ? row : null;
  }

  function render(edge: Edge, now: number): Row {
    const row = renderedRow(edge, now);
    rows.set(edge.treaty, row);
    return row;
  }

  return {
    /** Renders missing and outdated rows, yielding after each slice. */
    *prepare(edges: readonly Edge[], now: number): Generator<void, void> {
      let rendered = 0;
      for (const edge of edges) {
        if (current(edge, now) !== null) continue;
        render(edge, now);
        rendered += 1;
        if (rendered % ROWS_PER_SLICE === 0) yield;
      }
    },
    /** All rows as a JSON list, with their counts. Fast if the rows were prepared. */
    list(edges: readonly Edge[], now: number): ListedTreaties {
      const listed = edges.map((edge) => current(edge, now) ?? render(edge, now));
      listed.sort((a, b) => a.rank - b.rank || a.expiresAt - b.expiresAt);
      const treaties = new JsonText(`[${listed.map(({ json }) => json).join(',')}]`);
      // Each state is sorted by when it ends.
      const first = (state: Row['state']) => listed.find((row) => row.state === state);
      const [expired, soon] = [first('expired'), first('expiring_soon')];
      return {
        treaties,
        summary: summarize(listed),
        since: {
          expired: expired?.expiresAt ?? null,
          expiring_soon: soon === undefined ? null : expiresSoonFrom(soon.expiresAt),
        },
      };
    },
  };
}

function renderedRow(edge: Edge, now: number): Row {
  const { from, to, ...row } = edgeRow(edge, now);
  const { treaty } = edge;
  const shown: DashboardTreaty = {
    ...row,
    issuer_sovereign_id: from,
    subject_sovereign_id: to,
    valid_from_display: displayTime(row.valid_from),
    expires_at_display: displayTime(row.expires_at),
    revoked_at: formatInstantIfAny(treaty.revokedAt),
    revocation_reason: treaty.revocationReason,
  };
  return {
    // A single flat string, so that joining thousands of rows copies each one only once.
    json: JSON.stringify(shown),
    state: row.lifecycle_state,
    rank: RISK_ORDER.indexOf(row.expiry_risk),
    expiresAt: treaty.expiresAt,
    from: now,
    until: nextLifecycleChange(treaty, now),
  };
}

function summarize(rows: readonly Row[]): TreatySummary {
  const count = (state: Row['state']) => rows.filter((row) => row.state === state).length;
  const expiringSoon = count('expiring_soon');
  const expired = count('expired');
  return {
    total: rows.length,
    active: count('active'),
    expiring_soon: expiringSoon,
    expired,
    revoked: count('revoked'),
    replaced: count('replaced'),
    warning_count: expiringSoon + expired,
  };
}
