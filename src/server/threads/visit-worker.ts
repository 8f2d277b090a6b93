/** Visits partners, and asks the authority to decide on what they answer. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Call } from '../../protocol/contract/calls.ts';
import { createVisitor, type Visited, type VisitOptions } from '../federation/visit.ts';
import { type AuthorityProcedures, arrivedAnswer, toCloneable } from './crossing.ts';
import { createPeer } from './rpc.ts';
import type { VisitProcedures } from './visit-thread.ts';

const port = parentPort;
if (port === null) throw new Error('Partners are visited on a worker thread');
const visits = new Set<Promise<Visited>>();

const authority = createPeer<Pick<AuthorityProcedures, 'ask'>>(port, {
  visit(...given) {
    const visited = visitor.visit(...given).finally(() => visits.delete(visited));
    visits.add(visited);
    return visited;
  },
  async exit() {
    visitor.stop();
    await Promise.allSettled(visits);
    port.close();
  },
} satisfies VisitProcedures);

const call: Call = (name, given) =>
  authority.call('ask', name, toCloneable(given)).then(arrivedAnswer);
const visitor = createVisitor(workerData as VisitOptions, call);
