/** The edges, as seen by the authority: threads that share the port and send commands in batches. */
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { ClockAnchor } from '../../base/clock.ts';
import { problemText } from '../../base/log/problem.ts';
import type { ManualTime } from '../../base/runtime.ts';
import type { TlsFiles } from '../../base/tls/pair.ts';
import type { SessionSecret } from '../../edge/auth/session.ts';
import type { EdgeConfig } from '../../edge/edge-config.ts';
import type { MetricsReport } from '../../edge/metrics.ts';
import type { RateLimits } from '../../edge/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Call, CallName, CallOf } from '../../protocol/contract/calls.ts';
import type { InstanceStatusMemory } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { Beats } from './beats.ts';
import { fromCloneable, toCloneable } from './cloneable.ts';
import { answerLimit } from './limit-questions.ts';
import type { Answers, Batch, EdgeProcedures, FromEdge, SharedState, ToEdge } from './messages.ts';
import { HEARTBEAT_ROW, unpackHeartbeat } from './packed-heartbeat.ts';
import { createRpcCaller, type RpcCaller } from './rpc.ts';
import { endOf } from './thread-end.ts';
import { threadEntry } from './thread-entry.ts';

/** A thread that can serve, and can serve again after being closed. */
export interface EdgeThread {
  post(message: ToEdge): void;
  listen(listener: (message: FromEdge) => void): void;
  /** Ends the thread, whose server must be closed; resolves when it has ended. */
  end(): Promise<void>;
}

export const EDGE_WORKER = threadEntry('edge');

export function startEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  return edgeThreadOn(new Worker(EDGE_WORKER), onFailure);
}

/** The authority's interface to the thread. */
export function edgeThreadOn(worker: Worker, onFailure: (cause: unknown) => void): EdgeThread {
  const ended = endOf(worker, onFailure);
  worker.on('message', (message: FromEdge) => {
    if (message.type === 'failed') onFailure(message.problem);
  });
  return {
    post: (message) => worker.postMessage(message),
    listen: (listener) => worker.on('message', listener),
    end() {
      worker.postMessage({ type: 'exit' } satisfies ToEdge);
      return ended.expected();
    },
  };
}

export interface EdgeHost {
  readonly call: Call;
  /** Null if no other instance can write. */
  readonly relay: Relay | null;
  readonly publisher: DocumentPublisher;
  readonly limits: RateLimits;
  readonly viewers: Int32Array;
  readonly clock: ClockAnchor;
  readonly manualTime: ManualTime | null;
  readonly beats: Beats;
  /** Null if no other instance can write. */
  readonly instanceStatus: InstanceStatusMemory | null;
  log(lines: string): void;
  /** The metrics of all edges. */
  exposition(reports: readonly MetricsReport[]): Promise<string>;
}

/** All edges of one authority, on whichever threads they run. */
export interface Edges {
  /** `/readyz` answers 503 from now on. */
  announce(): Promise<void>;
  /** Refuses all new work; resolves when all requests in flight are answered. */
  drain(): Promise<void>;
  /** Ends requests whose body has not completely arrived. */
  cut(): Promise<void>;
  /** Ends all connections, and the threads if there are any. */
  close(): Promise<void>;
  /** Stops answering and closes, without waiting longer than the time limit. */
  abandon(): Promise<void>;
  /** Resolves when everything that the edges have logged and counted so far has arrived. */
  settle(): Promise<void>;
  /** The metrics of each edge so far. */
  reports(): Promise<readonly MetricsReport[]>;
  /** Makes new connections use this pair on every edge; rejects if an edge cannot use it. */
  useTls(files: TlsFiles): Promise<void>;
  /** Makes every edge use this secret for heartbeat sessions; null while there is none. */
  useSessionSecret(secret: SessionSecret | null): void;
  /** Resolves when no edge reads a document that was replaced before this call. */
  barrier(): Promise<void>;
}

/** How long to wait for threads to close, in milliseconds. */
const CLOSING_MS = 2000;

/** Resolves when every thread listens on the port. */
export async function serveOnThreads(
  threads: readonly EdgeThread[],
  host: EdgeHost,
  config: EdgeConfig,
  port: number,
): Promise<Edges> {
  const shared: SharedState = {
    documentVersions: host.publisher.versions,
    revisionEnds: host.publisher.revisionEnds,
    viewers: host.viewers,
    clock: host.clock,
    manualTime: host.manualTime,
    beats: host.beats,
    instanceStatus: host.instanceStatus,
  };
  const edges = threads.map((thread) => connect(thread, host, reports));
  async function reports(): Promise<MetricsReport[]> {
    return Promise.all(edges.map((edge) => edge.call('report')));
  }
  async function onAll(
    name: Exclude<keyof EdgeProcedures, 'serve' | 'report' | 'useTls' | 'useSessionSecret'>,
  ): Promise<void> {
    await Promise.all(edges.map((edge) => edge.call(name)));
  }
  async function close(): Promise<void> {
    const ended = onAll('close').then(() => Promise.all(edges.map(({ end }) => end())));
    // A thread that does not close must not delay the end of the process.
    await Promise.race([ended, delay(CLOSING_MS, undefined, { ref: false })]);
  }

  const starts = edges.map((edge, index) =>
    edge.call('serve', { config, port, slot: index + 1, shared }),
  );
  const refused = (await Promise.allSettled(starts)).find(({ status }) => status === 'rejected');
  if (refused?.status === 'rejected') {
    await Promise.race([onAll('close'), delay(CLOSING_MS, undefined, { ref: false })]);
    throw refused.reason;
  }

  return {
    close,
    announce: () => onAll('announce'),
    drain: () => onAll('drain'),
    cut: () => onAll('cut'),
    async abandon() {
      for (const { silence } of edges) silence();
      await close();
    },
    reports,
    async useTls(files) {
      await Promise.all(edges.map((edge) => edge.call('useTls', files)));
    },
    useSessionSecret(secret) {
      for (const edge of edges) void edge.call('useSessionSecret', secret);
    },
    settle: () => onAll('flush'),
    async barrier() {
      // Publications are sent at the end of this turn, and edges process messages in order.
      await new Promise(setImmediate);
      await onAll('barrier');
    },
  };
}

interface ConnectedEdge {
  readonly call: RpcCaller<EdgeProcedures>['call'];
  /** No answer is sent after this. */
  silence(): void;
  end(): Promise<void>;
}

function connect(
  thread: EdgeThread,
  host: EdgeHost,
  reports: () => Promise<MetricsReport[]>,
): ConnectedEdge {
  const rpc = createRpcCaller<EdgeProcedures>(thread.post);
  const outbox = createOutbox(thread);
  const answering = { ...host, exposition: () => reports().then(host.exposition) };
  host.publisher.follow((publication) => outbox.publish(publication));

  thread.listen((message) => {
    if (message.type === 'batch') {
      if (message.log !== '') host.log(message.log);
      carryOut(message, answering, outbox);
    } else if (message.type !== 'failed') rpc.take(message);
  });

  return {
    call: rpc.call,
    silence: outbox.close,
    end() {
      outbox.close();
      return thread.end();
    },
  };
}

export type Outbox = ReturnType<typeof createOutbox>;

/**
 * Collects the answers of one turn into one message, after the documents published before them. `scheduler` receives
 * the function that sends the message and returns a function that schedules it for the end of the turn or later, which
 * may be called many times.
 */
export function createOutbox(
  thread: { post(message: Answers): void },
  scheduler: (send: () => void) => () => void = atEndOfTurn,
) {
  let publications: Answers['publications'][number][] = [];
  let answered: unknown[] = [];
  let repeated: unknown[] = [];
  let refused: unknown[] = [];
  let failed: unknown[] = [];
  let isGathering = false;
  let open = true;
  const later = scheduler(flush);

  function flush(): void {
    const lists = [publications, answered, repeated, refused, failed];
    const count = lists.reduce((sum, { length }) => sum + length, 0);
    if (count === 0 || !open) return;
    thread.post({ type: 'answers', publications, answered, repeated, refused, failed });
    publications = [];
    answered = [];
    repeated = [];
    refused = [];
    failed = [];
  }

  function schedule(): void {
    if (!isGathering) later();
  }

  return {
    publish(publication: Answers['publications'][number]) {
      publications.push(publication);
      schedule();
    },
    answer(id: unknown, answer: Answer) {
      if (answer.isRepeated === true) repeated.push(id, toCloneable(answer));
      else if (answer.ok) answered.push(id, answer.json);
      else refused.push(id, answer.refusal, toCloneable(answer.details));
      schedule();
    },
    fail(id: unknown, cause: unknown) {
      failed.push(id, problemText(cause));
      schedule();
    },
    /** Sends the answers given during `work` together, as soon as it returns. */
    together(work: () => void) {
      isGathering = true;
      try {
        work();
      } finally {
        isGathering = false;
        flush();
      }
    },
    close() {
      open = false;
    },
  };
}

function atEndOfTurn(send: () => void): () => void {
  let isScheduled = false;
  function sendNow(): void {
    isScheduled = false;
    send();
  }
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(sendNow);
  };
}

/** Consecutive heartbeats, as packed by `packHeartbeat`. */
export type Rows = readonly unknown[];

/**
 * Has heartbeats answered by another instance, with the answers put into the outbox; false if they must be answered
 * here.
 */
export type Relay = (heartbeats: Rows, outbox: Outbox) => boolean;

/** The handler of requests from an edge or another instance. */
export interface Answering {
  readonly call: Call;
  /** Only for edges. */
  readonly relay?: Relay | null;
  readonly limits: RateLimits;
  /** Only for edges. */
  exposition?(): Promise<string>;
}

export function carryOut(
  batch: Pick<Batch, 'heartbeats' | 'requests'>,
  host: Answering,
  outbox: Outbox,
): void {
  outbox.together(() => answerAll(batch, host, outbox));
}

function answerAll(
  { heartbeats, requests }: Pick<Batch, 'heartbeats' | 'requests'>,
  host: Answering,
  outbox: Outbox,
): void {
  const areRelayed = host.relay?.(heartbeats, outbox) === true;
  // A bug in one command fails only that request; the rest of the batch is executed.
  for (let i = 0; i < heartbeats.length && !areRelayed; i += HEARTBEAT_ROW) {
    const id = heartbeats[i];
    try {
      reply(outbox, id, host.call('heartbeat', unpackHeartbeat(heartbeats, i)));
    } catch (cause) {
      outbox.fail(id, cause);
    }
  }
  for (let i = 0; i < requests.length; i += 3) {
    const [id, name, question] = [requests[i], requests[i + 1], requests[i + 2]];
    try {
      reply(outbox, id, answerTo(String(name), question, host));
    } catch (cause) {
      outbox.fail(id, cause);
    }
  }
}

/** Puts the answer into the outbox, now or when the promise settles. */
export function reply(outbox: Outbox, id: unknown, answer: Answer | Promise<Answer>): void {
  if (answer instanceof Promise) {
    answer.then(
      (late) => outbox.answer(id, late),
      (cause) => outbox.fail(id, cause),
    );
  } else {
    outbox.answer(id, answer);
  }
}

function answerTo(
  name: string,
  question: unknown,
  { call, limits, exposition }: Answering,
): Answer | Promise<Answer> {
  if (name === '#exposition' && exposition !== undefined) return exposition().then(answerOf);
  return (
    answerLimit(limits, name, question) ??
    call(name as CallName, fromCloneable(question) as CallOf<CallName>)
  );
}

function answerOf(json: string): Answer {
  return { ok: true, json };
}
