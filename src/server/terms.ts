/** How an instance becomes active: at its start, or when its turn comes after it has waited as a standby. */
import type { ReadyState, SeenState } from '../authority/open.ts';
import type { PublishedDocument } from '../protocol/contract/documents.ts';
import type { OpenedStore } from '../store/open.ts';
import type { Front } from './front.ts';
import type { Prepared } from './prepare.ts';
import { waitForTurn } from './waiting.ts';
import { openWriter, type StateContext, type Writer } from './writer.ts';

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
    const writer = await openWriter({ ...context, opened, ready, seen, metrics, hostStatus });
    place.role = writer;
    return writer;
  }

  function lead({ call }: Writer, { tenure }: OpenedStore): void {
    if (tenure !== null) instances.lead(call, tenure);
  }

  async function waitAndTake(): Promise<void> {
    const text = `${turn.holder} is the writer; this instance is waiting for its turn`;
    logger.write('INFO', 'store', text);
    const waiting = waitForTurn(context, instances.looked, () => lastList);
    place.role = waiting;
    const opened = await turn.opening;
    if (lifecycle.state !== 'serving') return opened.store.abandon();
    const ready = opened.tenure && (await waiting.take(opened.tenure.previousOwner));
    const writer = await begin(opened, ready, waiting.seen());
    if (lifecycle.state !== 'serving') return;
    lead(writer, opened);
    await writer.begin(background);
  }

  return {
    /** Resolves with the authority if this instance is active at once; with null if another one is. */
    async first(): Promise<Writer | null> {
      if (turn.opened === null) return null;
      const writer = await begin(turn.opened, null, null);
      lead(writer, turn.opened);
      return writer;
    },
    waitAndTake,
    /** Notes a revocation list that the active instance has answered with. */
    passedOn(list: PublishedDocument): void {
      lastList = list;
    },
  };
}
