/**
 * The authority's key is replaced while servers are killed at random moments of each step, under heartbeats and
 * revocations: after each restart, a step has happened entirely or not at all, in the state and in the files
 * [authority-keys-10], and acknowledged steps have happened.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { followChain } from '../src/protocol/records/authority-chain.ts';
import { type SignedRecord, signedText } from '../src/protocol/records/signed-record.ts';
import { readAuditEntries } from '../src/store/lmdb/source.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { readAuditLog } from '../src/store/postgresql/source.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import type { TestAuthority } from './support/authority.ts';
import { TOOLS } from './support/authority-chain.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { gone } from './support/exchange.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import {
  get,
  heartbeat,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type TestNode,
} from './support/requests.ts';
import { DAY, keyIn, stage, step, succession } from './support/successions.ts';

/** For each store; `npm run test:longer -- kills` runs more. */
const KILLS = Number(process.env.MESH_TEST_KILLS ?? 10);
/** The latest kill after a request is sent, as a multiple of how long such a request last took. */
const LATEST = 1.6;
/** Assumed for the first request, in milliseconds. */
const FIRST_GUESS = 100;

/** The keys that sign, and the staged one. */
interface Keys {
  readonly current: string;
  readonly previous: string | null;
  readonly staged: string | null;
  readonly isRolledBack: boolean;
}

interface Attempt {
  readonly name: string;
  request(): Promise<Received>;
  /** The keys after the step. */
  readonly then: Keys;
  /** What the keys may be after a restart if the step was not answered. */
  readonly outcomes: readonly Keys[];
}

/** What is known for certain: only what was acknowledged or could be read. */
interface Ledger {
  /** What the keys may be: two possibilities if a step was not answered. */
  possible: readonly Keys[];
  readonly nodes: TestNode[];
  readonly revoked: Set<string>;
  /** Every revocation list that was read, as bytes by sequence. */
  readonly lists: Map<number, string>;
  highest: number;
  readonly surprises: string[];
  /** The latest duration of each step, in milliseconds; raised after each kill that came before the answer. */
  readonly usual: Map<string, number>;
  /** How often each step had each outcome. */
  readonly counts: Map<string, number>;
}

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const STORES = [
  ['LMDB', async () => null],
  ['PostgreSQL', () => migratedDatabase(cluster)],
] as const;

// Each start on PostgreSQL first waits for the lease of the server that was killed.
suite(`successions survive ${KILLS} kills`, { concurrency: true }, () => {
  for (const [store, address] of STORES) {
    test(`with the state in ${store}`, (t) => killRepeatedly(t, address));
  }
});

async function killRepeatedly(
  t: TestContext,
  address: () => Promise<string | null>,
): Promise<void> {
  const { folder, made } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const url = await address();
  // On a busy machine, a database takes longer to answer than a start with the usual lease waits for it.
  const database = { MESH_STORE: url ?? '', MESH_LEASE_MS: '3000' };
  const environment = { ...NO_LIMITS, ...(url !== null && database) };
  const ledger: Ledger = {
    possible: [{ current: made.na_public_key, previous: null, staged: null, isRolledBack: false }],
    nodes: [],
    revoked: new Set(),
    lists: new Map(),
    highest: 0,
    surprises: [],
    usual: new Map(),
    counts: new Map(),
  };
  for (let kill = 0; kill < KILLS; kill += 1) {
    await using server = await startChildServer(folder, { environment });
    const na = await asNow(server.na);
    const keys = await checkAll(na, ledger);
    while (ledger.nodes.length < 5) ledger.nodes.push(await certifiedNode(na));
    await killDuring(server, { na, ledger, attempt: await attemptOn(na, keys) });
    assert.deepEqual(ledger.surprises, [], `kill ${kill}`);
  }
  await using server = await startChildServer(folder, { environment });
  await checkAll(await asNow(server.na), ledger);
  assert.equal((await server.end('SIGTERM')).code, 0);
  await checkAudit(await auditLog(folder, url));
  t.diagnostic(JSON.stringify(Object.fromEntries([...ledger.counts].sort())));
}

async function auditLog(folder: string, url: string | null): Promise<AuditEntry[]> {
  if (url === null) return [...readAuditEntries(folder)];
  const entries: AuditEntry[] = [];
  for await (const entry of readAuditLog(parseStoreAddress(url, {}))) entries.push(entry);
  return entries;
}

async function certifiedNode(na: TestAuthority): Promise<TestNode> {
  const key = newKey();
  const invited = await operate(na, '/admin/invite');
  assert.equal(outcome(invited), '200');
  const joined = await nodeRequest(na, '/join', key, { invite_token: invited.body.token_id });
  assert.equal(outcome(joined), '200');
  return { key, certId: joined.body.cert_id };
}

/** The authority with its current key as the audience of requests. */
async function asNow(na: TestAuthority): Promise<TestAuthority> {
  const { body } = await get(na, '/genesis');
  return { ...na, audience: body.network_authority.public_key };
}

/** A random step that these keys allow. */
async function attemptOn(na: TestAuthority, keys: Keys): Promise<Attempt> {
  const { current, previous, staged } = keys;
  const attempt = (name: string, request: () => Promise<Received>, then: Keys) => ({
    ...{ name, request, then },
    outcomes: [keys, then],
  });
  if (staged !== null) {
    return attempt('cancel', () => step(na, 'cancel'), { ...keys, staged: null });
  }
  if (previous === null) return successionOn(na, keys);
  if (keys.isRolledBack || randomInt(2) === 0) {
    return attempt('finish', () => finish(na), { ...keys, previous: null, isRolledBack: false });
  }
  const returned = { current: previous, previous: current, staged: null, isRolledBack: true };
  return attempt('roll back', () => step(na, 'roll-back'), returned);
}

async function finish(na: TestAuthority): Promise<Received> {
  const refused = await step(na, 'finish');
  const count = refused.body.error?.details?.count;
  return count === undefined ? refused : step(na, 'finish', { despite: count });
}

/** Stages a succession and possibly activates it. The next start activates a staged succession that is due. */
async function successionOn(na: TestAuthority, keys: Keys): Promise<Attempt> {
  const kind = randomInt(3) === 0 ? 'compromise' : 'planned';
  const isDue = randomInt(4) > 0;
  const signed = await succession(na, { kind, activatesIn: isDue ? 0 : DAY });
  const { to_key: next } = signed.statement;
  const previous = kind === 'planned' ? keys.current : null;
  const then = isDue ? { ...keys, current: next, previous } : { ...keys, staged: next };
  const name = `stage ${kind}${isDue ? ', due' : ''}`;
  if (!isDue || randomInt(2) === 0) {
    return { name, request: () => stage(na, signed), outcomes: [keys, then], then };
  }
  assert.equal(outcome(await stage(na, signed)), '200');
  return { name: `activate ${kind}`, request: () => activate(na), outcomes: [then], then };
}

async function activate(na: TestAuthority): Promise<Received> {
  const answer = await step(na, 'activate');
  // The service may have done so on its own.
  const isDone = outcome(answer) === '409 succession_not_staged';
  return isDone ? { ...answer, status: 200, body: {} } : answer;
}

interface Round {
  readonly na: TestAuthority;
  readonly ledger: Ledger;
  readonly attempt: Attempt;
}

async function killDuring(server: ChildServer, { na, ledger, attempt }: Round): Promise<void> {
  const { name } = attempt;
  let isKilled = false;
  const untilKilled = async (act: typeof beat) => {
    while (!isKilled) {
      const isGone = await gone(() => act(na, ledger));
      if (isGone && !isKilled) ledger.surprises.push('a request was not answered');
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const lanes = [beat, beat, readList, revoke].map(untilKilled);
  const sent = performance.now();
  let isAcknowledged = false;
  const answered = gone(async () => {
    const answer = await attempt.request();
    isAcknowledged = outcome(answer) === '200';
    if (isAcknowledged) ledger.usual.set(name, performance.now() - sent);
    else ledger.surprises.push(`${name}: ${outcome(answer)}`);
  });
  const usual = ledger.usual.get(name) ?? FIRST_GUESS;
  await sleep(Math.random() * LATEST * usual);
  isKilled = true;
  await server.end('SIGKILL');
  await Promise.all([...lanes, answered]);
  if (!isAcknowledged) ledger.usual.set(name, usual * 1.5);
  ledger.possible = isAcknowledged ? [attempt.then] : attempt.outcomes;
  count(ledger, `${name}: ${isAcknowledged ? 'acknowledged' : 'not answered'}`);
}

function count({ counts }: Ledger, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}

async function beat(na: TestAuthority, { nodes, surprises }: Ledger): Promise<void> {
  const node = nodes[randomInt(nodes.length)];
  if (node === undefined) return;
  const answer = await heartbeat(na, node);
  if (outcome(answer) !== '200') surprises.push(`heartbeat: ${outcome(answer)}`);
}

/** A node joins and is revoked. */
async function revoke(na: TestAuthority, { revoked, surprises }: Ledger): Promise<void> {
  const { certId } = await certifiedNode(na);
  const answer = await operate(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' });
  if (outcome(answer) === '200') revoked.add(certId);
  else surprises.push(`revoke: ${outcome(answer)}`);
}

async function readList(na: TestAuthority, ledger: Ledger): Promise<void> {
  const before = ledger.highest;
  const { body, text } = await get(na, '/crl');
  const { sequence } = body;
  if (sequence < before) ledger.surprises.push(`sequence went back: ${before} to ${sequence}`);
  if ((ledger.lists.get(sequence) ?? text) !== text) {
    ledger.surprises.push(`sequence ${sequence} names two contents`);
  }
  ledger.lists.set(sequence, text);
  ledger.highest = Math.max(ledger.highest, sequence);
}

/** After a restart, everything that is served and all files agree on the keys. */
async function checkAll(na: TestAuthority, ledger: Ledger): Promise<Keys> {
  await readList(na, ledger);
  assert.deepEqual(ledger.surprises, []);
  const document = (await get(na, '/authority-keys')).body;
  const keys = keysIn(document);
  const index = ledger.possible.findIndex((possible) => isDeepStrictEqual(possible, keys));
  assert.ok(index >= 0, `${JSON.stringify(keys)} is none of ${JSON.stringify(ledger.possible)}`);
  if (ledger.possible.length > 1 && index > 0) count(ledger, 'happened without an answer');
  ledger.possible = [keys];

  const paths = ['/genesis', '/sovereign.json', '/crl', '/policy', '/sovereign-revocation-feed'];
  const [genesis, sovereign, crl, policy, feed] = await Promise.all(
    paths.map(async (path) => (await get(na, path)).body),
  );
  const { current, previous } = keys;
  assert.equal(genesis.network_authority.public_key, current);
  assert.equal(sovereign.network_authority.public_key, current);
  assert.deepEqual([crl.issuer, policy.issued_by, feed.issued_by], [current, current, current]);
  for (const record of [crl, policy, feed]) {
    assert.deepEqual(signersOf(record), previous === null ? [current] : [current, previous]);
  }
  const trusted = { rootKey: genesis.root_public_key };
  const pin = { networkName: genesis.network_name, trusted };
  const followed = followChain(pin, document, na.clock.now(), TOOLS);
  assert.equal(followed.refusal, null);

  const listed = new Set(idsOn(crl));
  for (const id of ledger.revoked) assert.ok(listed.has(id), `the revocation of ${id}`);
  for (const text of ledger.lists.values()) {
    for (const id of idsOn(JSON.parse(text))) assert.ok(listed.has(id));
  }
  for (const node of ledger.nodes) assert.equal(outcome(await heartbeat(na, node)), '200');
  checkFiles(na.dataDir, genesis, document.keys);
  return keys;
}

interface KeysDocument {
  readonly keys: readonly { readonly public_key: string; readonly state: string }[];
  readonly successions: readonly { readonly kind: string }[];
}

function keysIn({ keys, successions }: KeysDocument): Keys {
  const keyThatIs = (state: string) => keys.find((key) => key.state === state)?.public_key ?? null;
  const [current, previous, staged] = ['current', 'previous', 'next'].map(keyThatIs);
  assert.ok(typeof current === 'string' && previous !== undefined && staged !== undefined);
  const isRolledBack = previous !== null && successions.at(-1)?.kind === 'roll_back';
  return { current, previous, staged, isRolledBack };
}

/** The keys that signed a record according to its signatures, each of which is verified. */
function signersOf(record: SignedRecord & JsonObject): string[] {
  const text = signedText(record);
  return record.signatures.map(({ key_id, sig }) => {
    assert.ok(verifySignature(key_id, text, sig));
    return key_id;
  });
}

function idsOn(crl: { revoked_certificates: { certificate_id: string }[] }): string[] {
  return crl.revoked_certificates.map(({ certificate_id }) => certificate_id);
}

function checkFiles(folder: string, genesis: JsonObject, keys: KeysDocument['keys']): void {
  const signing = keys.filter(({ state }) => state === 'current' || state === 'previous');
  const former = keys.filter(({ state }) => state === 'retired' || state === 'distrusted');
  const [first, second] = ['na.key', 'na.next.key'].map((name) =>
    existsSync(join(folder, 'keys', name)) ? keyIn(folder, name).publicKey : null,
  );
  for (const { public_key } of signing) assert.ok([first, second].includes(public_key));
  for (const { public_key } of former) assert.ok(![first, second].includes(public_key));
  if (signing.length > 1) return;
  assert.equal(first, signing[0]?.public_key);
  const file = JSON.parse(readFileSync(join(folder, 'genesis.json'), 'utf8'));
  assert.deepEqual(file, genesis);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('genesis')),
    ['genesis.json'],
  );
}

/** Each step has one entry, and no statement takes effect twice. */
async function checkAudit(entries: readonly AuditEntry[]): Promise<void> {
  assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
  const changes = entries.filter(({ event_type }) =>
    ['authority_key_activated', 'authority_key_rolled_back'].includes(event_type),
  );
  assert.deepEqual(
    changes.map(({ details }) => details.sequence),
    changes.map((_, index) => index + 1),
  );
}
