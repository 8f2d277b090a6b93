/** Last contacts in columns, compared with a plain list, with removals and blocks of a few rows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLiveness } from '../../src/authority/certificates/last-contact.ts';
import type { RosterWalk } from '../../src/authority/certificates/roster.ts';
import { createCertificateNumbers, NONE } from '../../src/authority/subjects/numbering.ts';

const WINDOW = 100;

interface Known {
  lastSeen: number;
  /** What is stored, if it is later than now; null if that is `lastSeen`. */
  later: number | null;
  status: string;
  remoteAddr: string;
  newestSignedAt: number;
  dirty: boolean;
}

const step = fc.record({
  what: fc.constantFrom(
    ...(['touch', 'touch', 'touch', 'sign', 'retire', 'remove', 'wait', 'take', 'walk'] as const),
    'take_some' as const,
    'set_clock' as const,
  ),
  id: fc.integer({ min: 0, max: 12 }).map((n) => `c-${n}`),
  amount: fc.integer({ min: 0, max: 60 }),
});

test('last contacts match a plain map and list, whatever happens and is removed', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 200, size: 'max' }),
      fc.integer({ min: 0, max: 3 }),
      (steps, rowsBits) => {
        const numbers = createCertificateNumbers(4);
        const liveness = createLiveness(WINDOW, numbers, rowsBits);
        const known = new Map<string, Known>();
        /** Ids in the order of their last contacts, newest last. */
        let active: string[] = [];
        /** Those that were dropped from it because they were not heard from. */
        const quiet = new Set<string>();
        let now = 1_000_000;
        let recordedFrom = now;
        liveness.begin(now);
        let newest = 0;
        const walks: { walk: RosterWalk; expected: string[]; seen: string[] }[] = [];

        const of = (id: string): Known => {
          const one = known.get(id) ?? newContact();
          known.set(id, one);
          return one;
        };
        const dropQuiet = () => {
          for (const id of active) if (now - of(id).lastSeen >= WINDOW) quiet.add(id);
          active = active.filter((id) => !quiet.has(id));
          newest = of(active.at(-1) ?? '').lastSeen;
          known.delete('');
        };
        for (const { what, id, amount } of steps) {
          if (what === 'touch') {
            const at = now - (amount % 5);
            const status = amount % 3 === 0 ? `ok ${amount}` : `bad ${amount}`;
            liveness.touch(id, { at, status, remoteAddr: id, chain: 0 });
            liveness.noteSigned(id, amount);
            const lastSeen = active.length === 0 ? at : Math.max(at, newest);
            const contact = of(id);
            const heard = { lastSeen, later: null, status, remoteAddr: id };
            Object.assign(contact, heard, { dirty: true });
            contact.newestSignedAt = Math.max(contact.newestSignedAt, amount);
            newest = lastSeen;
            active = [...active.filter((other) => other !== id), id];
            quiet.delete(id);
          } else if (what === 'sign' && known.has(id)) {
            liveness.noteSigned(id, amount);
            const contact = of(id);
            if (amount > contact.newestSignedAt) contact.dirty = true;
            contact.newestSignedAt = Math.max(contact.newestSignedAt, amount);
          } else if (what === 'retire' || what === 'remove') {
            if (what === 'retire') liveness.retire(id);
            else {
              liveness.remove(id);
              if (numbers.find(id) !== NONE) numbers.release(numbers.find(id));
              known.delete(id);
            }
            quiet.delete(id);
            active = active.filter((other) => other !== id);
            newest = known.get(active.at(-1) ?? '')?.lastSeen ?? 0;
          } else if (what === 'wait') {
            now += amount;
          } else if (what === 'set_clock') {
            const byMs = (amount - 40) * 5;
            const wasWrong = amount % 3 > 0;
            now += byMs;
            liveness.clockSet(now, byMs, wasWrong);
            for (const contact of known.values()) {
              if (wasWrong && contact.lastSeen >= recordedFrom) {
                contact.lastSeen += byMs;
                if (contact.later === null) contact.dirty = true;
              }
              const stored = contact.later ?? contact.lastSeen;
              if (stored <= now) {
                Object.assign(contact, { lastSeen: stored, later: null });
              } else {
                const lastSeen = Math.min(contact.lastSeen, now);
                Object.assign(contact, { lastSeen, later: stored });
              }
            }
            recordedFrom = wasWrong ? recordedFrom + byMs : now;
            active = active.toSorted((a, b) => of(a).lastSeen - of(b).lastSeen);
            newest = known.get(active.at(-1) ?? '')?.lastSeen ?? 0;
          } else if (what === 'take') {
            const rows = liveness.takeDirty().map(({ id, ...row }) => [id, row] as const);
            const expected = [...known].filter(([, { dirty }]) => dirty);
            assert.deepEqual(
              new Map(rows),
              new Map(expected.map(([id, contact]) => [id, rowOf(contact)])),
            );
            assert.equal(rows.length, expected.length);
            for (const [, contact] of expected) contact.dirty = false;
          } else if (what === 'take_some') {
            const rows = liveness.takeDirty(2);
            for (const { id, ...row } of rows) {
              assert.deepEqual([of(id).dirty, row], [true, rowOf(of(id))]);
              of(id).dirty = false;
            }
            assert.ok(rows.length <= 2);
            const isDirty = [...known.values()].some(({ dirty }) => dirty);
            if (isDirty) assert.ok(liveness.dirtyCount() > 0);
          } else if (what === 'walk') {
            dropQuiet();
            const expected = active.map((id) => viewOf(id, of(id)));
            walks.push({ walk: liveness.walk(now), expected, seen: [] });
          }
          for (const { walk, seen } of walks.slice(-2)) {
            if (amount % 3 === 0) seen.push(...walk.take(2).map((view) => viewOf(view.id, view)));
          }
          dropQuiet();
          assert.equal(liveness.activeCount(now), active.length);
          const quietIds = liveness.quietIds(now, quiet.size, () => false);
          assert.deepEqual(quietIds?.sort(), [...quiet].sort());
          const unwell = [...known]
            .filter(([, { status }]) => /^bad/.test(status))
            .map(([id]) => id);
          assert.deepEqual(liveness.unwellIds(unwell.length)?.sort(), unwell.sort());
          assert.equal(liveness.newestSignedAt(id), known.get(id)?.newestSignedAt ?? 0);
        }
        for (const { walk, expected, seen } of walks) {
          for (let rest = walk.take(3); rest.length > 0; rest = walk.take(3)) {
            seen.push(...rest.map((view) => viewOf(view.id, view)));
          }
          assert.equal(walk.count, expected.length);
          assert.deepEqual(seen.sort(), expected.sort());
        }
      },
    ),
    { numRuns: 300 },
  );
});

function newContact(): Known {
  return { lastSeen: 0, later: null, status: '', remoteAddr: '', newestSignedAt: 0, dirty: false };
}

function rowOf({ dirty: _, later, ...row }: Known) {
  return { ...row, lastSeen: later ?? row.lastSeen };
}

function viewOf(
  id: string,
  { lastSeen, status, remoteAddr }: Omit<Known, 'dirty' | 'later' | 'newestSignedAt'>,
) {
  return JSON.stringify([id, lastSeen, status, remoteAddr]);
}
