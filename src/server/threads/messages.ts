/**
 * The messages between edges and the authority. Everything from one turn of the event loop is sent in one message, and
 * messages arrive in order.
 */
import type { ClockAnchor } from '../../base/clock.ts';
import type { ManualTime } from '../../base/runtime.ts';
import type { TlsFiles } from '../../base/tls/pair.ts';
import type { SessionSecret } from '../../edge/auth/session.ts';
import type { EdgeConfig } from '../../edge/edge-config.ts';
import type { Copy } from '../../edge/forward/copies.ts';
import type { Active } from '../../edge/forward/target.ts';
import type { MetricsReport } from '../../edge/metrics.ts';
import type { InstanceStatusMemory } from '../../protocol/contract/instance-status.ts';
import type { Publication } from '../../protocol/contract/publications.ts';
import type { RevisionEnds } from '../../protocol/contract/revision-ends.ts';
import type { Beats } from './beats.ts';
import type { RpcAnswer, RpcCall } from './rpc.ts';

/** Memory shared by all threads. */
export interface SharedState {
  /** The newest version of each public document. */
  readonly documentVersions: Int32Array;
  /** The end offsets of the versions of the revocation list. */
  readonly revisionEnds: RevisionEnds;
  /** One number: how many viewers live pages have. */
  readonly viewers: Int32Array;
  /** The offset of the authority's clock from monotonic time. */
  readonly clock: ClockAnchor;
  /** Manually set clocks; null for the system clocks. */
  readonly manualTime: ManualTime | null;
  readonly beats: Beats;
  /** Null if no other instance can become active. */
  readonly instanceStatus: InstanceStatusMemory | null;
}

export interface Service {
  readonly config: EdgeConfig;
  readonly port: number;
  /** The edge's slot in the thread heartbeat counters. */
  readonly slot: number;
  /** Where it takes what other instances forward; null if they forward nothing. */
  readonly socketPath: string | null;
  readonly shared: SharedState;
}

/** What the authority asks of an edge. */
export type EdgeProcedures = {
  /** Returns once the edge listens. */
  serve(service: Service): Promise<void>;
  /** `/readyz` answers 503 from now on. */
  announce(): void;
  /** Refuses new work; returns when all requests in flight are answered. */
  drain(): Promise<void>;
  /** Ends requests whose body has not completely arrived. */
  cut(): void;
  /** Ends all connections. */
  close(): void;
  report(): Promise<MetricsReport>;
  /** Sends what was logged so far. */
  flush(): void;
  /** Makes new connections use this pair. */
  useTls(files: TlsFiles): Promise<void>;
  /** Uses this secret for heartbeat sessions; null while there is none. */
  useSessionSecret(secret: SessionSecret | null): void;
  /** Forwards requests to the active instance, or answers them from now on. */
  forwardTo(active: Active): void;
  /** Keeps the last copy of a document, for the time in which no instance is active. */
  keepCopy(copy: Copy): void;
  /** Returns when no request reads a document that was replaced before this call. */
  barrier(): Promise<void>;
};

/**
 * The lists are flat because cloning one long list of strings and numbers is much cheaper than cloning many small
 * objects.
 */
export interface Batch {
  readonly type: 'batch';
  /** For each heartbeat, its request id and the members of the command, in the order of `packHeartbeat`. */
  readonly heartbeats: readonly unknown[];
  /** For each other request, its id, name and cloneable command. */
  readonly requests: readonly unknown[];
  /** Log lines. */
  readonly log: string;
}

export interface Answers {
  readonly type: 'answers';
  readonly publications: readonly Publication[];
  /** For each answered request, its id and the JSON text, or the seconds of a rate limit. */
  readonly answered: readonly unknown[];
  /** For each request that was refused, or had arrived before, its id and cloneable answer. */
  readonly others: readonly unknown[];
  /** For each request that failed because of a bug, its id and text for the log. */
  readonly failed: readonly unknown[];
}

export type ToEdge = RpcCall | Answers | { readonly type: 'exit' };

export type FromEdge =
  | RpcAnswer
  | Batch
  /** A document that the active instance has answered with, for all edges. */
  | { readonly type: 'copy'; readonly copy: Copy }
  /** An uncaught exception: the thread waits to be closed and accepts no new work. */
  | { readonly type: 'failed'; readonly problem: string };
