/**
 * Last contacts of certificates. Contacts are not durable at once, and a decided request counts as a
 * contact only when it is answered, so each contact is known only within bounds.
 */
import type { State } from './state.ts';

/** A node is active while its last contact is younger than this. */
export const ACTIVE_WINDOW = 300_000;

/** Milliseconds after which contacts are written. */
export const FLUSH_INTERVAL = 1000;

interface Contact {
  /** Minus infinity where the certificate may count as without any contact. */
  readonly earliest: number;
  readonly latest: number;
}

export type Snapshot = ReadonlyMap<string, Contact>;

/** What is within the bounds of one of them. */
function either(one: Contact, other: Contact = one): Contact {
  return {
    earliest: Math.min(one.earliest, other.earliest),
    latest: Math.max(one.latest, other.latest),
  };
}

export class Contacts {
  #now = new Map<string, Contact>();
  #saved: Snapshot = new Map();
  /** Bounds of all contacts since the start: with a range of times they may be stored before a flush. */
  #mayBeSaved = new Map<string, Contact>();
  /** Certificates with a renewal under way that nobody may have heard of since it was decided. */
  #renewing = new Set<string>();
  /** The latest instant that any reader or node has been served at: whoever was quiet then is dropped. */
  #highWater = 0;
  /** The same, since the clock was last set. */
  #latest = 0;

  /** Something that was decided at one instant and answered for at another. */
  heardOf(certId: string, decidedAt: number, answeredAt: number): void {
    this.observe(answeredAt);
    this.#now.set(certId, { earliest: decidedAt, latest: this.#latest });
    this.#mayStore();
  }

  /** A heartbeat that was decided may be seen already, answered or not. */
  mayBeHeardOf(certId: string, at: number): void {
    this.observe(at);
    this.#renewing.delete(certId);
    const { earliest = -Infinity } = this.#now.get(certId) ?? {};
    this.#now.set(certId, { earliest, latest: this.#latest });
    this.#mayStore();
  }

  #mayStore(): void {
    for (const [id, contact] of this.#now) {
      this.#mayBeSaved.set(id, either(contact, this.#mayBeSaved.get(id)));
    }
  }

  /** No contact is later than the present, whatever the time was when it came. */
  clockSet(now: number): void {
    this.#latest = now;
    for (const [id, { earliest, latest }] of this.#now) {
      this.#now.set(id, { earliest: Math.min(earliest, now), latest: Math.min(latest, now) });
    }
    this.#mayStore();
  }

  /** A renewal was decided, and is being stored. */
  renewing(certId: string): void {
    this.#renewing.add(certId);
  }

  /** A renewed certificate counts only if it was heard of since its renewal was decided. */
  renewed(certId: string): void {
    if (this.#renewing.delete(certId)) this.#now.delete(certId);
    else this.#inDoubt(certId);
  }

  /** Whatever came while the renewal was stored may have been refused. */
  #inDoubt(certId: string): void {
    const contact = this.#now.get(certId);
    if (contact !== undefined) this.#now.set(certId, { ...contact, earliest: -Infinity });
  }

  observe(now: number): void {
    this.#highWater = Math.max(this.#highWater, now);
    this.#latest = Math.max(this.#latest, now);
  }

  snapshot(): Snapshot {
    return new Map(this.#now);
  }

  /** A flush that began at one snapshot and wrote before another has stored something between the two. */
  save(began: Snapshot, wrote: Snapshot): void {
    this.#saved = new Map(
      [...wrote].map(([id, { latest }]) => {
        const { earliest = -Infinity } = began.get(id) ?? {};
        return [id, { earliest, latest }];
      }),
    );
  }

  /**
   * After a restart only what was saved is known, and the certificates themselves. What a clock that was set
   * back has changed is saved before anything is served.
   */
  restart({ certificates }: State, now: number): void {
    this.#now = new Map();
    this.#renewing.clear();
    for (const [id, { issuedAt, renewedAt }] of certificates) {
      const saved = this.#saved.get(id) ?? { earliest: issuedAt, latest: issuedAt };
      const contact = either(saved, this.#mayBeSaved.get(id));
      this.#now.set(id, contact);
      if (renewedAt === null || contact.earliest > renewedAt) continue;
      if (contact.latest <= renewedAt) this.#now.delete(id);
      else this.#inDoubt(id);
    }
    this.clockSet(now);
    this.#mayBeSaved.clear();
    this.#saved = this.snapshot();
  }

  /**
   * A start died, and may have stored what a clock that was set back has changed: whether a contact followed
   * a renewal is in doubt then.
   */
  startDied(now: number): void {
    const inDoubt = [...this.#saved].map(([id, { earliest, latest }]): [string, Contact] => [
      id,
      { earliest: latest > now ? -Infinity : earliest, latest },
    ]);
    this.#saved = new Map(inDoubt);
  }

  /** How many nodes may count as active. */
  activeBounds({ certificates }: State, now: number): { least: number; most: number } {
    this.observe(now);
    let least = 0;
    let most = 0;
    for (const [id, { earliest, latest }] of this.#now) {
      if (certificates.get(id)?.revocation !== null) continue;
      if (this.#highWater - earliest < ACTIVE_WINDOW) least += 1;
      if (now - latest < ACTIVE_WINDOW) most += 1;
    }
    return { least, most };
  }

  mayBeActive(certId: string, now: number): boolean {
    const contact = this.#now.get(certId);
    return contact !== undefined && now - contact.latest < ACTIVE_WINDOW;
  }
}
