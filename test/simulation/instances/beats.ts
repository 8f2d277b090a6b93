/**
 * Nodes that send heartbeats, signed or in sessions, through any instance [core-3-4]. A heartbeat does not count if it
 * was forged, if it counted before, if its certificate was revoked before, or if its instant is no later than an
 * earlier one. Every heartbeat that an instance acknowledges reaches the active instance.
 */
import type { Answer } from '../../../src/protocol/contract/calls.ts';
import type { NodeClaim } from '../../../src/protocol/contract/claims.ts';
import type { AuthorityKeys } from '../../../src/protocol/records/authority-chain.ts';
import type { MemoryDisk } from '../memory-disk.ts';
import { TOLERANCE } from '../model/access.ts';
import { AUTHORITY, signAsNode, signer } from '../requests.ts';
import {
  type BeatFlaw,
  heartbeatOf,
  isOfSession,
  judgeBeat,
  type KnownSession,
  makeBeat,
  openSession,
  SESSION_PUBLIC_KEY,
} from '../session-beats.ts';
import { insist, Violation } from '../violation.ts';
import type { Instance } from './instance.ts';
import type { Running } from './process.ts';
import { SEED } from './seed.ts';

export interface DrawnBeat {
  readonly node: number;
  readonly instant: keyof typeof MADE_AT;
  readonly flaw: BeatFlaw;
  /** Which earlier heartbeat to send again, counted from the newest. */
  readonly again: number;
}

export interface BeatsOptions {
  now(): number;
  /** Whether the database has lost its last changes, and with them what it knew about heartbeats. */
  hasLost(): boolean;
  /** Whether the revocation was acknowledged. */
  isRevoked(certId: string): boolean;
}

/** A heartbeat that can be sent again. */
interface Sent {
  readonly label: string;
  readonly node: number;
  readonly instant: number;
  readonly isGenuine: boolean;
  /** Judges as the edge of an instance does; null if the request stops there. */
  judge(running: Running): NodeClaim | null;
  /** How often it was acknowledged. */
  counted: number;
}

/** A heartbeat sent after all faults have ended; `answer` is null until it is answered. */
interface Last {
  readonly node: number;
  answer: Answer | null;
}

/** Milliseconds relative to now. */
const MADE_AT = {
  now: 0,
  earlier: -1500,
  ahead: 1500,
  far_ahead: TOLERANCE,
  stale: -TOLERANCE - 1,
} as const;

/** Indexes into the initial state of every history. The first two are the first to be revoked, the others never are. */
export const BEATING = [0, 1, 36] as const;
const LAST = [37, 38, 39] as const;

const NODES = [...BEATING, ...LAST].map((place) => ({
  certId: SEED.certificates[place] ?? '',
  key: signer(`seed ${place}`),
}));

export class Beats {
  readonly #options: BeatsOptions;
  /** The newest session of each node. */
  readonly #sessions = new Map<number, KnownSession>();
  readonly #sent: Sent[] = [];
  /** The newest acknowledged instant of each node, excluding those that were ahead of time. */
  readonly #newest = new Map<number, number>();
  readonly #last: Last[] = [];
  #nonces = 0;
  /** How many session heartbeats were acknowledged. */
  counted = 0;

  constructor(options: BeatsOptions) {
    this.#options = options;
  }

  /** Sends a signed heartbeat that requests a session. */
  signed(instance: Instance, node: number): Promise<Answer | null> {
    const { certId, key } = nodeAt(node);
    this.#nonces += 1;
    const instant = this.#options.now();
    const stamp = { now: instant, nonce: `beat-${this.#nonces}`, audience: AUTHORITY.publicKey };
    const body = { cert_id: certId, session_public_key: SESSION_PUBLIC_KEY };
    const judge = (running: Running) => {
      const { authorityKeys } = running;
      return signAsNode(key, '/heartbeat', body, { ...stamp, authorityKeys }, 'none').judge(
        running.now(),
      );
    };
    const label = `Signed heartbeat ${this.#nonces} of node ${node}`;
    return this.#sendNew(instance, { label, node, instant, isGenuine: true, judge, counted: 0 });
  }

  async inSession(instance: Instance, drawn: DrawnBeat): Promise<Answer | null> {
    const { node } = drawn;
    const session = this.#sessions.get(node);
    if (session === undefined) return this.signed(instance, node);
    const { certId, key } = nodeAt((node + 1) % NODES.length);
    const instant = this.#options.now() + MADE_AT[drawn.instant];
    const made = { instant, flaw: drawn.flaw };
    const beat = makeBeat(session, made, { certId, nodeKey: key.publicKey });
    const label = `Heartbeat of node ${node} in its session (${drawn.flaw}, ${drawn.instant})`;
    const judge = (running: Running) => {
      const current = currentKey(running);
      if (current === null) return null;
      const now = running.now();
      const claim = judgeBeat(running.sessions, beat, now);
      if (claim.verdict !== 'valid') return null;
      insist(isOfSession(beat, now, current), () => `${label} is valid at the edge`);
      return claim;
    };
    const { isGenuine } = beat;
    return this.#sendNew(instance, { label, node, instant, isGenuine, judge, counted: 0 });
  }

  async again(instance: Instance, { again }: DrawnBeat): Promise<void> {
    const sent = this.#sent.at(-1 - (again % Math.max(1, this.#sent.length)));
    if (sent !== undefined) await this.#send(instance, sent);
  }

  /** Runs after all faults have ended: a node of its own starts a session, which another instance accepts as well. */
  async last(index: number, instances: readonly Instance[]): Promise<void> {
    const node = BEATING.length + index;
    const drawn = { node, instant: 'now', flaw: 'none', again: 0 } as const;
    for (const step of [0, 0, 1]) {
      const instance = instances[(index + step) % instances.length] as Instance;
      const last: Last = { node, answer: null };
      this.#last.push(last);
      last.answer = await this.inSession(instance, drawn);
    }
  }

  /** Called at the end, after the active instance has stored what it knows. */
  assertHolds({ liveness }: MemoryDisk): void {
    for (const { node, answer } of this.#last) {
      insist(
        answer?.ok === true,
        () => `Long after all trouble, a heartbeat of node ${node} got ${JSON.stringify(answer)}`,
      );
    }
    for (const [node, { certId }] of NODES.entries()) {
      const stored = liveness.get(certId)?.newestSignedAt ?? 0;
      const made = this.#sent.filter((sent) => sent.node === node && sent.isGenuine);
      const known = [SEED.disk.liveness.get(certId)?.newestSignedAt ?? 0];
      known.push(...made.map(({ instant }) => instant));
      insist(known.includes(stored), () => `Node ${node} has made nothing at ${stored}`);
      if (node < BEATING.length) continue;
      insist(
        stored === made.at(-1)?.instant,
        () => `The active instance has not heard the last heartbeat of node ${node}`,
      );
    }
  }

  #sendNew(instance: Instance, sent: Sent): Promise<Answer | null> {
    this.#sent.push(sent);
    return this.#send(instance, sent);
  }

  async #send(instance: Instance, sent: Sent): Promise<Answer | null> {
    const { now, hasLost, isRevoked } = this.#options;
    const { label, node, instant } = sent;
    const { certId } = nodeAt(node);
    const wasRevoked = isRevoked(certId);
    const newest = this.#newest.get(node) ?? 0;
    const answer = await instance
      .ask((running) => this.#ask(running, sent))
      ?.catch(unlessViolation);
    if (answer?.ok !== true) return answer ?? null;
    sent.counted += 1;
    insist(sent.isGenuine, () => `${label} counted, and nobody made it`);
    if (hasLost()) return answer;
    insist(sent.counted === 1, () => `${label} counted twice`);
    insist(!wasRevoked, () => `${label} counted after its revocation`);
    const isOlder = instant <= newest && !label.startsWith('Signed');
    insist(!isOlder, () => `${label} counted after a later one`);
    if (instant <= now()) this.#newest.set(node, Math.max(instant, this.#newest.get(node) ?? 0));
    return answer;
  }

  #ask(running: Running, sent: Sent): Promise<Answer> | null {
    const claim = sent.judge(running);
    if (claim === null) return null;
    const { certId } = nodeAt(sent.node);
    const answer = running.call('heartbeat', heartbeatOf(claim, certId));
    return Promise.resolve(answer).then((answer) => {
      if (answer.ok && claim.nonce !== null) this.#begin(running, sent.node);
      else if (answer.ok) this.counted += 1;
      return answer;
    });
  }

  #begin(running: Running, node: number): void {
    const { certId, key } = nodeAt(node);
    const current = currentKey(running);
    const nodePublicKey = key.publicKey;
    const holder = { certId, nodePublicKey };
    const offer = running.sessions.begin(holder, SESSION_PUBLIC_KEY, running.now());
    if (offer === null || current === null) return;
    this.#sessions.set(node, openSession(offer, { certId, nodeKey: nodePublicKey }, current));
  }
}

function nodeAt(node: number) {
  const found = NODES[node];
  if (found === undefined) throw new Error(`There is no node ${node}`);
  return found;
}

function currentKey({ held }: Running): string | null {
  const { keys } = (held('authority_keys') ?? { keys: [] }) as Pick<AuthorityKeys, 'keys'>;
  return keys.find(({ state }) => state === 'current')?.public_key ?? null;
}

function unlessViolation(cause: unknown): null {
  if (cause instanceof Violation) throw cause;
  return null;
}
