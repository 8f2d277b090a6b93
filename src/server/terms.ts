/** How an instance becomes active: at its start, or after it was a standby. */
import type { ReadyState, SeenState } from '../authority/open.ts';
import type { PublishedDocument } from '../protocol/contract/documents.ts';
import type { OpenedStore } from '../store/open.ts';
import { type ActiveRole, openActive, type StateContext } from './active.ts';
import type { Front } from './front.ts';
import type { Prepared } from './prepare.ts';
import { standBy } from './standby.ts';

export type Terms = ReturnType<typeof createTerms>;

/** `front` resolves once there are edges; none can call the authority before that. */
export function createTerms(prepared: Prepared, front: Promise<Front>) {
  const { options, logger, metrics, lifecycle, background, instances, place } = prepared;
  const { opening } = instances;
  const context: StateContext = {
    ...prepared,
    listThreadFrom: options.listThreadFrom,
    edgesCaughtUp: async () => (await front).barrier(),
  };
  /** The revocation list that was passed on last. */
  let lastList: PublishedDocument | undefined;

  async function open(opened: OpenedStore, ready: ReadyState | null, seen: SeenState | null) {
    const hostStatus = () => prepared.hostStatus;
    const active = await openActive({ ...context, opened, ready, seen, metrics, hostStatus });
    place.role = active;
    return active;
  }

  return {
    /** Resolves with the authority if this instance is active at once; with null if another one is. */
    async first(): Promise<ActiveRole | null> {
      const { opened } = opening;
      if (opened === null) return null;
      const active = await open(opened, null, null);
      instances.beginTerm(active.call, opened.lease);
      return active;
    },
    /** Keeps the state ready until this instance may become active, and makes it active. */
    async standByAndTake(): Promise<void> {
      logger.write('INFO', 'store', `${opening.active} is active; this instance is a standby`);
      const standby = standBy(context, instances.looked, () => lastList);
      place.role = standby;
      const opened = await opening.opening;
      if (lifecycle.state !== 'serving') return opened.store.abandon();
      const ready = opened.lease && (await standby.take(opened.lease.previousOwner));
      const active = await open(opened, ready, standby.seen());
      if (lifecycle.state !== 'serving') return;
      instances.beginTerm(active.call, opened.lease);
      await active.begin(background);
    },
    /** Notes a revocation list that the active instance has answered with. */
    passedOn(list: PublishedDocument): void {
      lastList = list;
    },
  };
}
