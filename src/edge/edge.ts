/** What routes work with. The edge never sees subjects or store: commands go out, answers come back. */

import type { Logger } from '../base/log/logger.ts';
import type { EdgeRuntime } from '../base/runtime.ts';
import type { HtmlPage } from '../pages/frame.ts';
import type { LiveContent, LiveTopic } from '../pages/live-content.ts';
import type { CommandReference } from '../pages/reference/command-reference.ts';
import type { Call } from '../protocol/contract/calls.ts';
import type { PublishedDocument } from '../protocol/contract/documents.ts';
import type { InstanceStatus } from '../protocol/contract/instance-status.ts';
import type { DocumentCache } from '../protocol/contract/publications.ts';
import type { RevisionEnds } from '../protocol/contract/revision-ends.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import type { RouteDescription } from '../protocol/route-description.ts';
import type { NodeAuthSettings } from './auth/node.ts';
import type { OperatorAuthSettings } from './auth/operator.ts';
import type { RoleRule } from './body.ts';
import type { EventReaders } from './event-readers.ts';
import type { DescribedInstance } from './instance.ts';
import type { EdgeMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limit.ts';
import type { UnprovenBodies } from './unproven-bodies.ts';

export interface EdgeSettings {
  readonly instance: DescribedInstance;
  readonly genesis: GenesisBlock;
  readonly publicUrl: string | null;
  readonly proxyHops: number;
  /** What connections to this edge speak. */
  readonly scheme: 'http' | 'https';
  /** Whose pages may use the API; null when there are none. */
  readonly corsOrigins: ReadonlySet<string> | null;
  readonly maxFeedEntries: number;
  readonly maxRequestBytes: number;
  readonly maxConnections: number;
  /** How long a request of a node may wait to be answered; 0 is without bound. */
  readonly longestWaitMs: number;
  readonly createdStatus: 200 | 201;
  readonly isAllowedRole: RoleRule;
  readonly operatorAuth: OperatorAuthSettings;
  readonly nodeAuth: NodeAuthSettings;
  /** The command line, as the reference shows it. */
  readonly commands: CommandReference;
}

/** Renderers from documents to the content of live pages. */
export type LiveRenderers = Readonly<
  Record<LiveTopic, (edge: Edge, document: PublishedDocument) => LiveContent | Promise<LiveContent>>
>;

export interface Edge {
  readonly settings: EdgeSettings;
  readonly call: Call;
  readonly documents: DocumentCache;
  /** Where the versions of the revocation list end. */
  readonly revisionEnds: RevisionEnds;
  readonly limits: RateLimits;
  readonly unprovenBodies: UnprovenBodies;
  readonly liveRenderers: LiveRenderers;
  /** The page for a path that does not exist; null where there is none. */
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
  /** Null where no other instance can write: what is held here is always current. */
  readonly instanceStatus: InstanceStatus | null;
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number;
  /** All routes, for the pages and documents that describe them. */
  readonly routes: readonly RouteDescription[];
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
 * Continues synchronously with a value, and asynchronously with a promise. Only for paths that measurably
 * gain from it: the heartbeat on one thread, cached documents, and the limits that both pass.
 */
export function withAnswer<T, R>(
  answer: T | Promise<T>,
  next: (answer: T) => R | Promise<R>,
): R | Promise<R> {
  return answer instanceof Promise ? answer.then(next) : next(answer);
}
