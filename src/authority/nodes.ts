/** GET /nodes: the public count and the operators' roster of active nodes (wire rules 4.15). */
import { jsonText } from '../json/write.ts';
import { formatInstant } from '../timestamp.ts';
import type { Authority, Handler } from './authority.ts';
import type { OperatorClaim } from './commands.ts';
import { authenticateOperator } from './operators.ts';

export const countNodes: Handler<null> = (na, unit) =>
  `{"count":${na.liveness.activeCount(unit.at)}}`;

export const listNodes: Handler<OperatorClaim> = (na, unit, operator) => {
  authenticateOperator(na, unit, operator, 'standard');
  const nodes: { [certId: string]: ReturnType<typeof row> } = {};
  for (const pulse of na.liveness.active(unit.at)) nodes[pulse.id] = row(na, pulse);
  return jsonText({ count: Object.keys(nodes).length, nodes });
};

function row(
  na: Authority,
  pulse: { id: string; lastSeen: number; status: string; remoteAddr: string },
) {
  const certificate = na.subjects.committed('certificate', pulse.id)?.context;
  return {
    node_public_key: certificate?.nodePublicKey ?? '',
    roles: certificate?.roles ?? [],
    status: pulse.status,
    last_heartbeat: formatInstant(pulse.lastSeen),
    remote_addr: pulse.remoteAddr,
    expires_at: formatInstant(certificate?.expiresAt ?? 0),
  };
}
