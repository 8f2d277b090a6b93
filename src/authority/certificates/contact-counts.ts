/** Counts when the nodes with a certificate in use were last heard from, for operators [core-4-23]. */
import { DAY_MS, HOUR_MS } from '../../base/duration.ts';
import type { Writable } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import type { ContactBin, ContactCounts } from '../../protocol/rows/certificate.ts';
import type { Described } from '../../protocol/rows/node-description.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { Sliced } from '../subjects/sliced.ts';
import { certificateSearch } from './certificate-list.ts';
import type { LastContact } from './last-contact.ts';

const WEEK = 7 * DAY_MS;
/** The most bins of a kind. */
const MOST_BINS = 1000;
/** With an asterisk after it, a longer beginning of a name would not be a valid filter. */
const LONGEST_BEGINNING = 63;

type Contact = Pick<LastContact, 'lastSeen' | 'isActive' | 'remoteAddr'>;

/**
 * Counts when nodes were last heard from, in bins of nodes that probably stand or fall together [core-4-23]: those with
 * the same value of a label, or with names, host names or addresses that begin alike.
 * `label` is the key of a label, or null. `now` is in milliseconds since the epoch.
 */
export function createContactBins(label: string | null, now: number) {
  const total = new Tally();
  const labels = new Map<string, Tally>();
  const unlabeled = new Tally();
  const other = new Tally();
  const names = new Beginnings();
  const hostnames = new Beginnings();
  const addresses = new Beginnings();

  function labeled(text: string): Tally {
    const known = labels.get(text);
    if (known !== undefined) return known;
    if (labels.size === MOST_BINS) return other;
    const tally = new Tally();
    labels.set(text, tally);
    return tally;
  }

  return {
    add(contact: Contact, { name, hostname, labels: texts }: Described | undefined = {}) {
      total.add(contact, now);
      if (label !== null) {
        const text = texts?.find((each) => each.startsWith(label) && each[label.length] === '=');
        (text === undefined ? unlabeled : labeled(text)).add(contact, now);
      } else if (name != null) names.add(name.toLowerCase(), contact, now);
      else if (hostname != null) hostnames.add(hostname.toLowerCase(), contact, now);
      else addresses.add(contact.remoteAddr, contact, now);
    },
    counted: () => ({
      as_of: formatInstant(now),
      total: total.counts(),
      bins: [
        ...binsOf('label', labels),
        ...binsOf('name', names.bins('*')),
        ...binsOf('hostname', hostnames.bins('*')),
        ...binsOf('remote_addr', addresses.bins('')),
      ],
      unlabeled: unlabeled.countsIfAny(),
      other: other.countsIfAny(),
    }),
  };
}

function binsOf(by: ContactBin['by'], tallies: ReadonlyMap<string, Tally>): ContactBin[] {
  return [...tallies]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([value, tally]) => ({ by, value, ...tally.counts() }));
}

class Tally {
  #active = 0;
  readonly #silent = { hour: 0, day: 0, week: 0, longer: 0 };
  #since = Number.POSITIVE_INFINITY;

  add({ lastSeen, isActive }: Contact, now: number): void {
    if (isActive) {
      this.#active += 1;
      return;
    }
    const ago = now - lastSeen;
    if (ago < HOUR_MS) this.#silent.hour += 1;
    else if (ago < DAY_MS) this.#silent.day += 1;
    else if (ago < WEEK) this.#silent.week += 1;
    else this.#silent.longer += 1;
    if (lastSeen < this.#since) this.#since = lastSeen;
  }

  merge(from: Tally): void {
    this.#active += from.#active;
    this.#silent.hour += from.#silent.hour;
    this.#silent.day += from.#silent.day;
    this.#silent.week += from.#silent.week;
    this.#silent.longer += from.#silent.longer;
    this.#since = Math.min(this.#since, from.#since);
  }

  counts(): ContactCounts {
    const { hour, day, week, longer } = this.#silent;
    const silent = hour + day + week + longer;
    return {
      count: this.#active + silent,
      active: this.#active,
      silent_under_hour: hour,
      silent_under_day: day,
      silent_under_week: week,
      silent_longer: longer,
      silent_since: silent === 0 ? null : formatInstant(this.#since),
    };
  }

  countsIfAny(): ContactCounts | null {
    const counts = this.counts();
    return counts.count === 0 ? null : counts;
  }
}

/**
 * A bin for each beginning of a text. The beginnings are as long as they can be without making too many bins, so the
 * result does not depend on the order in which texts are added.
 */
class Beginnings {
  #length = LONGEST_BEGINNING;
  #tallies = new Map<string, Tally>();

  add(text: string, contact: Contact, now: number): void {
    this.#tallyOf(text).add(contact, now);
    while (this.#tallies.size > MOST_BINS) this.#shorten();
  }

  /** With `rest` after those that are not the entire text. */
  bins(rest: string): ReadonlyMap<string, Tally> {
    return new Map(
      [...this.#tallies].map(([beginning, tally]) =>
        beginning.length < this.#length ? [beginning, tally] : [beginning + rest, tally],
      ),
    );
  }

  #tallyOf(text: string): Tally {
    const beginning = beginningOf(text, this.#length);
    const known = this.#tallies.get(beginning);
    if (known !== undefined) return known;
    const tally = new Tally();
    this.#tallies.set(beginning, tally);
    return tally;
  }

  #shorten(): void {
    this.#length -= 1;
    const longer = this.#tallies;
    this.#tallies = new Map();
    for (const [beginning, tally] of longer) this.#tallyOf(beginning).merge(tally);
  }
}

/** Never half of a character that takes two code units: then it is one longer. */
function beginningOf(text: string, length: number): string {
  if (text.length <= length) return text;
  const isHalf = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return text.slice(0, isHalf ? length + 1 : length);
}

export const countContacts: Handler<'countContacts'> = (na, question, at) =>
  new Sliced(contacts(na, question, at));

function* contacts(
  na: Authority,
  { group, ...filters }: CallInput<'countContacts'>,
  at: number,
): Generator<void, Writable> {
  const isFiltered = Object.values(filters)
    .flat()
    .some((wanted) => wanted !== null);
  // Searching reads whole certificates, which takes several times as long.
  const found = isFiltered ? certificateSearch(na, { ...filters, status: 'in_use' }, at) : null;
  const bins = createContactBins(group, at);
  for (const certificates of na.subjects.acceptedCertificates(at)) {
    for (const { id, number, isRenewed } of certificates) {
      const contact = na.liveness.contactAt(number, at);
      if (!contact.isActive && isRenewed) continue;
      if (found !== null && found(id) === null) continue;
      bins.add(contact, na.certificates.descriptionAt(number));
    }
    yield;
  }
  return bins.counted();
}
