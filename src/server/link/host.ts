/**
 * The link on the side of the instance that writes: followers send commands as edges on threads do, and get the
 * public documents ahead of the answers that rest on them.
 */

import type { Logger } from '../../base/log/logger.ts';
import type { LocalRateLimits } from '../../edge/rate-limit.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { PublishedName } from '../../protocol/contract/documents.ts';
import type { LinkedFollower } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher, Publication } from '../../protocol/contract/publications.ts';
import { endsAfter, newestSequence } from '../../protocol/contract/revision-ends.ts';
import { carryOut, createOutbox, type Outbox } from '../threads/edge-threads.ts';
import type { Answers, Batch } from '../threads/messages.ts';
import { HEARTBEAT_ROW } from '../threads/packed-heartbeat.ts';
import type { Frames } from './frames.ts';
import type { FromFollower, FromWriter, Hello, News, SentDocument } from './messages.ts';
import { createPace } from './pace.ts';
import { grownSince, type SentList, sentListOf } from './sent-list.ts';
import type { LinkAddress, Wire, Wires } from './wires.ts';

export interface LinkHostOptions {
  readonly address: LinkAddress;
  readonly wires: Wires;
  /** Only instances of the same program are served. */
  readonly program: string;
  readonly publisher: DocumentPublisher;
  readonly logger: Logger;
  elapsed(): number;
}

/** What an instance that writes lends to its followers. */
export interface WriterAccess {
  readonly epoch: number;
  readonly call: Call;
  readonly limits: LocalRateLimits;
  /** Null when nobody else can have written at this monotonic time; resolves with whether that is so. */
  heldSince(time: number): Promise<boolean> | null;
}

export interface LinkHost {
  /** Where followers find it, as `host:port`. */
  readonly address: string;
  /** Those that are linked at this time; no more than there can be connections. */
  followers(): readonly LinkedFollower[];
  /** Takes followers from now on; those who have come before have waited for it. */
  startServing(access: WriterAccess): void;
  /** Followers send no further request; resolves when those that they have sent are answered. */
  halt(): Promise<void>;
  close(): void;
}

/** A follower asks several times within this. */
const SILENCE_MS = 3000;
/** A follower with more than this unread gets no news but those that an answer rests on. */
const MOST_UNREAD_BYTES = 4 * 1024 ** 2;

interface Follower {
  readonly instance: string;
  readonly lag: FollowerLag;
  readonly access: WriterAccess;
  readonly frames: Frames<FromWriter>;
  readonly outbox: Outbox;
  /** The newest of each document that was not sent yet. */
  readonly unsent: Map<PublishedName, Publication | null>;
  /** The newest version of the revocation list that was sent; null before the first. */
  sentList: SentList | null;
  /** The newest version of the revocation list whose end was sent. */
  sentRevision: number;
  /** Ids of requests that are being carried out, but for those that wait for an event; the follower bounds them. */
  readonly unanswered: Set<unknown>;
  awaitsDrain: boolean;
  isHalted: boolean;
}

/** Resolves when it listens. */
export async function openLinkHost(options: LinkHostOptions): Promise<LinkHost> {
  const { publisher, logger, elapsed } = options;
  const published = new Map<PublishedName, Publication>();
  const followers = new Set<Follower>();
  let scheduled = false;
  let access: WriterAccess | null = null;
  let halted: (() => void) | null = null;
  /** Those who have come before this instance writes, which it is about to. */
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

  function noteChange(name: PublishedName, publication: Publication | null): void {
    if (followers.size === 0) return;
    for (const { unsent } of followers) {
      // The order of the last changes is kept: some documents are published together.
      unsent.delete(name);
      unsent.set(name, publication);
    }
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      for (const follower of followers) sendNews(follower);
    });
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
    frames.send({ type: 'answers', news: takeNews(follower), answers: null });
  }

  function takeNews(follower: Follower): News | null {
    const { unsent } = follower;
    if (unsent.size === 0) return null;
    const documents = Array.from(unsent, ([name, publication]) =>
      name === 'crl' ? takeList(follower, publication) : sentDocument(name, publication),
    );
    const ends = unsent.has('crl') ? takeRevisionEnds(follower) : [];
    unsent.clear();
    return { documents, ends };
  }

  /** Whole only once, as long as each version comes with what is signed of it. */
  function takeList(follower: Follower, publication: Publication | null): SentDocument {
    const before = follower.sentList;
    follower.sentList = publication && sentListOf(publication.document);
    if (before === null || publication === null || !follower.unsent.has('crl_revision')) {
      return sentDocument('crl', publication);
    }
    const grown = grownSince(before, publication.document);
    return grown === null ? sentDocument('crl', publication) : { name: 'crl', document: grown };
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
        else if (hello === null) throw new Error('a request came before the greeting');
        else if (follower !== null) serve(follower, message);
        // Nobody sends more than questions for a grant before the answer to the greeting.
        else if (message.type !== 'ask') throw new Error('a request came before the answer');
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
        access,
        frames,
        outbox,
        unsent: new Map(published),
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
      forgetAnswered(follower.unanswered, answers);
      frames.send({ type: 'answers', news: takeNews(follower), answers });
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
          void confirm(current, message.at);
          return;
        case 'halted':
          current.isHalted = true;
          settleHalt();
      }
    }

    /** The answer comes after all news that were sent before, so that the follower applies them first. */
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
  return {
    address: listening.address,
    followers: () =>
      Array.from(followers, ({ instance, lag }) => ({ instance, lag: lag.revisions() })),
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

function sentDocument(name: PublishedName, publication: Publication | null): SentDocument {
  if (publication === null) return { name, document: null };
  const { bytes, etag, freshUntil } = publication.document;
  // A copy: shared memory cannot be sent, and may be overwritten.
  return { name, document: { bytes: new Uint8Array(bytes), etag, freshUntil } };
}

type Requests = Pick<Batch, 'heartbeats' | 'requests'>;

/** A call that waits for the next event may wait for long, and is asked again of the next writer. */
const WAITING_CALL = 'readEvents';

function noteUnanswered(unanswered: Set<unknown>, { heartbeats, requests }: Requests): void {
  for (let i = 0; i < heartbeats.length; i += HEARTBEAT_ROW) unanswered.add(heartbeats[i]);
  for (let i = 0; i < requests.length; i += 3) {
    if (requests[i + 1] !== WAITING_CALL) unanswered.add(requests[i]);
  }
}

function forgetAnswered(unanswered: Set<unknown>, answers: Answers): void {
  const { answered, repeated, refused, failed } = answers;
  for (let i = 0; i < answered.length; i += 2) unanswered.delete(answered[i]);
  for (let i = 0; i < repeated.length; i += 2) unanswered.delete(repeated[i]);
  for (let i = 0; i < refused.length; i += 3) unanswered.delete(refused[i]);
  for (let i = 0; i < failed.length; i += 2) unanswered.delete(failed[i]);
}

/** The least lag within this time is shown. */
const LAG_SPAN_MS = 1000;

/** How far behind a follower is, by what it reports many times a second. */
export interface FollowerLag {
  /** The state that the follower keeps ready was this many revisions behind; null while it keeps none. */
  report(revisions: number | null): void;
  /**
   * The least that it has reported within a second: so what was written a moment ago, and is about to be read, does
   * not count, and a follower that keeps up is at 0 however much is written. Null while it keeps no state ready.
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
