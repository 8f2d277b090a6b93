/** Subjects at rest, compared with plain maps of what was restored, decided and settled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { type Certificate, UNTOUCHED } from '../machines/certificate.ts';
import type { Authority } from '../src/authority/authority.ts';
import { createLiveness } from '../src/authority/certificates/last-contact.ts';
import { execute } from '../src/authority/engine/execute.ts';
import { restoreSubjects } from '../src/authority/restore.ts';
import type { Subject } from '../src/authority/subjects/kinds.ts';
import { createCertificateNumbers } from '../src/authority/subjects/numbering.ts';
import { createSliceQueue, Sliced } from '../src/authority/subjects/sliced.ts';
import { createSubjects, toSubject } from '../src/authority/subjects/subjects.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import type { StoredLiveness, StoredSubject, SubjectWrite } from '../src/store/store.ts';
import { anyText } from './support/any-text.ts';
import { inOneBatch } from './support/stored.ts';

const ID = fc.oneof(fc.constantFrom('', 'a', 'b', '__proto__'), fc.uuid(), fc.string());
const BASE64_OF_32_BYTES = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64'));
/** Node keys, and texts that base64 decoders may or may not read as one. */
const KEY = fc.oneof(
  BASE64_OF_32_BYTES,
  BASE64_OF_32_BYTES.map((key) => `${key.slice(0, 42)}B=`),
  BASE64_OF_32_BYTES.map((key) => key.slice(0, 43)),
  BASE64_OF_32_BYTES.map((key) => `${key}=`),
  fc.constantFrom('', '='.repeat(44), 'A'.repeat(44), '-'.repeat(43)),
  anyText({ minLength: 44, maxLength: 44 }),
);
const INSTANT = fc.oneof(fc.maxSafeNat(), fc.double());

function orNull<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.option(value, { freq: 2 });
}

/** Objects with the same prototype as literals. */
function plain<T>(members: { [Name in keyof T]: fc.Arbitrary<T[Name]> }): fc.Arbitrary<T> {
  return fc.record<T>(members, { noNullPrototype: true });
}

const CERTIFICATE: fc.Arbitrary<Certificate> = plain({
  nodePublicKey: KEY,
  roles: fc.array(fc.string(), { maxLength: 3 }),
  issuedAt: INSTANT,
  expiresAt: INSTANT,
  maxValidityHours: INSTANT,
  remoteAddr: fc.string(),
  renewedFrom: orNull(ID),
  renewedAt: orNull(INSTANT),
  supersededFrom: orNull(INSTANT),
  revokedAt: orNull(INSTANT),
  revocationReason: orNull(fc.string()),
  crlSequence: orNull(fc.nat()),
});

const WRITE: fc.Arbitrary<SubjectWrite> = plain({
  kind: fc.constant('certificate'),
  id: ID,
  version: fc.nat(),
  replaces: fc.constant(0),
  snapshot: plain({
    value: fc.constantFrom('issued', 'renewed', 'revoked', 'another'),
    context: CERTIFICATE,
  }),
});

test('certificates are read as from a map, whatever was restored, decided and settled', () => {
  const step = fc.tuple(fc.constantFrom('restore', 'decide', 'settle', 'decide and settle'), WRITE);
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const subjects = createSubjects(createCertificateNumbers());
      const committed = new Map<string, Subject>();
      const pending = new Map<string, Subject>();
      for (const [what, write] of steps) {
        const subject = toSubject(write);
        if (what === 'restore') {
          subjects.restore('certificate', write.id, subject);
          committed.set(write.id, subject);
        }
        if (what.startsWith('decide')) {
          subjects.decide({ writes: [write], removals: [] });
          pending.set(write.id, subject);
        }
        if (what.endsWith('settle')) {
          subjects.settle({ writes: [write], removals: [] });
          committed.set(write.id, subject);
          if (pending.get(write.id)?.version === write.version) pending.delete(write.id);
        }
        for (const id of [write.id, 'a', 'nobody']) {
          const current = pending.get(id) ?? committed.get(id);
          assert.deepEqual(subjects.current('certificate', id), current);
          assert.deepEqual(subjects.committed('certificate', id), committed.get(id));
        }
      }
      assert.deepEqual([...subjects.allCommitted('certificate')], [...committed]);
      assert.equal(subjects.countCommitted('certificate'), committed.size);
    }),
  );
});

test('a subject is gone when its removal is decided, and may be written again before that is on disk', () => {
  fc.assert(
    fc.property(WRITE, fc.boolean(), (write, isWrittenAgain) => {
      const subjects = createSubjects(createCertificateNumbers());
      const { kind, id, version } = write;
      const removed = { writes: [], removals: [{ kind, id, replaces: version }] };
      const current = () => subjects.current('certificate', id);
      subjects.restore('certificate', id, toSubject(write));
      subjects.decide(removed);
      assert.equal(current(), undefined);
      assert.deepEqual(subjects.committed('certificate', id), toSubject(write), 'not on disk yet');
      const again = { writes: isWrittenAgain ? [write] : [], removals: [] };
      const expected = isWrittenAgain ? toSubject(write) : undefined;
      for (const step of [() => subjects.decide(again), () => subjects.settle(removed)]) {
        step();
        assert.deepEqual(current(), expected);
      }
      assert.equal(subjects.committed('certificate', id), undefined);
      subjects.settle(again);
      assert.deepEqual(subjects.committed('certificate', id), expected);
      assert.equal(subjects.hasPending(), false);
    }),
  );
});

test('the ids of an imported feed are not kept, because the graph has them', () => {
  const subjects = createSubjects(createCertificateNumbers());
  const context = {
    issuer: 'b',
    feedId: 'f',
    sequence: '1',
    revokedAt: 0,
    rows: ['[["id",null]]'],
  };
  const given: string[][] = [];
  subjects.follow({
    'revocation-import': { committed: (_, subject) => void given.push([...subject.context.rows]) },
  });
  subjects.restore('revocation-import', 'slot', { version: 1, value: 'stored', context });
  const kept = subjects.committed('revocation-import', 'slot');
  assert.deepEqual(kept?.context, { ...context, rows: [] });
  assert.deepEqual(given, [context.rows]);
});

test('a start finds the last contact of each certificate, and which of them are active', async () => {
  const id = fc.constantFrom('', 'a', 'aa', 'b', 'c', 'd');
  const instant = fc.integer({ min: 1, max: 9 });
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(id, fc.tuple(instant, orNull(instant), fc.boolean())),
      fc.dictionary(id, instant),
      instant,
      async (issued, heard, activeSince) => {
        const certificates = Object.entries(issued)
          .sort()
          .map(([id, [issuedAt, renewedAt, isRevoked]]) =>
            certificate(id, { issuedAt, renewedAt }, isRevoked ? 'revoked' : 'issued'),
          );
        const contacts = Object.entries(heard)
          .sort()
          .map(([id, lastSeen]) => contact(id, lastSeen));
        const numbers = createCertificateNumbers();
        const subjects = createSubjects(numbers);
        const liveness = createLiveness(1000, numbers);
        await restoreSubjects(
          { subjects: inOneBatch(certificates), liveness: inOneBatch(contacts) },
          { subjects, liveness, operatorKey: () => null, activeSince, now: Infinity },
        );

        const seen = Object.entries(issued)
          .filter(([id, [issuedAt, renewedAt, isRevoked]]) => {
            const lastSeen = heard[id] ?? issuedAt;
            return !isRevoked && lastSeen > activeSince && lastSeen > (renewedAt ?? 0);
          })
          .map(([id]) => id);
        assert.equal(liveness.activeCount(10), seen.length);
        for (const id of seen) liveness.retire(id);
        assert.equal(liveness.activeCount(10), 0);
        for (const [id] of Object.entries(issued)) {
          assert.equal(liveness.newestSignedAt(id), heard[id] ?? 0);
        }
      },
    ),
  );
});

function contact(id: string, lastSeen: number): StoredLiveness {
  return { id, lastSeen, status: 'ok', remoteAddr: '192.0.2.1', newestSignedAt: lastSeen };
}

function certificate(
  id: string,
  members: Partial<Certificate> = {},
  value = 'issued',
): StoredSubject {
  const context: Certificate = {
    nodePublicKey: `key of ${id}`,
    roles: ['role:client'],
    issuedAt: 0,
    expiresAt: 10,
    maxValidityHours: 1,
    remoteAddr: '192.0.2.1',
    ...UNTOUCHED,
    ...members,
  };
  return { kind: 'certificate', id, version: 1, snapshot: { value, context } };
}

/** An authority whose store takes three turns of the event loop to commit. */
function slowlyCommitting(): Authority {
  return {
    exclusive: null,
    subjects: createSubjects(createCertificateNumbers()),
    runtime: { now: () => 0 },
    sliceQueue: createSliceQueue(),
    audit: { extend: () => [] },
    bulletin: { logged: () => undefined },
    eventTail: { add: () => undefined },
    lastCommit: Promise.resolve(),
    store: {
      async commit() {
        for (let turn = 0; turn < 3; turn += 1) await nextTurn();
      },
    },
  } as unknown as Authority;
}

test('a refusal for what is not on disk yet is answered once it is', async () => {
  const na = slowlyCommitting();
  const answered: string[] = [];
  const run = (name: string, decide: Parameters<typeof execute<null>>[1]) =>
    Promise.resolve(execute(na, decide, null)).then(() => answered.push(name));
  const refuse = () => {
    throw new Refusal('certificate_revoked');
  };
  const revocation = run('the revocation', (_, unit) => {
    unit.send('node-key', 'id', {
      type: 'record',
      record: { nodePublicKey: 'key', compromisedAt: 0 },
    });
    return null;
  });
  await Promise.all([revocation, run('the refusal', refuse)]);
  assert.deepEqual(answered, ['the revocation', 'the refusal']);
  assert.deepEqual(execute(na, refuse, null), {
    ok: false,
    refusal: 'certificate_revoked',
    details: {},
  });
});

test('a long query that fails before its nonce is stored is an error of its caller alone', async () => {
  const na = slowlyCommitting();
  // biome-ignore lint/correctness/useYield: it fails at once
  function* failing(): Generator<void, null> {
    throw new Error('it fails');
  }
  const unhandled: unknown[] = [];
  const note = (cause: unknown) => void unhandled.push(cause);
  process.on('unhandledRejection', note);
  const answer = execute(
    na,
    (_, unit) => {
      unit.spend({ digest: 'spent', forgetAt: 1 }, null);
      return new Sliced(failing());
    },
    null,
  );
  await assert.rejects(Promise.resolve(answer), /it fails/);
  process.off('unhandledRejection', note);
  assert.deepEqual(unhandled, []);
});
