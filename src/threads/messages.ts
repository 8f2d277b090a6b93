/**
 * What edges and the authority send each other. Everything of one turn of the event loop travels in one
 * message, and messages arrive in the order they were sent.
 */
import type { ClockAnchor } from '../clock.ts';
import type { Publication } from '../contract/publications.ts';
import type { EdgeConfig } from '../http/edge-config.ts';
import type { MetricsReport } from '../metrics.ts';
import type { ManualTime } from '../runtime.ts';
import type { Beats } from './beats.ts';
import type { RpcAnswer, RpcCall } from './rpc.ts';

/** Memory that all threads see. */
export interface SharedState {
  /** The newest version of each public document. */
  readonly documentVersions: Int32Array;
  /** One number: how many look at a live page. */
  readonly viewers: Int32Array;
  /** What the authority's clock adds to the monotonic time. */
  readonly clock: ClockAnchor;
  /** Clocks set by hand; null for the system's. */
  readonly manualTime: ManualTime | null;
  readonly beats: Beats;
}

export interface Service {
  readonly config: EdgeConfig;
  readonly port: number;
  /** Where the edge shows that it lives. */
  readonly slot: number;
  readonly shared: SharedState;
}

/** What the authority may ask of an edge. */
export type EdgeProcedures = {
  /** Returns once the edge listens. */
  serve(service: Service): Promise<void>;
  /** Says that it is not ready from here on. */
  announce(): void;
  /** Refuses new work; returns once what is in flight is answered. */
  drain(): Promise<void>;
  /** Ends requests whose body has not arrived in whole. */
  cut(): void;
  /** Ends all connections. */
  close(): void;
  report(): Promise<MetricsReport>;
  /** Sends what was logged so far. */
  flush(): void;
  /** Returns once every answer that was begun before has left. */
  barrier(): Promise<void>;
};

/** Flat lists: cloning one long list of strings and numbers is much cheaper than many small objects. */
export interface Batch {
  readonly type: 'batch';
  /** Of each heartbeat: request id and the members of the command, in the order of `packHeartbeat`. */
  readonly heartbeats: readonly unknown[];
  /** Of each other request: id, name, cloneable command. */
  readonly requests: readonly unknown[];
  /** Lines for the log. */
  readonly log: string;
}

export interface Answers {
  readonly type: 'answers';
  readonly publications: readonly Publication[];
  /** Of each request that was answered: id and the JSON text, or the seconds of a rate limit. */
  readonly answered: readonly unknown[];
  /** Of each request that was refused: id, refusal, cloneable details. */
  readonly refused: readonly unknown[];
  /** Of each request that met a bug: id and what the log says about it. */
  readonly failed: readonly unknown[];
}

export type ToEdge = RpcCall | Answers | { readonly type: 'exit' };

export type FromEdge =
  | RpcAnswer
  | Batch
  /** A message that nobody waits for could not be taken. */
  | { readonly type: 'failed'; readonly problem: string };
