/**
 * The newest instant that was used with each certificate, in a signed request or in a session: a heartbeat in a session
 * must be later [core-3-4]. It is known within bounds, because a crash loses what was not stored.
 */
import type { ProofVerdict } from './access.ts';
import type { Moment } from './state.ts';

interface Newest {
  readonly least: number;
  readonly most: number;
}

const UNKNOWN: Newest = { least: -Infinity, most: -Infinity };

export interface Used {
  readonly certId: string;
  readonly nodeKey: string;
  readonly instant: number;
}

export class Instants {
  #newest = new Map<string, Newest>();
  /** `certId instant` of accepted heartbeats in sessions. */
  readonly #accepted = new Set<string>();
  /** Per node key, the newest instant of a session. */
  readonly #inSessions = new Map<string, number>();
  /** Everything up to the first was made before a crash; up to the second, it may have been. */
  #floor = -Infinity;
  #inDoubtUntil = -Infinity;

  /** A genuine request for a certificate of its node: if it passes the proof, its instant counts from then on. */
  mayBeUsed({ certId, instant }: Used): void {
    const { least, most } = this.#newest.get(certId) ?? UNKNOWN;
    this.#newest.set(certId, { least, most: Math.max(most, instant) });
  }

  accepted({ certId, instant }: Used): void {
    const { least, most } = this.#newest.get(certId) ?? UNKNOWN;
    this.#newest.set(certId, { least: Math.max(least, instant), most });
  }

  mayBeUsedInSession(used: Used): void {
    this.mayBeUsed(used);
    const newest = this.#inSessions.get(used.nodeKey) ?? -Infinity;
    this.#inSessions.set(used.nodeKey, Math.max(newest, used.instant));
  }

  acceptedInSession(used: Used): void {
    this.accepted(used);
    this.#accepted.add(`${used.certId} ${used.instant}`);
  }

  /** Signed requests up to this instant may be stale once the node's nonces are forgotten. */
  newestInSessions(nodeKey: string): number {
    return this.#inSessions.get(nodeKey) ?? -Infinity;
  }

  crash(): void {
    for (const [id, { most }] of this.#newest) this.#newest.set(id, { least: -Infinity, most });
    this.#floor = Infinity;
  }

  /** `lostUntil`: until when instants may have been lost in a crash. */
  start(now: number, lostUntil: number): void {
    this.#floor = this.#floor === Infinity ? now : -Infinity;
    this.#inDoubtUntil = lostUntil;
  }

  /** Whether an instant is new. */
  verdict({ mayBeForgotten }: Moment, { certId, instant }: Used): ProofVerdict {
    const { least, most } = this.#newest.get(certId) ?? UNKNOWN;
    if (this.#accepted.has(`${certId} ${instant}`)) return 'invalid';
    if (instant <= Math.max(least, this.#floor)) return 'invalid';
    if (mayBeForgotten(instant)) return 'either';
    return instant <= Math.max(most, this.#inDoubtUntil) ? 'either' : 'valid';
  }
}
