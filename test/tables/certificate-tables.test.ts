/** The columnar tables of certificates, compared with plain maps, with blocks small enough to reach every boundary. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Certificate, UNTOUCHED } from '../../machines/certificate.ts';
import { createCertificateIndex } from '../../src/authority/certificates/certificate-index.ts';
import { createCertificateTable } from '../../src/authority/subjects/certificate-table.ts';
import type { Subject } from '../../src/authority/subjects/kinds.ts';
import {
  createCertificateNumbers,
  createTextIndex,
  NONE,
} from '../../src/authority/subjects/numbering.ts';
import { createSubjects } from '../../src/authority/subjects/subjects.ts';
import type { SubjectRemoval, SubjectWrite } from '../../src/store/store.ts';

const RUNS = { numRuns: 300 };
const id = fc.integer({ min: 0, max: 40 }).map((n) => `c-${n}`);

test('an index of texts behaves like a map, whatever is put and removed, from its smallest size on', () => {
  const step = fc.record({
    what: fc.constantFrom('put', 'put', 'remove'),
    text: fc.oneof(fc.integer({ min: 0, max: 60 }).map(String), fc.constantFrom('', '__proto__')),
  });
  const steps = fc.array(step, { maxLength: 400, size: 'max' });
  fc.assert(
    fc.property(steps, fc.integer(), (all, seed) => {
      const texts: string[] = [''];
      const index = createTextIndex((number) => texts[number] as string, seed, 4);
      const model = new Map<string, number>();
      for (const { what, text } of all) {
        if (what === 'put') {
          const number = texts.push(text) - 1;
          assert.equal(index.put(text, number), model.get(text) ?? NONE);
          model.set(text, number);
        } else {
          assert.equal(index.remove(text), model.get(text) ?? NONE);
          model.delete(text);
        }
        for (const [known, number] of model) assert.equal(index.find(known), number);
        assert.equal(index.find(text), model.get(text) ?? NONE);
      }
    }),
    RUNS,
  );
});

test('numbers belong to one certificate at a time, and are reused once they are released', () => {
  const steps = fc.array(fc.record({ what: fc.constantFrom('take', 'take', 'release'), id }), {
    maxLength: 300,
    size: 'max',
  });
  fc.assert(
    fc.property(steps, (all) => {
      const numbers = createCertificateNumbers(4);
      const model = new Map<string, number>();
      let most = 0;
      for (const { what, id } of all) {
        const known = model.get(id);
        if (what === 'take') {
          const number = numbers.take(id);
          if (known === undefined) assert.ok(![...model.values()].includes(number));
          else assert.equal(number, known);
          model.set(id, number);
        } else if (known !== undefined) {
          numbers.release(known);
          model.delete(id);
          assert.equal(numbers.idOf(known), null);
        }
        most = Math.max(most, model.size);
        assert.equal(numbers.size, model.size);
        assert.equal(numbers.highest, most, 'no number is given out while one is free');
        for (const [held, number] of model) {
          assert.equal(numbers.find(held), number);
          assert.equal(numbers.idOf(number), held);
        }
      }
    }),
    RUNS,
  );
});

test('a table of certificates behaves like a map, whatever is issued, updated and deleted', () => {
  const step = fc.record({
    what: fc.constantFrom('set', 'set', 'delete'),
    id,
    version: fc.nat(),
    key: fc.oneof(fc.base64String({ minLength: 44, maxLength: 44 }), fc.constantFrom('', 'odd')),
    revoked: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 300, size: 'max' }),
      fc.integer({ min: 0, max: 3 }),
      (steps, rowsBits) => {
        const table = createCertificateTable(createCertificateNumbers(4), rowsBits);
        const model = new Map<string, Subject<'certificate'>>();
        for (const { what, id, version, key, revoked } of steps) {
          if (what === 'set') {
            const subject = certificate(version, { nodePublicKey: key }, revoked);
            table.set(id, subject);
            model.set(id, subject);
          } else {
            assert.equal(table.delete(id), model.delete(id));
          }
          assert.equal(table.size, model.size);
          assert.deepEqual(table.get(id), model.get(id));
        }
        assert.deepEqual(new Map(table.entries()), model);
        for (const [id, subject] of model) assert.deepEqual(table.get(id), subject);
      },
    ),
    RUNS,
  );
});

test('certificates are found, updated and removed across block boundaries', () => {
  const table = createCertificateTable(createCertificateNumbers());
  const model = new Map<string, Subject<'certificate'>>();
  const set = (n: number, version: number) => {
    const subject = certificate(version, { issuedAt: n }, version > 1);
    table.set(`c-${n}`, subject);
    model.set(`c-${n}`, subject);
  };
  for (let n = 1; n <= 8_195; n += 1) {
    set(n, 1);
    if (n % 4096 < 2 || n % 4096 > 4093) {
      for (const known of [1, n - 1, n]) if (known > 0) set(known, 2);
    }
  }
  for (let n = 4_090; n <= 4_100; n += 1) {
    assert.ok(table.delete(`c-${n}`));
    model.delete(`c-${n}`);
  }
  assert.deepEqual(new Map(table.entries()), model);
  for (let n = 10_001; n <= 10_020; n += 1) set(n, 1);
  assert.deepEqual(new Map(table.entries()), model);
  assert.equal(table.size, model.size);
});

test('a walk over the table continues through changes and deletions', () => {
  const table = createCertificateTable(createCertificateNumbers(), 2);
  for (let n = 0; n < 20; n += 1) table.set(`c-${n}`, certificate(1));
  const seen: string[] = [];
  for (const [id] of table.entries()) {
    seen.push(id);
    table.delete(id);
    table.delete('c-17');
    if (id === 'c-3') table.set('later', certificate(1));
  }
  assert.equal(new Set(seen).size, seen.length);
  assert.ok(!seen.includes('c-17'));
  assert.equal(seen.filter((id) => id.startsWith('c-')).length, 19);
});

interface Owned {
  readonly key: string;
  readonly issuedAt: number;
}

test('the index of keys knows the certificates of each key, which came last, and its description, with removals', () => {
  const key = fc.integer({ min: 0, max: 5 }).map((n) => `key-${n}`);
  const step = fc.record({
    what: fc.constantFrom('issue', 'issue', 'issue', 'restore', 'update', 'remove', 'describe'),
    id,
    key,
    issuedAt: fc.integer({ min: 0, max: 9 }),
    settled: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 150, size: 'max' }),
      fc.integer(),
      fc.integer({ min: 0, max: 3 }),
      (steps, seed, rowsBits) => {
        const numbers = createCertificateNumbers(4);
        const subjects = createSubjects(numbers);
        const options = { subjects, numbers, seed, rowsBits, firstSlots: 4 };
        const index = createCertificateIndex(options);
        subjects.follow({
          certificate: { decided: index.add, removed: index.remove },
          'node-description': { committed: index.describe },
        });
        const model = new Map<string, Owned>();
        for (const { what, id, key, issuedAt, settled } of steps) {
          const known = model.get(id);
          const facts = known ?? { key, issuedAt };
          const { version, ...rest } = certificate(known === undefined ? 1 : 2, {
            nodePublicKey: facts.key,
            issuedAt: facts.issuedAt,
          });
          const write: SubjectWrite = {
            kind: 'certificate',
            id,
            version,
            replaces: version - 1,
            snapshot: rest,
          };
          const removal: SubjectRemoval = { kind: 'certificate', id, replaces: 1 };
          if (what === 'describe') {
            const described = description(key, `name-${issuedAt}`);
            const change = { writes: [described], removals: [] };
            subjects.decide(change);
            if (settled) subjects.settle(change);
          } else if (what === 'remove') {
            if (known === undefined) continue;
            const change = { writes: [], removals: [removal] };
            subjects.decide(change);
            subjects.settle(change);
            model.delete(id);
          } else if (what === 'restore') {
            subjects.restore('certificate', id, { version, ...rest });
            model.set(id, facts);
          } else if (known !== undefined || what === 'issue') {
            const change = { writes: [write], removals: [] };
            subjects.decide(change);
            if (settled) subjects.settle(change);
            model.set(id, facts);
          }
          checkOwners(index, model);
          for (const [id, { key }] of model) {
            const described = subjects.committed('node-description', key)?.context;
            assert.deepEqual(index.descriptionOf(id), described);
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});

function description(key: string, name: string): SubjectWrite {
  const snapshot = { value: 'described', context: { name, labels: [], hostname: null } };
  return { kind: 'node-description', id: key, version: 1, replaces: 0, snapshot };
}

function checkOwners(
  index: ReturnType<typeof createCertificateIndex>,
  model: ReadonlyMap<string, Owned>,
): void {
  for (let n = 0; n <= 5; n += 1) {
    const key = `key-${n}`;
    const owned = [...model].filter(([, facts]) => facts.key === key).map(([id]) => id);
    assert.deepEqual(index.ownedBy(key).sort(), owned.sort());
    assert.equal(owned.filter((id) => index.isNewest(id, key)).length, owned.length > 0 ? 1 : 0);
  }
}

test('the certificate that was issued last is the newest of its key, in any order of arrival', () => {
  const issuedAt = fc.uniqueArray(fc.integer({ min: 0, max: 99 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(issuedAt, (instants) => {
      const numbers = createCertificateNumbers();
      const subjects = createSubjects(numbers);
      const index = createCertificateIndex({ subjects, numbers, seed: 1 });
      subjects.follow({ certificate: { decided: index.add } });
      for (const issuedAt of instants) {
        subjects.restore('certificate', `c-${issuedAt}`, certificate(1, { issuedAt }));
      }
      assert.ok(index.isNewest(`c-${Math.max(...instants)}`, certificate(1).context.nodePublicKey));
    }),
  );
});

function certificate(
  version: number,
  members: Partial<Certificate> = {},
  revoked = false,
): Subject<'certificate'> {
  return {
    version,
    value: revoked ? 'revoked' : 'issued',
    context: {
      nodePublicKey: Buffer.alloc(32, 7).toString('base64'),
      roles: ['role:client'],
      issuedAt: 0,
      expiresAt: 10,
      maxValidityHours: 1,
      remoteAddr: '192.0.2.1',
      ...UNTOUCHED,
      ...(revoked ? { revokedAt: 5, revocationReason: 'unspecified', crlSequence: 1 } : {}),
      ...members,
    },
  };
}
