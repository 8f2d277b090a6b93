/**
 * What edges and the authority ask of each other, the forms in which it crosses between threads, most of which are
 * strings and numbers, and what they share.
 */
import type { ClockAnchor } from '../../base/clock.ts';
import { JsonFloat } from '../../base/json/value.ts';
import type { ManualTime } from '../../base/runtime.ts';
import type { TlsFiles } from '../../base/tls/pair.ts';
import type { SessionSecret } from '../../edge/auth/session.ts';
import type { EdgeConfig } from '../../edge/edge-config.ts';
import type { CopyNotice } from '../../edge/forward/copies.ts';
import type { Active } from '../../edge/forward/target.ts';
import type { RateLimits } from '../../edge/limits/rate-limit.ts';
import type { MetricsReport } from '../../edge/metrics.ts';
import type { Answer, CallInput, CallName } from '../../protocol/contract/calls.ts';
import type { NodeProofVerdict } from '../../protocol/contract/claims.ts';
import type { Publication, RevisionEnds } from '../../protocol/contract/documents.ts';
import type { InstanceStatusMemory } from '../../protocol/contract/instance-status.ts';
import type { Beats } from './beats.ts';

/** The text of most answers, others in a cloneable form. */
type CrossedAnswer = string | Answer;

type HeartbeatRow = Parameters<typeof heartbeatIn>;

export function crossing(answer: Answer | Promise<Answer>): CrossedAnswer | Promise<CrossedAnswer> {
  return answer instanceof Promise ? answer.then(crossingAnswer) : crossingAnswer(answer);
}

function crossingAnswer(answer: Answer): CrossedAnswer {
  return answer.ok && answer.isRepeated !== true ? answer.json : (toCloneable(answer) as Answer);
}

export function arrivedAnswer(answer: CrossedAnswer): Answer {
  if (typeof answer === 'string') return { ok: true, json: answer };
  return fromCloneable(answer) as Answer;
}

/** Most calls are heartbeats, so their members are sent one by one. */
export function heartbeatRow({
  node,
  cert_id,
  status,
  bulletin,
  authority_keys_digest,
}: CallInput<'heartbeat'>): HeartbeatRow {
  const { publicKey, signedAt, nonce, verdict, remoteAddr } = node;
  const proof = [publicKey, signedAt, nonce, verdict, remoteAddr] as const;
  return [cert_id, status, ...proof, bulletin, authority_keys_digest];
}

export function heartbeatIn(
  cert_id: string,
  status: string,
  publicKey: string,
  signedAt: number,
  nonce: string | null,
  verdict: NodeProofVerdict,
  remoteAddr: string,
  bulletin: boolean,
  authority_keys_digest: string | null,
): CallInput<'heartbeat'> {
  const node = { publicKey, signedAt, nonce, verdict, remoteAddr, identity: null };
  return { cert_id, status, bulletin, authority_keys_digest, node };
}

/**
 * Converts values sent between threads. Structured cloning preserves everything in a command except the class of a
 * `JsonFloat`, so a float is sent as a boxed number, which occurs nowhere else.
 */
export function toCloneable(value: unknown): unknown {
  return holdsFloat(value) ? mapDeep(value, (leaf) => (isFloat(leaf) ? boxed(leaf) : leaf)) : value;
}

/** Only for values that came from `toCloneable`. */
export function fromCloneable(value: unknown): unknown {
  return holdsBox(value)
    ? mapDeep(value, (leaf) => (isBox(leaf) ? new JsonFloat(Number(leaf)) : leaf))
    : value;
}

function holdsFloat(value: unknown): boolean {
  return isFloat(value) || (isTree(value) && Object.values(value).some(holdsFloat));
}

function holdsBox(value: unknown): boolean {
  return isBox(value) || (isTree(value) && Object.values(value).some(holdsBox));
}

function isFloat(value: unknown): value is JsonFloat {
  return value instanceof JsonFloat;
}

function isBox(value: unknown): value is number {
  return value instanceof Number;
}

function boxed({ value }: JsonFloat): number {
  return Object(value) as number;
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function mapDeep(value: unknown, leaf: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapDeep(item, leaf));
  if (!isTree(value) || isFloat(value) || isBox(value)) return leaf(value);
  // Defines own members even for `__proto__`, which is an ordinary name in a free-form object.
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapDeep(member, leaf)]),
  );
}

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
  /** Returns once the edge listens. Documents are published after this. */
  serve(service: Service): void;
  /** `/readyz` answers 503 from now on. */
  announce(): void;
  /** Refuses new work; returns when all requests in flight are answered. */
  drain(): Promise<void>;
  /** Ends requests whose body has not completely arrived. */
  cut(): void;
  /** Ends all connections. */
  close(): void;
  /** What the edge has logged before arrives before this. */
  report(): Promise<MetricsReport>;
  /** Makes new connections use this pair. */
  useTls(files: TlsFiles): Promise<void>;
  /** Uses this secret for heartbeat sessions; null while there is none. */
  useSessionSecret(secret: SessionSecret | null): void;
  /** Forwards requests to the active instance, or answers them from now on. */
  forwardTo(active: Active): void;
  /** Keeps the last copy of a document, for the time in which no instance is active. */
  keepCopy(copy: CopyNotice): void;
  /** Returns when no request reads a document that was replaced before this call. */
  barrier(): Promise<void>;
  /** Takes a document in place of its earlier versions. */
  publish(publication: Publication): void;
  /** Ends the thread, whose server must be closed. */
  exit(): void;
};

/** What an edge asks of the authority. */
export type AuthorityProcedures = {
  heartbeat(...row: HeartbeatRow): CrossedAnswer | Promise<CrossedAnswer>;
  /** Any other call, in a cloneable form. */
  ask(name: CallName, command: unknown): CrossedAnswer | Promise<CrossedAnswer>;
  takeToken: RateLimits['take'];
  /** Takes a document that the active instance has answered with, for all edges. */
  copied(copy: CopyNotice): void;
  /** The metrics of all edges. */
  exposition(): Promise<string>;
  log(line: string): void;
  /** An uncaught exception: the thread waits to be closed and accepts no new work. */
  failed(problem: string): void;
};
