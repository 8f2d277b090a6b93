/**
 * Flips single bits of a stopped authority's database, one for each start: the damage is found, or has no effect. `npm
 * run test:flips` tries 300 bits; MESH_TEST_SEED repeats a choice of bits.
 */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { RECENT_AUDIT } from '../../src/store/audit-log.ts';
import { checkForReading } from '../../src/store/lmdb/folder-state.ts';
import { readAuditEntries } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { DamagedState } from '../../src/store/rows.ts';
import { randomFrom } from '../fuzz/random.ts';
import { startTestAuthority, type TestAuthority } from '../support/authority.ts';
import { ownFolder } from '../support/folders.ts';
import {
  get,
  heartbeat,
  joinedNode,
  operate,
  outcome,
  type TestNode,
} from '../support/requests.ts';
import { scratchFolder } from '../support/scratch.ts';
import { attest, recognize, revokeAttestation } from '../support/trust.ts';
import { seal, unit } from './conformance.ts';

const FLIPS = Number(process.env.MESH_TEST_FLIPS ?? 60);
const SEED = Number(process.env.MESH_TEST_SEED ?? Date.now() % 1_000_000);
const DATABASE = join('state', 'data.mdb');
const PAGE = 4096;
const PUBLIC = [
  '/genesis',
  '/crl',
  '/sovereign-revocation-feed',
  '/attestations',
  '/recognition-treaties',
];

test(`${FLIPS} flipped bits are each found at the start or without effect (seed ${SEED})`, async (t) => {
  await using na = await startTestAuthority();
  const revoked = await smallNetwork(na);
  await na.stop();
  await using unchanged = await na.restart();
  const expected = await answersOf(unchanged, revoked);
  await unchanged.stop();
  const bytes = readFileSync(join(na.dataDir, DATABASE));
  const audit = [...readAuditEntries(na.dataDir)];

  const random = randomFrom(SEED);
  const found: string[] = [];
  for (let round = 0; round < FLIPS; round += 1) {
    const at = random.below(bytes.length);
    const bit = random.below(8);
    const copy = copyOf(na.dataDir);
    writeFileSync(join(copy, DATABASE), flipped(bytes, at, bit));
    const started = await start(copy, na);
    if (typeof started === 'string') {
      assert.match(started, /^The (stored state|data directory) [^\n]{10,300}$/, `${at}.${bit}`);
      found.push(started);
      continue;
    }
    await using running = started;
    assert.deepEqual([...readAuditEntries(copy)].slice(0, audit.length), audit);
    assert.deepEqual(await answersOf(running, revoked), expected, `${at}.${bit}`);
    // Damage to a free page shows up when the page is reused.
    assert.equal(outcome(await heartbeat(running, await joinedNode(running))), '200');
  }
  t.diagnostic(`${found.length} found, ${FLIPS - found.length} without effect`);
});

async function start(dataDir: string, { clock }: TestAuthority): Promise<TestAuthority | string> {
  try {
    return await startTestAuthority({ dataDir, clock });
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}

function copyOf(dataDir: string): string {
  const folder = ownFolder();
  cpSync(dataDir, folder, { recursive: true });
  return folder;
}

function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
  return changed;
}

/** Creates at least one subject of each stored kind. */
test('a start reads only the end of the audit log; who reads all of it hears of damage before that', async (t) => {
  const scratch = scratchFolder('mesh-store-');
  t.after(scratch.remove);
  const folder = join(scratch.path, 'data');
  const store = openLmdbStore(folder);
  // One after the other: those that are committed together share a row.
  for (let index = 0; index < RECENT_AUDIT + 200; index += 1) {
    const entry = { event_id: `entry-${index}.`, event_type: 'node_described', details: {} };
    const chained = { ...entry, created_at: '2026-01-01T00:00:00Z', prev_hash: 'p', hash: 'h' };
    await store.commit(unit({ audit: [seal(chained)] }));
  }
  await store.close();
  const bytes = readFileSync(join(folder, DATABASE));
  // Pages that are no longer in use may hold the entry, too.
  for (let at = bytes.indexOf('entry-7.'); at >= 0; at = bytes.indexOf('entry-7.', at + 1)) {
    bytes.fill(0xff, at - (at % PAGE), at - (at % PAGE) + 64);
  }
  writeFileSync(join(folder, DATABASE), bytes);
  await openLmdbStore(folder).close();
  assert.throws(() => checkForReading(folder), DamagedState);
});

async function smallNetwork(na: TestAuthority): Promise<TestNode> {
  const [living, revoked] = [await joinedNode(na), await joinedNode(na)];
  for (let i = 0; i < 40; i += 1) await joinedNode(na);
  assert.equal(outcome(await heartbeat(na, living)), '200');
  assert.equal(outcome(await operate(na, '/admin/revoke', { cert_id: revoked.certId })), '200');
  const { body } = await attest(na);
  assert.equal((await revokeAttestation(na, body.attestation_id)).status, 200);
  assert.equal((await attest(na)).status, 200);
  assert.equal((await recognize(na)).status, 200);
  await na.flush();
  return revoked;
}

/** Every answer that depends on the state and goes to a reader or a node. */
async function answersOf(na: TestAuthority, revoked: TestNode): Promise<string[]> {
  const documents = await Promise.all(PUBLIC.map((path) => get(na, path)));
  const nodes = await operate(na, '/nodes', {}, { method: 'GET' });
  const refused = await heartbeat(na, revoked);
  return [...documents.map(({ text }) => text), nodes.text, outcome(refused)];
}
