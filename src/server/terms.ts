/** How an instance becomes active: at its start, or when its turn comes after it has waited as a standby. */
import type { ReadyState, SeenState } from '../authority/open.ts';
import type { PublishedDocument } from '../protocol/contract/documents.ts';
import type { OpenedStore } from '../store/open.ts';
import { type ActiveRole, becomeActive, type StateContext } from './active.ts';
import type { Front } from './front.ts';
import type { Prepared } from './prepare.ts';
import { standBy } from './standby.ts';

export type Terms = ReturnType<typeof createTerms>;

/** `front` resolves once there are edges; none can call the authority before that. */
export function createTerms(prepared: Prepared, front: Promise<Front>) {
  const { options, logger, metrics, lifecycle, background, instances, place } = prepared;
  const { turn } = instances;
  const context: StateContext = {
    ...prepared,
    listThreadFrom: options.listThreadFrom,
    edgesCaughtUp: async () => (await front).barrier(),
  };
  /** The revocation list that was passed on last. */
  let lastList: PublishedDocument | undefined;

  async function begin(opened: OpenedStore, ready: ReadyState | null, seen: SeenState | null) {
    const hostStatus = () => prepared.hostStatus;
    const active = await becomeActive({ ...context, opened, ready, seen, metrics, hostStatus });
    place.role = active;
    return active;
  }

  function lead({ call }: ActiveRole, { lease }: OpenedStore): void {
    if (lease !== null) instances.lead(call, lease);
  }

  async function waitAndTake(): Promise<void> {
    const text = `${turn.holder} is active; this instance is a standby`;
    logger.write('INFO', 'store', text);
    const waiting = standBy(context, instances.looked, () => lastList);
    place.role = waiting;
    const opened = await turn.opening;
    if (lifecycle.state !== 'serving') return opened.store.abandon();
    const ready = opened.lease && (await waiting.take(opened.lease.previousOwner));
    const active = await begin(opened, ready, waiting.seen());
    if (lifecycle.state !== 'serving') return;
    lead(active, opened);
    await active.begin(background);
  }

  return {
    /** Resolves with the authority if this instance is active at once; with null if another one is. */
    async first(): Promise<ActiveRole | null> {
      if (turn.opened === null) return null;
      const active = await begin(turn.opened, null, null);
      lead(active, turn.opened);
      return active;
    },
    waitAndTake,
    /** Notes a revocation list that the active instance has answered with. */
    passedOn(list: PublishedDocument): void {
      lastList = list;
    },
  };
}
