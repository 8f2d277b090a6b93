/**
 * GET /nodes: the public count and the operators' roster of active nodes [core-4-15]. A roster is read in pieces, so
 * that a large fleet does not delay other commands.
 */
import { JsonText, jsonText } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { descriptionRow } from '../node-descriptions.ts';
import type { ContactView } from './rosters.ts';

/** Building one piece takes the authority about a millisecond. */
const ROWS_PER_PIECE = 250;

export const countNodes: Handler<'countNodes'> = (na, _given, at) => ({
  count: na.liveness.activeCount(at),
});

/** Opens the current roster; returns its id for `readRoster` and the number of its nodes. */
export const openRoster: Handler<'openRoster'> = (na, _given, at) => {
  const walk = na.liveness.walk(at);
  return { roster: na.rosters.open(walk), count: walk.count };
};

/** The next members of `nodes` as text, without the enclosing braces; empty at the end. */
export const readRoster: Handler<'readRoster'> = (na, roster) => {
  const views = na.rosters.read(roster, ROWS_PER_PIECE);
  if (views === null) throw new Refusal('service_not_ready');
  return new JsonText(views.map((view) => `${jsonText(view.id)}:${row(na, view)}`).join());
};

export const closeRoster: Handler<'closeRoster'> = (na, roster) => {
  na.rosters.close(roster);
  return null;
};

function row(na: Authority, { id, status, lastSeen, remoteAddr }: ContactView): string {
  const certificate = na.subjects.committed('certificate', id)?.context;
  return jsonText({
    node_public_key: certificate?.nodePublicKey ?? '',
    ...descriptionRow(na.certificates.descriptionOf(id)),
    roles: certificate?.roles ?? [],
    status,
    last_heartbeat: formatInstant(lastSeen),
    remote_addr: remoteAddr,
    expires_at: formatInstant(certificate?.expiresAt ?? 0),
  });
}
