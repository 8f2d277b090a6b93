/**
 * One nullifier per proof, ever [trust-4-5]: a used nullifier stays used after a restart, and after a kill
 * under load at any moment.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { GENESIS_HASH } from '../src/store/store.ts';
import type { TestAuthority } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { MINUTE } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { operate } from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import { audited, freshId, startUnlimited } from './support/trust.ts';
import { outcomeWithCause } from './support/trust-protocol.ts';

const NULLIFY = '/admin/disclosure/nullifier';
const USED_UP = '422 nullifier_failed already_issued';
const MISMATCH = '422 nullifier_failed leaf_hash_mismatch';

function proofOf(proof_id: string, changes: JsonObject = {}): JsonObject {
  return {
    proof_id,
    commitment_id: 'commitment',
    revealed_capability: 'read',
    leaf_hash: createHash('sha256').update('read').digest('hex'),
    merkle_path: [],
    prover_sovereign_id: 'beta',
    proved_at: '2026-01-15T12:00:00Z',
    ...changes,
  };
}

async function nullify(na: TestAuthority, proof: JsonObject): Promise<string> {
  return outcomeWithCause(await operate(na, NULLIFY, { proof }));
}

test('everything spent is still spent after a restart, and nothing else is', async () => {
  await using na = await startUnlimited();
  const ids = ['plain', '', '__proto__', '\u{1f680}', 'e\u0301', `${'p'.repeat(100_000)}-end`];
  for (const id of ids) assert.equal(await nullify(na, proofOf(id)), '201');
  assert.equal(await nullify(na, proofOf('refused', { leaf_hash: '' })), MISMATCH);
  await using once = await na.restart();
  for (const id of ids) {
    assert.equal(await nullify(once, proofOf(id)), USED_UP);
    assert.equal(await nullify(once, proofOf(id, { leaf_hash: '' })), USED_UP);
    assert.equal(await nullify(once, proofOf(id, { commitment_id: 'another' })), USED_UP);
  }
  assert.deepEqual(audited(once, 'capability_nullifier_issued'), []);
  for (const id of ['refused', 'Plain', '\u00e9', 'p'.repeat(100_000)]) {
    assert.equal(await nullify(once, proofOf(id)), '201');
  }
  once.clock.advance(10 * MINUTE);
  await using twice = await once.restart();
  for (const id of [...ids, 'refused', 'Plain', '\u00e9', 'p'.repeat(100_000)]) {
    assert.equal(await nullify(twice, proofOf(id)), USED_UP);
  }
});

const ROUNDS = 2;
/** The number of acknowledged nullifiers after which the server is killed, with others in flight. */
const ENOUGH = 60;

/** What the client knows for certain. */
interface Ledger {
  /** Proofs whose nullifier was acknowledged. */
  readonly used: Set<string>;
  /** Proofs whose request was not answered: they may be used, but never twice. */
  readonly unsure: Set<string>;
  unanswered: number;
  readonly surprises: string[];
}

test(`everything spent survives ${ROUNDS} kills under load`, async (t) => {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const ledger: Ledger = { used: new Set(), unsure: new Set(), unanswered: 0, surprises: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    await using server = await startChildServer(folder, { environment: NO_LIMITS });
    await checkUsed(server.na, ledger);
    await useUntilKilled(server, ledger);
    assert.deepEqual(ledger.surprises, [], `round ${round}`);
  }
  await using server = await startChildServer(folder, { environment: NO_LIMITS });
  await checkUsed(server.na, ledger);
  await server.end('SIGTERM');
  const { used, unanswered } = ledger;
  assert.ok(used.size >= ROUNDS * ENOUGH, 'the rounds did enough to mean something');
  const entries = await auditEntriesOf({ dataDir: folder });
  assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
  const issued = entries
    .filter(({ event_type }) => event_type === 'capability_nullifier_issued')
    .map(({ details }) => String(details.proof_id));
  assert.equal(new Set(issued).size, issued.length, 'no proof was nullified twice');
  assert.deepEqual(new Set(issued), used, 'each nullifier has its audit entry');
  t.diagnostic(`${used.size} proofs used up; ${unanswered} requests of theirs were not answered`);
});

/** Sends two competing requests for each of many proofs at once; the kill comes while requests are in flight. */
async function useUntilKilled(server: ChildServer, ledger: Ledger): Promise<void> {
  const goal = ledger.used.size + ENOUGH;
  let killed: Promise<unknown> | null = null;
  const lane = async () => {
    while (killed === null) {
      const id = freshId('proof');
      ledger.unsure.add(id);
      const outcomes = await Promise.all([
        answered(server.na, id, { prover_sovereign_id: 'one' }),
        answered(server.na, id, { prover_sovereign_id: 'two' }),
      ]);
      const won = outcomes.filter((outcome) => outcome === '201').length;
      const gone = outcomes.filter((outcome) => outcome === 'gone').length;
      const lost = outcomes.filter((outcome) => outcome === USED_UP).length;
      // While the server is running, one of the two wins and the other is refused.
      const isRight = won + lost + gone === 2 && won <= 1 && (won === 1 || gone > 0);
      if (!isRight) ledger.surprises.push(`${id}: ${outcomes.join(', ')}`);
      ledger.unanswered += gone;
      if (won === 1) {
        ledger.used.add(id);
        ledger.unsure.delete(id);
      }
      if (ledger.used.size >= goal) killed ??= server.end('SIGKILL');
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  await killed;
}

/** The outcome, or `gone` if the server was killed before it answered. */
async function answered(na: TestAuthority, id: string, changes: JsonObject): Promise<string> {
  try {
    return await nullify(na, proofOf(id, changes));
  } catch (error) {
    // What fetch throws if there is no answer, or only a part of one.
    if (error instanceof TypeError) return 'gone';
    throw error;
  }
}

/** Checks that everything acknowledged is used, and that what was not answered can be used at most once more. */
async function checkUsed(na: TestAuthority, ledger: Ledger): Promise<void> {
  for (const id of ledger.used) {
    assert.equal(await nullify(na, proofOf(id, { commitment_id: 'another' })), USED_UP, id);
  }
  for (const id of ledger.unsure) {
    assert.ok(['201', USED_UP].includes(await nullify(na, proofOf(id))), id);
    assert.equal(await nullify(na, proofOf(id)), USED_UP, id);
    ledger.used.add(id);
  }
  ledger.unsure.clear();
}
