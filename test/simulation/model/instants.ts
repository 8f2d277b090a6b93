/**
 * The newest instant used with each certificate, in a signed request or in a session: a session heartbeat must be later
 * [core-3-4]. It is known only within bounds, because a crash loses what was not stored.
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
  /** `certId instant` of accepted session heartbeats. */
  readonly #accepted = new Set<string>();
  /** The newest session instant for each node key. */
  readonly #inSessions = new Map<string, number>();
  /** Instants up to `#floor` were used before a crash; instants up to `#inDoubtUntil` may have been. */
  #floor = -Infinity;
  #inDoubtUntil = -Infinity;

  /**
   * Records a genuine request for the node's certificate: if it passes the proof check, its instant counts from then
   * on.
   */
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

  /** Signed requests up to this instant may be treated as stale once the node's nonces are forgotten. */
  newestInSessions(nodeKey: string): number {
    return this.#inSessions.get(nodeKey) ?? -Infinity;
  }

  crash(): void {
    for (const [id, { most }] of this.#newest) this.#newest.set(id, { least: -Infinity, most });
    this.#floor = Infinity;
  }

  /** `lostUntil`: instants up to this one may have been lost in a crash. */
  start(now: number, lostUntil: number): void {
    this.#floor = this.#floor === Infinity ? now : -Infinity;
    this.#inDoubtUntil = lostUntil;
  }

  /** Whether the instant is new. */
  verdict({ mayBeForgotten }: Moment, { certId, instant }: Used): ProofVerdict {
    const { least, most } = this.#newest.get(certId) ?? UNKNOWN;
    if (this.#accepted.has(`${certId} ${instant}`)) return 'invalid';
    if (instant <= Math.max(least, this.#floor)) return 'invalid';
    if (mayBeForgotten(instant)) return 'either';
    return instant <= Math.max(most, this.#inDoubtUntil) ? 'either' : 'valid';
  }
}
