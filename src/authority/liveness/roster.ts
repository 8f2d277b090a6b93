/**
 * GET /nodes: the public count and the operators' roster of active nodes (wire rules 4.15). A roster is
 * read in pieces, so that a large fleet's never keeps other commands waiting.
 */

import type { OperatorClaim } from '../../contract/claims.ts';
import { jsonText } from '../../json/write.ts';
import { Refusal } from '../../refusal.ts';
import { formatInstant } from '../../timestamp.ts';
import type { Authority, Handler } from '../engine/execute.ts';
import { authenticateOperator } from '../enrolment/operator-keys.ts';
import type { ContactView } from './roster-walk.ts';

/** Making one piece takes the authority about a millisecond. */
const ROWS_PER_PIECE = 250;

export const countNodes: Handler<null> = (na, unit) =>
  `{"count":${na.liveness.activeCount(unit.at)}}`;

/** The roster as it stands now: its number for `readRoster`, and how many nodes it has. */
export const openRoster: Handler<OperatorClaim> = (na, unit, operator) => {
  authenticateOperator(na, unit, operator, 'standard');
  const walk = na.liveness.walk(unit.at);
  return jsonText({ roster: na.rosters.open(walk), count: walk.count });
};

/** The next members of `nodes`, without braces; nothing once all were read. */
export const readRoster: Handler<number> = (na, _, roster) => {
  const views = na.rosters.read(roster, ROWS_PER_PIECE);
  if (views === null) throw new Refusal('service_not_ready');
  return views.map((view) => `${JSON.stringify(view.id)}:${row(na, view)}`).join();
};

export const closeRoster: Handler<number> = (na, _, roster) => {
  na.rosters.close(roster);
  return '';
};

function row(na: Authority, { id, status, lastSeen, remoteAddr }: ContactView): string {
  const certificate = na.subjects.committed('certificate', id)?.context;
  return jsonText({
    node_public_key: certificate?.nodePublicKey ?? '',
    roles: certificate?.roles ?? [],
    status,
    last_heartbeat: formatInstant(lastSeen),
    remote_addr: remoteAddr,
    expires_at: formatInstant(certificate?.expiresAt ?? 0),
  });
}
