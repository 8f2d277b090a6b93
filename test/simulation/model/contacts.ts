/**
 * Last contacts of certificates. Contacts are not durable immediately, and a decided request counts as a contact only
 * once it is answered, so each contact is known only within bounds.
 */
import type { State } from './state.ts';

/** A node is active while its last contact is younger than this. */
export const ACTIVE_WINDOW = 300_000;

/** Milliseconds after which contacts are written. */
export const FLUSH_INTERVAL = 1000;

interface Contact {
  /** Minus infinity if the certificate may have no contact at all. */
  readonly earliest: number;
  readonly latest: number;
}

/** Bounds that include those of both contacts. */
function either(one: Contact, other: Contact = one): Contact {
  return {
    earliest: Math.min(one.earliest, other.earliest),
    latest: Math.max(one.latest, other.latest),
  };
}

function atMost({ earliest, latest }: Contact, now: number): Contact {
  return { earliest: Math.min(earliest, now), latest: Math.min(latest, now) };
}

export class Contacts {
  #now = new Map<string, Contact>();
  /**
   * Bounds of every contact since the last stored flush began: any of these times may be stored before the next flush,
   * while contacts from before that flush are gone.
   */
  #stored = new Map<string, Contact>();
  /** The same for the flush in progress, if any. */
  #storing = new Map<string, Contact>();
  /** Contacts that were later than the start, which stay stored until the next one. */
  #later = new Map<string, Contact>();
  /** Certificates whose renewal is in progress, with no possible contact since it was decided. */
  #renewing = new Set<string>();
  /** The latest time at which any reader or node was served: nodes that were silent by then are no longer active. */
  #highWater = 0;
  /** The same, since the clock was last set. */
  #latest = 0;

  /** Records a contact that was decided at one time and answered at another. */
  heardOf(certId: string, decidedAt: number, answeredAt: number): void {
    this.observe(answeredAt);
    this.#now.set(certId, { earliest: decidedAt, latest: this.#latest });
    this.#later.delete(certId);
    this.#mayStore();
  }

  /** A decided heartbeat may be visible already, whether or not it was answered. */
  mayBeHeardOf(certId: string, at: number): void {
    this.observe(at);
    this.#renewing.delete(certId);
    const { earliest = -Infinity } = this.#now.get(certId) ?? {};
    this.#now.set(certId, { earliest, latest: this.#latest });
    this.#mayStore();
  }

  #mayStore(): void {
    for (const [id, contact] of this.#now) this.#mayStoreOne(id, this.#kept(id, contact));
  }

  #kept(id: string, contact: Contact): Contact {
    return either(contact, this.#later.get(id));
  }

  #mayStoreOne(id: string, contact: Contact): void {
    this.#stored.set(id, either(contact, this.#stored.get(id)));
    this.#storing.set(id, either(contact, this.#storing.get(id)));
  }

  /**
   * What a wrong clock has recorded moves with it, so that it is as long ago as before; what is stored from before the
   * start does not. No contact shows as later than now.
   */
  clockSet(now: number, byMs: number): void {
    this.#latest = now;
    for (const [id, contact] of this.#now) {
      const moved = { earliest: contact.earliest + byMs, latest: contact.latest + byMs };
      const known = either(either(contact, moved), this.#stored.get(id));
      this.#now.set(id, atMost(known, now));
      this.#mayStoreOne(id, moved);
    }
    this.#mayStore();
  }

  /** A renewal was decided and is being stored. */
  renewing(certId: string): void {
    this.#renewing.add(certId);
  }

  /** A renewed certificate counts only if there was a contact after its renewal was decided. */
  renewed(certId: string): void {
    if (this.#renewing.delete(certId)) this.#now.delete(certId);
    else this.#inDoubt(certId);
  }

  /** Heartbeats that arrived while the renewal was being stored may have been refused. */
  #inDoubt(certId: string): void {
    const contact = this.#now.get(certId);
    if (contact !== undefined) this.#now.set(certId, { ...contact, earliest: -Infinity });
  }

  observe(now: number): void {
    this.#highWater = Math.max(this.#highWater, now);
    this.#latest = Math.max(this.#latest, now);
  }

  flushBegan(): void {
    this.#storing = new Map(
      [...this.#now].map(([id, contact]) => [id, this.#kept(id, contact)] as const),
    );
  }

  flushStored(): void {
    this.#stored = new Map(this.#storing);
  }

  /**
   * After a restart, only stored contacts and the certificates themselves are known. Those that are later than now show
   * as now, and stay stored.
   */
  restart({ certificates }: State, now: number): void {
    this.#now = new Map();
    this.#renewing.clear();
    for (const [id, { issuedAt, renewedAt }] of certificates) {
      const issued = { earliest: issuedAt, latest: issuedAt };
      const stored = this.#stored.get(id) ?? issued;
      // What was not stored leaves the time of issue, which is later if the clock was set back in between.
      const contact = stored.latest < issuedAt ? either(stored, issued) : stored;
      this.#now.set(id, contact);
      if (renewedAt === null || contact.earliest > renewedAt) continue;
      if (contact.latest <= renewedAt) this.#now.delete(id);
      else this.#inDoubt(id);
    }
    this.#stored = new Map(this.#now);
    this.#latest = now;
    this.#later = new Map([...this.#now].filter(([, { latest }]) => latest > now));
    for (const [id, contact] of this.#now) this.#now.set(id, atMost(contact, now));
  }

  /**
   * A start that died may already have stored contacts adjusted to a clock that was set back, so it is uncertain
   * whether they came after a renewal.
   */
  startDied(now: number): void {
    for (const [id, { latest }] of this.#stored) {
      if (latest > now) this.#stored.set(id, { earliest: -Infinity, latest });
    }
  }

  /** The least and the greatest number of nodes that may count as active. */
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
