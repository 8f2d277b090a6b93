/** The environment of routes. The edge never sees subjects or the store: it sends commands and gets answers. */

import type { Logger } from '../base/log/logger.ts';
import type { EdgeRuntime } from '../base/runtime.ts';
import type { HtmlPage } from '../pages/ui/frame.ts';
import type { Call } from '../protocol/contract/calls.ts';
import type { DocumentCache, RevisionEnds } from '../protocol/contract/documents.ts';
import type { InstanceStatus } from '../protocol/contract/instance-status.ts';
import type { NamedRoute } from '../protocol/route-description.ts';
import type { HeartbeatSessions } from './auth/session.ts';
import type { EdgeSettings } from './edge-config.ts';
import type { EventReaders } from './event-readers.ts';
import type { Forwarder } from './forward/forwarder.ts';
import type { RateLimits, UnprovenBodies } from './limits/rate-limit.ts';
import type { RequestQueue } from './limits/request-queue.ts';
import type { EdgeMetrics } from './metrics.ts';
import type { Conditions, Reply } from './reply.ts';

/** A request that a copy may answer while nobody is active. */
export interface CopyRequest extends Conditions {
  readonly path: string;
  readonly method: string;
  readonly rawQuery: string;
  readonly baseUrl: string;
}

export interface Edge {
  readonly settings: EdgeSettings;
  readonly queue: RequestQueue;
  readonly call: Call;
  readonly documents: DocumentCache;
  /** The end offsets of the versions of the revocation list. */
  readonly revisionEnds: RevisionEnds;
  readonly limits: RateLimits;
  readonly sessions: HeartbeatSessions;
  readonly unprovenBodies: UnprovenBodies;
  /** The page for a path that does not exist; null if there is none. */
  notFoundPage(path: string): HtmlPage | null;
  readonly eventReaders: EventReaders;
  /** One shared number: the count of live-page viewers. */
  readonly viewers: Int32Array;
  readonly runtime: EdgeRuntime;
  readonly logger: Logger;
  readonly metrics: EdgeMetrics;
  /** The metrics of all threads in the Prometheus text format. */
  exposition(): Promise<string>;
  /** Whether the authority's thread hangs. */
  isAuthoritySilent(): boolean;
  /** Null if no other instance can become active, so that local copies are always current. */
  readonly instanceStatus: InstanceStatus | null;
  /** Null if no other instance can become active. */
  readonly forwarder: Forwarder | null;
  /** The answer while nobody is active; null if there is none, or if an instance may be active. */
  lastCopy(request: CopyRequest): Reply | Promise<Reply> | null;
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number;
  /** All routes, for the pages and documents that describe them. */
  readonly routes: readonly NamedRoute[];
  readonly draining: Readonly<DrainState>;
}

/** The progress of a stop. */
export interface DrainState {
  /** `/readyz` answers 503, so that load balancers send no new work. */
  isAnnounced: boolean;
  /** New work is refused. */
  refusesWork: boolean;
}

/**
 * Continues synchronously with a value, asynchronously with a promise. Only for paths that measurably benefit:
 * heartbeats with a single thread, cached documents, and the rate limits of both.
 */
export function withAnswer<T, R>(
  answer: T | Promise<T>,
  next: (answer: T) => R | Promise<R>,
): R | Promise<R> {
  return answer instanceof Promise ? answer.then(next) : next(answer);
}

/** Many requests may wait for the same; what each makes of it is done in slices. */
export function inTurn<Made, R>(
  { queue }: Edge,
  made: Made | Promise<Made>,
  next: (made: Made) => R | Promise<R>,
): R | Promise<R> {
  if (!(made instanceof Promise)) return next(made);
  return made.then((late) => queue.turn().then(() => next(late)));
}
