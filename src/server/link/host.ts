/**
 * The writer's side of the link: followers send commands, as edges on threads do, and receive public documents before
 * the answers that depend on them.
 */

import type { Logger } from '../../base/log/logger.ts';
import type { LocalRateLimits } from '../../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../../edge/limits/request-queue.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { PublishedName } from '../../protocol/contract/documents.ts';
import type { LinkedFollower } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher, Publication } from '../../protocol/contract/publications.ts';
import { endsAfter, newestSequence } from '../../protocol/contract/revision-ends.ts';
import {
  atEndOfTurn,
  carryOut,
  createOutbox,
  type Outbox,
  settledIds,
} from '../threads/answers.ts';
import type { Answers, Batch } from '../threads/messages.ts';
import { HEARTBEAT_ROW } from '../threads/packed-heartbeat.ts';
import type { Frames } from './frames.ts';
import type {
  FromFollower,
  FromWriter,
  Hello,
  News,
  SentDocument,
  WholeDocument,
} from './messages.ts';
import { createPace } from './pace.ts';
import { grownSince, type SentList, sentListOf } from './sent-list.ts';
import type { LinkAddress, Wire, Wires } from './wires.ts';

export interface LinkHostOptions {
  readonly address: LinkAddress;
  readonly wires: Wires;
  /** The program version; only instances with the same one are served. */
  readonly program: string;
  readonly publisher: DocumentPublisher;
  readonly logger: Logger;
  elapsed(): number;
}

/** The parts of the writer that its followers use. */
export interface WriterAccess {
  readonly epoch: number;
  readonly call: Call;
  /** The queue of this thread. */
  readonly queue: RequestQueue;
  readonly limits: LocalRateLimits;
  /**
   * Null if certainly nobody else could have written by this monotonic time; otherwise resolves with whether that is
   * so.
   */
  heldSince(time: number): Promise<boolean> | null;
}

export interface LinkHost {
  /** The address for followers, as `host:port`. */
  readonly address: string;
  /** The followers linked now; their number is bounded by the number of connections. */
  followers(): readonly LinkedFollower[];
  /** Accepts followers from now on, including those that connected before and are waiting. */
  startServing(access: WriterAccess): void;
  /** Followers send no further request; resolves when those that they have sent are answered. */
  halt(): Promise<void>;
  close(): void;
}

/** A follower checks in several times within this period. */
const SILENCE_MS = 3000;
/** A follower with more unread bytes than this receives only the news that answers depend on. */
const MOST_UNREAD_BYTES = 4 * 1024 ** 2;

/** The newest version of a document that was not sent yet; null if it was sent or withdrawn before it could be. */
interface Unsent {
  readonly publication: Publication | null;
  readonly isOutdated: boolean;
}

interface Follower {
  readonly instance: string;
  readonly lag: FollowerLag;
  nextKey: string | null;
  readonly access: WriterAccess;
  readonly frames: Frames<FromWriter>;
  readonly outbox: Outbox;
  readonly unsent: Map<PublishedName, Unsent>;
  /** The newest version of the revocation list that was sent; null before the first. */
  sentList: SentList | null;
  /** The newest version of the revocation list whose end offset was sent. */
  sentRevision: number;
  /** Ids of requests in progress, except for those that wait for an event, whose number the follower bounds. */
  readonly unanswered: Set<unknown>;
  awaitsDrain: boolean;
  isHalted: boolean;
}

/** Resolves once it is listening. */
export async function openLinkHost(options: LinkHostOptions): Promise<LinkHost> {
  const { publisher, logger, elapsed } = options;
  const published = new Map<PublishedName, Publication>();
  const followers = new Set<Follower>();
  const scheduleNews = atEndOfTurn(() => {
    for (const follower of followers) sendNews(follower);
  });
  let access: WriterAccess | null = null;
  let halted: (() => void) | null = null;
  /** Followers that connected before this instance became the writer. */
  const pendingFollowers = new Map<Frames<FromWriter>, (access: WriterAccess) => void>();

  publisher.follow(
    (publication) => {
      published.set(publication.name, publication);
      noteChange(publication.name, publication);
    },
    (name) => {
      published.delete(name);
      noteChange(name, null);
    },
  );

  /** Null for a document that is outdated. */
  function noteChange(name: PublishedName, publication: Publication | null): void {
    if (followers.size === 0) return;
    const isOutdated = publication === null;
    for (const { unsent } of followers) {
      // A question may still wait for a version that is outdated by now: the follower has only older ones.
      const newest = publication ?? unsent.get(name)?.publication ?? null;
      // Documents are kept in the order of their last change, because some are published together.
      unsent.delete(name);
      unsent.set(name, { publication: newest, isOutdated });
    }
    scheduleNews();
  }

  function sendNews(follower: Follower): void {
    const { frames, unsent } = follower;
    if (unsent.size === 0) return;
    if (follower.awaitsDrain) return;
    if (frames.waiting() > MOST_UNREAD_BYTES) {
      follower.awaitsDrain = true;
      frames.onceDrained(() => {
        follower.awaitsDrain = false;
        sendNews(follower);
      });
      return;
    }
    frames.send({ type: 'answers', news: takeUnsentNews(follower), answers: null });
  }

  function takeUnsentNews(follower: Follower): News | null {
    const { unsent } = follower;
    if (unsent.size === 0) return null;
    const documents = Array.from(unsent, ([name, newest]) => ({
      name,
      document: name === 'crl' ? takeList(follower, newest.publication) : whole(newest.publication),
      isOutdated: newest.isOutdated,
    }));
    const ends = unsent.has('crl') ? takeRevisionEnds(follower) : [];
    unsent.clear();
    return { documents, ends };
  }

  /**
   * The whole list is sent only once; after that, each version is sent as a difference together with its signed
   * revision.
   */
  function takeList(follower: Follower, publication: Publication | null): SentDocument['document'] {
    const before = follower.sentList;
    follower.sentList = publication && sentListOf(publication.document);
    if (before === null || publication === null || !follower.unsent.has('crl_revision')) {
      return whole(publication);
    }
    return grownSince(before, publication.document) ?? whole(publication);
  }

  function takeRevisionEnds(follower: Follower): number[] {
    const ends = endsAfter(publisher.revisionEnds, follower.sentRevision);
    follower.sentRevision = newestSequence(publisher.revisionEnds);
    return ends;
  }

  function accept(wire: Wire): void {
    if (halted !== null) {
      wire.end();
      return;
    }
    let follower: Follower | null = null;
    let hello: Hello | null = null;
    const frames = wire.open<FromWriter, FromFollower>(SILENCE_MS, {
      take(message) {
        if (message.type === 'hello') greet(message);
        else if (hello === null) throw new Error('a request arrived before the greeting');
        else if (follower !== null) serve(follower, message);
        // Before the greeting is answered, only `ask` messages are allowed.
        else if (message.type !== 'ask')
          throw new Error('a request arrived before the greeting was answered');
      },
      closed(problem) {
        pendingFollowers.delete(frames);
        if (follower === null) return;
        follower.outbox.close();
        followers.delete(follower);
        settleHalt();
        const reason = problem === null ? '' : `: ${problem}`;
        logger.write('INFO', 'link', `The link of ${hello?.name} has ended${reason}`);
      },
    });

    function greet(given: Hello): void {
      if (hello !== null || given.program !== options.program) {
        frames.end();
        return;
      }
      hello = given;
      if (access === null) pendingFollowers.set(frames, (later) => begin(given, later));
      else begin(given, access);
    }

    function begin({ name, instance }: Hello, access: WriterAccess): void {
      const outbox = createOutbox({ post: (answers) => send(answers) }, (flush) =>
        createPace(elapsed, flush),
      );
      follower = {
        instance,
        lag: createFollowerLag(elapsed),
        nextKey: null,
        access,
        frames,
        outbox,
        unsent: new Map(
          Array.from(published, ([name, publication]) => [
            name,
            { publication, isOutdated: false },
          ]),
        ),
        sentList: null,
        sentRevision: -1,
        unanswered: new Set(),
        awaitsDrain: false,
        isHalted: false,
      };
      followers.add(follower);
      frames.send({ type: 'welcome', epoch: access.epoch });
      sendNews(follower);
      logger.write('INFO', 'link', `${name} is linked`);
    }

    function send(answers: Answers): void {
      if (follower === null) return;
      for (const id of settledIds(answers)) follower.unanswered.delete(id);
      frames.send({ type: 'answers', news: takeUnsentNews(follower), answers });
      settleHalt();
    }

    function serve(current: Follower, message: Exclude<FromFollower, { type: 'hello' }>): void {
      switch (message.type) {
        case 'requests': {
          noteUnanswered(current.unanswered, message);
          carryOut(message, current.access, current.outbox);
          return;
        }
        case 'ask':
          current.lag.report(message.lag);
          current.nextKey = message.nextKey;
          void confirm(current, message.at);
          return;
        case 'halted':
          current.isHalted = true;
          settleHalt();
      }
    }

    /** The answer is sent after all earlier news, so that the follower applies those first. */
    async function confirm(current: Follower, at: number): Promise<void> {
      if (frames.waiting() > MOST_UNREAD_BYTES) return;
      const isHeld = await current.access.heldSince(elapsed());
      if (isHeld === false || current.isHalted || halted !== null) return;
      sendNews(current);
      frames.send({ type: 'complete', at });
    }
  }

  function settleHalt(): void {
    if (halted === null) return;
    for (const { isHalted, unanswered } of followers) if (!isHalted || unanswered.size > 0) return;
    halted();
  }

  const listening = await options.wires.listen(options.address, accept);
  publisher.follow(({ name }) => {
    // Another key may sign now, and one that was stolen no longer proves anything.
    if (name === 'authority_keys') setImmediate(listening.endUnaccepted);
  });
  return {
    address: listening.address,
    followers: () =>
      Array.from(followers, ({ instance, lag, nextKey }) => ({
        instance,
        lag: lag.revisions(),
        nextKey,
      })),
    startServing(given) {
      access = given;
      for (const begin of pendingFollowers.values()) begin(given);
      pendingFollowers.clear();
    },
    halt() {
      access = null;
      return new Promise<void>((resolve) => {
        halted = resolve;
        for (const { frames } of followers) frames.send({ type: 'halt' });
        settleHalt();
      });
    },
    close() {
      access = null;
      halted ??= () => undefined;
      for (const { frames } of followers) frames.end();
      for (const frames of pendingFollowers.keys()) frames.end();
      listening.close();
    },
  };
}

function whole(publication: Publication | null): WholeDocument | null {
  if (publication === null) return null;
  const { bytes, etag, freshUntil } = publication.document;
  // Copied, because shared memory cannot be sent and may be overwritten.
  return { bytes: new Uint8Array(bytes), etag, freshUntil };
}

type Requests = Pick<Batch, 'heartbeats' | 'requests'>;

/** A call that waits for the next event may take long; it is repeated with the next writer. */
const WAITING_CALL = 'readEvents';

function noteUnanswered(unanswered: Set<unknown>, { heartbeats, requests }: Requests): void {
  for (let i = 0; i < heartbeats.length; i += HEARTBEAT_ROW) unanswered.add(heartbeats[i]);
  for (let i = 0; i < requests.length; i += 3) {
    if (requests[i + 1] !== WAITING_CALL) unanswered.add(requests[i]);
  }
}

/** The smallest lag within this period is shown. */
const LAG_SPAN_MS = 1000;

/** The lag of a follower, computed from its frequent reports. */
export interface FollowerLag {
  /** Reports how many revisions the follower's standby state was behind; null while it has none. */
  report(revisions: number | null): void;
  /**
   * The smallest lag reported within the last second. Revisions written a moment ago thus do not count, and a follower
   * that keeps up is at 0 under any load. Null while it has no standby state.
   */
  revisions(): number | null;
}

export function createFollowerLag(elapsed: () => number): FollowerLag {
  let known: number | null = null;
  let least = Number.POSITIVE_INFINITY;
  let since = elapsed();

  function know(revisions: number | null): void {
    known = revisions;
    least = Number.POSITIVE_INFINITY;
    since = elapsed();
  }

  return {
    report(revisions) {
      if (revisions === null || known === null) {
        know(revisions);
        return;
      }
      least = Math.min(least, revisions);
      if (elapsed() - since >= LAG_SPAN_MS) know(least);
    },
    revisions: () => known,
  };
}
