/**
 * The thread that visits partners, as seen by the authority's thread. What strangers answer may take long to read and to
 * verify, and nobody else waits for it.
 */
import type { Call, CallName, CallOf } from '../../protocol/contract/calls.ts';
import type { VisitThread } from '../federation/federation.ts';
import type { VisitOptions } from '../federation/visit.ts';
import { type AuthorityProcedures, crossing, fromCloneable } from './crossing.ts';
import { createPeer, endOf, startWorker } from './rpc.ts';

export type VisitProcedures = {
  visit: VisitThread['visit'];
  /** Ends the thread, and the visits first. */
  exit(): Promise<void>;
};

export function startVisitThread(
  options: VisitOptions,
  call: Call,
  onFailure: (cause: unknown) => void,
): VisitThread {
  const worker = startWorker('visit', options);
  const ended = endOf(worker, onFailure);
  const thread = createPeer<VisitProcedures>(worker, {
    ask: (name, command) => crossing(call(name, fromCloneable(command) as CallOf<CallName>)),
  } satisfies Pick<AuthorityProcedures, 'ask'>);
  return {
    visit: (...given) => thread.call('visit', ...given),
    end() {
      thread.notify('exit');
      void ended.expected();
    },
  };
}
