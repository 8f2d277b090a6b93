/** The follower's side of the link: one connection to the current writer. */

import type { Logger } from '../../base/log/logger.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import {
  DOCUMENT_NAMES,
  type DocumentName,
  receivedDocument,
} from '../../protocol/contract/documents.ts';
import { type InstanceStatus, noteFollower } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import { takeEnds } from '../../protocol/contract/revision-ends.ts';
import { readAnswers } from '../threads/answers.ts';
import { toCloneable } from '../threads/cloneable.ts';
import type { Answers } from '../threads/messages.ts';
import { copyHeartbeat, packHeartbeat } from '../threads/packed-heartbeat.ts';
import type { Frames } from './frames.ts';
import type { FromFollower, FromWriter, News, SentDocument } from './messages.ts';
import { createPace } from './pace.ts';
import { createReceivedList } from './received-list.ts';
import type { Wire, Wires } from './wires.ts';

/** The outcome of a request sent over the link. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'failed'; readonly problem: string }
  /** The link was lost before the answer. */
  | { readonly kind: 'lost' };

export interface Writer {
  readonly epoch: number;
  /** As `host:port`. */
  readonly link: string;
}

export interface LinkClientOptions {
  readonly wires: Wires;
  readonly program: string;
  /** The name of this instance. */
  readonly name: string;
  /** The id of this start. */
  readonly instance: string;
  readonly publisher: DocumentPublisher;
  readonly instanceStatus: InstanceStatus;
  readonly logger: Logger;
  elapsed(): number;
  /** Called when requests can be sent. */
  linked(): void;
  /** Resolves when no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
  /** Called with the time that the writer took to answer. */
  answered(milliseconds: number): void;
  /** The staged authority key, if this instance holds it. */
  nextKey(): string | null;
}

export interface LinkClient {
  /** Connects to this writer unless already connected or connecting. Call it repeatedly. */
  follow(writer: Writer): void;
  /** False if nothing can be sent now; otherwise calls back once. */
  send(name: string, question: unknown, ended: (outcome: Outcome) => void): boolean;
  /** Like `send`, for the heartbeat whose row begins at index `start` of `rows`. */
  sendHeartbeat(
    rows: readonly unknown[],
    start: number,
    ended: (outcome: Outcome) => void,
  ): boolean;
  isLinked(): boolean;
  /** The local copies include everything acknowledged before this monotonic time; null before the first link. */
  completeUntil(): number | null;
  /** Ends the link for good. */
  close(): void;
}

/** Interval between checks that the other instance is still the writer; a missing answer reveals a lost link. */
const ASK_MS = 100;
const SILENCE_MS = 1000;
/** Initial delay before reconnecting to an instance that was unreachable or rejected this one; doubled each time. */
const AGAIN_MS = 100;
const AGAIN_AT_MOST_MS = 1000;
/** A link that is down for longer is logged. */
const PATIENCE_MS = 5000;
/**
 * How long heartbeats are collected into one message. Doubling it would save the writer a tenth of the cost of a
 * heartbeat, but cost a client with few heartbeats in flight a sixth of its rate.
 */
const HEARTBEATS_APART_MS = 2;
const MOST_UNANSWERED = 10_000;
const MOST_UNSENT_BYTES = 16 * 1024 ** 2;

interface Connection {
  readonly writer: Writer;
  readonly frames: Frames<FromFollower>;
  /** Whether requests may be sent. */
  isOpen: boolean;
  /** False if the other instance rejected this one because it is not the writer yet or has a different version. */
  wasWelcome: boolean;
  readonly unanswered: Map<unknown, (outcome: Outcome) => void>;
}

export function createLinkClient(options: LinkClientOptions): LinkClient {
  const { publisher, instanceStatus, logger, elapsed } = options;
  let connection: Connection | null = null;
  let connecting: { end(): void } | null = null;
  let isClosed = false;
  let tried: Writer | null = null;
  /** When the next connection attempt may be made, monotonic milliseconds. */
  let notBefore = 0;
  let pause = AGAIN_MS;
  let unlinkedSince: number | null = null;
  let hasWarned = false;
  let completeUntil: number | null = null;
  let lastId = 0;
  let heartbeats: unknown[] = [];
  let requests: unknown[] = [];
  const schedule = createPace(elapsed, flush);
  const list = createReceivedList({
    publish: (document) => publisher.publish('crl', document),
    edgesCaughtUp: options.edgesCaughtUp,
  });

  function follow(writer: Writer): void {
    if (isClosed) return;
    if (connection !== null && !isSame(connection.writer, writer)) connection.frames.end();
    if (tried === null || !isSame(tried, writer)) {
      tried = writer;
      notBefore = 0;
      pause = AGAIN_MS;
    }
    if (connection === null && connecting === null && elapsed() >= notBefore) open(writer);
    if (connection?.isOpen !== true) warnIfLong(writer);
  }

  /** A link that is down only while another instance takes over is not logged. */
  function warnIfLong({ link }: Writer): void {
    unlinkedSince ??= elapsed();
    if (hasWarned || elapsed() - unlinkedSince < PATIENCE_MS) return;
    hasWarned = true;
    const problem = `The writer cannot be reached at ${link}, or has a different version: this instance cannot answer requests`;
    logger.write('WARNING', 'link', problem);
  }

  function open(writer: Writer): void {
    connecting = options.wires.connect(writer.link, {
      opened(wire) {
        connecting = null;
        if (isClosed) wire.end();
        else begin(wire, writer);
      },
      ended() {
        connecting = null;
        backOff(writer);
      },
    });
  }

  function backOff(writer: Writer): void {
    if (tried === null || !isSame(tried, writer)) return;
    notBefore = elapsed() + pause;
    pause = Math.min(AGAIN_AT_MOST_MS, 2 * pause);
  }

  function begin(wire: Wire, writer: Writer): void {
    const frames = wire.open<FromFollower, FromWriter>(SILENCE_MS, {
      take: (message) => take(current, message),
      closed(problem) {
        clearInterval(asking);
        lose(current, problem);
      },
    });
    const current: Connection = {
      writer,
      frames,
      isOpen: false,
      wasWelcome: false,
      unanswered: new Map(),
    };
    const asking = setInterval(() => ask(current), ASK_MS);
    connection = current;
    const { program, name, instance } = options;
    frames.send({ type: 'hello', program, name, instance });
  }

  function ask({ frames }: Connection): void {
    frames.send({
      type: 'ask',
      at: elapsed(),
      lag: instanceStatus.lag(),
      nextKey: options.nextKey(),
    });
  }

  function take(current: Connection, message: FromWriter): void {
    if (connection !== current) return;
    switch (message.type) {
      case 'welcome':
        welcome(current, message.epoch);
        return;
      case 'answers':
        if (message.news !== null) apply(message.news);
        if (message.answers !== null) answer(current, message.answers);
        return;
      case 'complete':
        if (!current.isOpen) return;
        options.answered(elapsed() - message.at);
        completeUntil = message.at;
        return;
      case 'halt':
        halt(current);
    }
  }

  function welcome(current: Connection, epoch: number): void {
    // Documents that an earlier writer published may be outdated.
    withdrawAll(publisher);
    noteFollower(instanceStatus.memory, epoch);
    current.isOpen = true;
    current.wasWelcome = true;
    pause = AGAIN_MS;
    unlinkedSince = null;
    hasWarned = false;
    ask(current);
    logger.write('INFO', 'link', `Linked to the writer at ${current.writer.link}`);
    options.linked();
  }

  function apply({ documents, ends }: News): void {
    takeEnds(publisher.revisionEnds, ends);
    for (const sent of documents) applyDocument(sent, documents);
  }

  function applyDocument(sent: SentDocument, news: readonly SentDocument[]): void {
    publishReceived(sent, news);
    if (sent.isOutdated) publisher.withdraw(sent.name as DocumentName);
  }

  function publishReceived({ name, document }: SentDocument, news: readonly SentDocument[]): void {
    if (document === null) return;
    if ('base' in document) {
      const revision = news.find((other) => other.name === 'crl_revision')?.document;
      if (!revision || 'base' in revision)
        throw new Error('a list arrived without its signed revision');
      list.grow(document, revision);
      return;
    }
    const { bytes, etag, freshUntil } = document;
    const whole = receivedDocument(bytes, etag, freshUntil);
    if (name === 'crl') list.begin(whole);
    publisher.publish(name, whole);
  }

  function answer({ unanswered }: Connection, answers: Answers): void {
    function settle(id: unknown, outcome: Outcome): void {
      const ended = unanswered.get(id);
      unanswered.delete(id);
      ended?.(outcome);
    }
    readAnswers(answers, {
      answered: (id, answer) => settle(id, { kind: 'answered', answer }),
      failed: (id, problem) => settle(id, { kind: 'failed', problem }),
    });
  }

  /** Another instance is taking over: requests already sent are answered first, and new ones wait. */
  function halt(current: Connection): void {
    flush();
    current.isOpen = false;
    current.frames.send({ type: 'halted' });
  }

  function lose(current: Connection, problem: string | null): void {
    if (connection !== current) return;
    connection = null;
    heartbeats = [];
    requests = [];
    list.begin(null);
    if (current.wasWelcome) {
      const reason = problem === null ? '' : `: ${problem}`;
      logger.write('INFO', 'link', `The link to ${current.writer.link} has ended${reason}`);
    } else backOff(current.writer);
    for (const ended of current.unanswered.values()) ended({ kind: 'lost' });
    current.unanswered.clear();
  }

  /** All requests of one turn of the event loop are sent together, and under load, those of several turns. */
  function flush(): void {
    if (connection === null || heartbeats.length + requests.length === 0) return;
    connection.frames.send({ type: 'requests', heartbeats, requests });
    heartbeats = [];
    requests = [];
  }

  /** An id for a new request; null if nothing can be sent now. */
  function admit(ended: (outcome: Outcome) => void): number | null {
    if (connection === null || !connection.isOpen) return null;
    const { unanswered, frames } = connection;
    if (unanswered.size >= MOST_UNANSWERED || frames.waiting() > MOST_UNSENT_BYTES) return null;
    lastId += 1;
    unanswered.set(lastId, ended);
    return lastId;
  }

  return {
    follow,
    send(name, question, ended) {
      const id = admit(ended);
      if (id === null) return false;
      if (name === 'heartbeat') {
        packHeartbeat(heartbeats, id, question as CallInput<'heartbeat'>);
        schedule(HEARTBEATS_APART_MS);
      } else {
        requests.push(id, name, toCloneable(question));
        schedule();
      }
      return true;
    },
    sendHeartbeat(rows, start, ended) {
      const id = admit(ended);
      if (id === null) return false;
      copyHeartbeat(heartbeats, id, rows, start);
      schedule(HEARTBEATS_APART_MS);
      return true;
    },
    isLinked: () => connection?.isOpen === true,
    completeUntil: () => completeUntil,
    close() {
      isClosed = true;
      connecting?.end();
      if (connection === null) return;
      const { frames } = connection;
      lose(connection, null);
      frames.end();
    },
  };
}

/** Withdraws all documents except the genesis, which an instance in quarantine does not publish again. */
export function withdrawAll(publisher: DocumentPublisher): void {
  for (const name of DOCUMENT_NAMES) if (name !== 'genesis') publisher.withdraw(name);
}

function isSame(one: Writer, other: Writer): boolean {
  return one.epoch === other.epoch && one.link === other.link;
}
