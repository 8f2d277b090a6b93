/**
 * The revocation feed never equivocates: a server that attests and revokes is killed at random moments; no sequence of
 * its feed may ever have two contents, and no acknowledged revocation may be missing.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { readRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import type { TestAuthority } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { gone } from './support/kills.ts';
import { get, operate, outcome } from './support/requests.ts';

/** `npm run test:longer -- kills` runs more. */
const ROUNDS = Number(process.env.MESH_TEST_KILLS ?? 5);
/**
 * How many acknowledged revocations there are, at least and at most, before a server is killed while others are in
 * flight.
 */
const LOAD = { least: 2, most: 25 };

/** What the test knows for certain: only what was acknowledged or could be read. */
interface Ledger {
  readonly active: string[];
  /** Attestations whose revocation was acknowledged. */
  readonly revoked: Set<string>;
  /** Every feed that was read, as bytes by sequence. */
  readonly feeds: Map<number, string>;
  highest: number;
  readonly surprises: string[];
}

test(`the revocation feed survives ${ROUNDS} kills under load without equivocating`, async (t) => {
  const { folder, made } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const ledger: Ledger = {
    active: [],
    revoked: new Set(),
    feeds: new Map(),
    highest: 0,
    surprises: [],
  };
  for (let round = 0; round <= ROUNDS; round += 1) {
    await using server = await startChildServer(folder, { environment: NO_LIMITS });
    await checkFeed(server.na, ledger, made.na_public_key);
    if (round === ROUNDS) {
      await server.end('SIGTERM');
      break;
    }
    await loadUntilKilled(server, ledger, randomInt(LOAD.least, LOAD.most + 1));
    assert.deepEqual(ledger.surprises, [], `round ${round}`);
  }
  t.diagnostic(`${ledger.revoked.size} revocations acknowledged, ${ledger.feeds.size} feeds read`);
  assert.ok(ledger.revoked.size >= ROUNDS * LOAD.least, 'the rounds did enough to mean something');
});

/** Attests and revokes; kills the server when enough revocations are acknowledged. */
async function loadUntilKilled(server: ChildServer, ledger: Ledger, enough: number): Promise<void> {
  const goal = ledger.revoked.size + enough;
  let killed: Promise<unknown> | null = null;
  const untilKilled = async (act: typeof attest) => {
    while (killed === null) {
      const isGone = await gone(() => act(server.na, ledger));
      if (isGone && killed === null) ledger.surprises.push('a request was not answered');
      if (isGone || ledger.revoked.size >= goal) killed ??= server.end('SIGKILL');
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all([attest, revoke, revoke, revoke, readFeed, readFeed].map(untilKilled));
  await killed;
}

async function attest(na: TestAuthority, ledger: Ledger): Promise<void> {
  if (ledger.active.length > 50) return;
  const answer = await operate(na, '/admin/attestations', {
    subject_id: 'agent',
    roles: ['role:client'],
  });
  if (outcome(answer) === '200') ledger.active.push(answer.body.attestation_id);
  else ledger.surprises.push(`attest: ${outcome(answer)}`);
}

async function revoke(na: TestAuthority, ledger: Ledger): Promise<void> {
  const id = ledger.active.shift();
  if (id === undefined) return;
  const answer = await operate(na, `/admin/attestations/${id}/revoke`, { reason: 'left' });
  if (outcome(answer) === '200') ledger.revoked.add(id);
  else ledger.surprises.push(`revoke: ${outcome(answer)}`);
}

async function readFeed(na: TestAuthority, ledger: Ledger): Promise<void> {
  const before = ledger.highest;
  const answer = await get(na, '/sovereign-revocation-feed');
  const { sequence } = answer.body;
  if (sequence < before) ledger.surprises.push(`sequence went back: ${before} to ${sequence}`);
  if ((ledger.feeds.get(sequence) ?? answer.text) !== answer.text) {
    ledger.surprises.push(`sequence ${sequence} names two contents`);
  }
  ledger.feeds.set(sequence, answer.text);
  ledger.highest = Math.max(ledger.highest, sequence);
}

/** After a restart, the feed is signed and contains everything that was acknowledged or ever read. */
async function checkFeed(na: TestAuthority, ledger: Ledger, publicKey: string): Promise<void> {
  await readFeed(na, ledger);
  assert.deepEqual(ledger.surprises, []);
  const feed = readRevocationFeed(JSON.parse(ledger.feeds.get(ledger.highest) ?? '{}'));
  assert.ok(feed !== null && isSignedByAny(feed, [publicKey], verifySignature));
  const listed = new Set(feed.revoked_attestation_ids);
  assert.equal(listed.size, Number(feed.sequence), 'one sequence for each revocation');
  for (const id of ledger.revoked) assert.ok(listed.has(id), `the revocation of ${id}`);
  for (const text of ledger.feeds.values()) {
    for (const id of JSON.parse(text).revoked_attestation_ids) assert.ok(listed.has(id));
  }
}
