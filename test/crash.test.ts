/**
 * Acknowledged means durable [service-states-and-transitions]: a server under load is killed repeatedly at random
 * moments on one data folder, and after each restart everything that it acknowledged must be there. No sequence of its
 * revocation list or feed may ever have two contents.
 */
import assert from 'node:assert/strict';
import { createHash, randomInt } from 'node:crypto';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { readRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import { isSignedByAny } from '../src/protocol/records/signed-record.ts';
import { readAuditEntries } from '../src/store/lmdb/source.ts';
import { type AuditEntry, GENESIS_HASH } from '../src/store/store.ts';
import type { TestAuthority, TestOperator } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { gone } from './support/exchange.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  get,
  heartbeat,
  newKey,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';

/** `npm run test:longer -- kills` runs more. */
const ROUNDS = Number(process.env.MESH_TEST_KILLS ?? 5);
/**
 * How many operations are acknowledged before a server is killed while others are in flight. They are counted rather
 * than timed, so a slow machine does the same work, only more slowly. Every other round is short.
 */
const SHORT_LOAD = { least: 1, most: 20, ofFeed: 0 };
const LONG_LOAD = { least: 20, most: 60, ofFeed: 4 };
/** The minimum for all rounds together. */
const ENOUGH = Math.floor(ROUNDS / 2) * (SHORT_LOAD.least + LONG_LOAD.least);
/** Rounds in which the server is killed during startup. */
const KILLED_AT_START = new Set([3, 7]);
const REASONS = ['key_compromise', 'cessation_of_operation', 'superseded', 'unspecified'];

type CertificateState = 'valid' | 'being revoked' | 'revoked';

interface KnownCertificate extends TestNode {
  state: CertificateState;
}

interface SeenList {
  readonly path: '/crl' | '/sovereign-revocation-feed';
  /** Everything that was read, as bytes by sequence. */
  readonly texts: Map<number, string>;
  /** The highest sequence read or acknowledged. */
  highest: number;
}

/** What the test knows for certain: only what was acknowledged or could be read. */
interface Ledger {
  readonly usable: string[];
  /** Tokens whose join was acknowledged. */
  readonly spent: Set<string>;
  /** Tokens whose join was not answered: they may be spent, but never twice. */
  readonly unsure: Set<string>;
  readonly certificates: Map<string, KnownCertificate>;
  /** Acknowledged revocations: the CRL sequence for each certificate. */
  readonly revocations: Map<string, number>;
  /** Keys whose compromise was reported in this round: their certificates end at some point during it. */
  readonly compromised: Set<string>;
  /** Attestations that nobody has asked to revoke. */
  readonly attested: string[];
  /** Attestations whose revocation was acknowledged. */
  readonly unattested: Set<string>;
  readonly crl: SeenList;
  readonly feed: SeenList;
  readonly revokedKeys: Set<string>;
  /** Acknowledged requests, which must never be accepted again. */
  readonly sent: SignedRequest[];
  readonly sentBeats: SignedRequest[];
  readonly surprises: string[];
  acknowledged: number;
  checked: number;
}

test(`everything acknowledged survives ${ROUNDS} kills under load`, async (t) => {
  const { folder, made } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const spareKeys = Array.from({ length: ROUNDS }, (_, i) => ({
    keyId: `spare-${i}`,
    key: newKey(),
  }));
  const environment = {
    ...NO_LIMITS,
    RENEWAL_GRACE_SECONDS: 'off',
    ...operatorVariables(spareKeys),
  };
  const ledger: Ledger = {
    usable: [],
    spent: new Set(),
    unsure: new Set(),
    certificates: new Map(),
    revocations: new Map(),
    compromised: new Set(),
    attested: [],
    unattested: new Set(),
    crl: { path: '/crl', texts: new Map(), highest: 0 },
    feed: { path: '/sovereign-revocation-feed', texts: new Map(), highest: 0 },
    revokedKeys: new Set(),
    sent: [],
    sentBeats: [],
    surprises: [],
    acknowledged: 0,
    checked: 0,
  };

  for (const [round, spareKey] of spareKeys.entries()) {
    if (KILLED_AT_START.has(round)) await killWhileStarting(folder, environment);
    await using server = await startChildServer(folder, { environment });
    await checkLists(server.na, ledger, made.na_public_key);
    await checkRound(server.na, ledger, spareKeys);
    await loadUntilKilled(server, ledger, spareKey, round % 2 === 0 ? SHORT_LOAD : LONG_LOAD);
    assert.deepEqual(ledger.surprises, [], `round ${round}`);
  }

  await using server = await startChildServer(folder, { environment });
  await checkLists(server.na, ledger, made.na_public_key);
  await checkRound(server.na, ledger, spareKeys);
  await checkEverything(server.na, ledger);
  await stopCleanly(server);

  const entries = [...readAuditEntries(folder)];
  assert.equal((await verifyAuditChain(entries, GENESIS_HASH)).valid, true);
  checkAudit(entries, ledger);
  const { acknowledged, checked, crl, feed, spent, certificates, revocations } = ledger;
  t.diagnostic(
    `${acknowledged} operations acknowledged in ${ROUNDS} rounds: ${spent.size} joins, ` +
      `${certificates.size - spent.size} renewals, ${revocations.size} revocations, ` +
      `${ledger.revokedKeys.size} operator keys, ${ledger.unattested.size} attestations; ` +
      `${crl.texts.size} lists and ${feed.texts.size} feeds read; ${checked} checks`,
  );
  assert.ok(acknowledged >= ENOUGH, 'the rounds did enough to mean something');
  assert.ok(
    ledger.unattested.size >= Math.floor(ROUNDS / 2) * LONG_LOAD.ofFeed,
    'also of the feed',
  );
});

/** Runs clients of every kind in parallel; kills the server when enough of their requests are acknowledged. */
async function loadUntilKilled(
  server: ChildServer,
  ledger: Ledger,
  spare: TestOperator,
  { least, most, ofFeed }: typeof LONG_LOAD,
): Promise<void> {
  const { na } = server;
  const goal = ledger.acknowledged + randomInt(least, most + 1);
  const goalOfFeed = ledger.unattested.size + ofFeed;
  const isEnough = () => ledger.acknowledged >= goal && ledger.unattested.size >= goalOfFeed;
  let killed: Promise<unknown> | null = null;
  const untilKilled = async (act: () => Promise<void>) => {
    while (killed === null) {
      const isGone = await gone(act);
      if (isGone && killed === null) ledger.surprises.push('a request was not answered');
      if (isGone || isEnough()) killed ??= server.end('SIGKILL');
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const lanes = [
    makeInvites,
    ...[join, join, join, join],
    ...[renew, renew, renew],
    ...[revoke, revoke, revoke],
    ...[beat, beat],
    ...[readCrl, readCrl],
    attest,
    ...[unattest, unattest],
    readFeed,
  ].map((act) => untilKilled(() => act(na, ledger)));
  const revokeSpare = gone(() => revokeOperatorKey(na, ledger, spare.keyId));
  await Promise.all([...lanes, revokeSpare]);
  await killed;
}

async function makeInvites(na: TestAuthority, ledger: Ledger): Promise<void> {
  if (ledger.usable.length > 100) return;
  const request = operatorRequest(na, '/admin/invite', { count: 10 }, { operator: na.standard });
  const answer = await sendSigned(na, request);
  expect(ledger, 'invite', answer, ['200']);
  for (const { token_id } of answer.body.tokens) ledger.usable.push(token_id);
  acknowledge(ledger, request);
}

/** Two nodes race for one token: exactly one of them gets the certificate. */
async function join(na: TestAuthority, ledger: Ledger): Promise<void> {
  const token = ledger.usable.shift();
  if (token === undefined) return;
  ledger.unsure.add(token);
  const rivals = [newKey(), newKey()].map((key) => ({
    key,
    request: signedByNode(na, '/join', key, { invite_token: token }),
  }));
  let won = 0;
  const outcomes = await Promise.allSettled(
    rivals.map(async ({ key, request }) => {
      const answer = await sendSigned(na, request);
      expect(ledger, 'join', answer, ['200', '403 invalid_invite_token']);
      if (answer.status !== 200) return;
      won += 1;
      ledger.unsure.delete(token);
      if (ledger.spent.has(token)) ledger.surprises.push('an invite was spent twice');
      ledger.spent.add(token);
      addCertificate(ledger, { key, certId: answer.body.cert_id });
      acknowledge(ledger, request);
    }),
  );
  const lost = outcomes.find((result) => result.status === 'rejected');
  if (lost !== undefined) throw lost.reason;
  if (won !== 1) ledger.surprises.push(`${won} of two rivals won`);
}

async function renew(na: TestAuthority, ledger: Ledger): Promise<void> {
  const certificate = anyValid(ledger);
  if (certificate === undefined) return;
  const { key, certId } = certificate;
  const request = signedByNode(na, '/renew', key, { cert_id: certId });
  const answer = await sendSigned(na, request);
  const full = '409 too_many_live_certificates';
  expect(ledger, 'renew', answer, ['200', full, ...refusalsOf(ledger, certificate)]);
  if (answer.status !== 200) return;
  addCertificate(ledger, { key, certId: answer.body.cert_id });
  acknowledge(ledger, request);
}

async function revoke(na: TestAuthority, ledger: Ledger): Promise<void> {
  const certificate = anyValid(ledger);
  if (certificate === undefined || ledger.certificates.size < 10) return;
  const reason = REASONS[randomInt(REASONS.length)] ?? 'unspecified';
  for (const ending of reason === 'key_compromise' ? ofSameKey(ledger, certificate) : []) {
    if (ending.state === 'valid') ending.state = 'being revoked';
    ledger.compromised.add(ending.key.publicKey);
  }
  certificate.state = 'being revoked';
  const request = operatorRequest(na, '/admin/revoke', { cert_id: certificate.certId, reason });
  const answer = await sendSigned(na, request);
  expect(ledger, 'revoke', answer, ['200']);
  certificate.state = 'revoked';
  const { crl_sequence: sequence, revoked_cert_ids: ended = [certificate.certId] } = answer.body;
  if (ended.length > 0 && !mayShare(ledger, certificate, sequence)) {
    ledger.surprises.push(`sequence ${sequence} was acknowledged twice`);
  }
  for (const certId of ended) {
    ledger.revocations.set(certId, sequence);
    const known = ledger.certificates.get(certId);
    if (known !== undefined) known.state = 'revoked';
  }
  ledger.crl.highest = Math.max(ledger.crl.highest, sequence);
  acknowledge(ledger, request);
}

/**
 * Whether the answer to a revocation may name this sequence again. If the key's compromise was decided just before, the
 * certificate may have ended already, and both answers name the same sequence.
 */
function mayShare(
  { revocations, certificates, compromised }: Ledger,
  { key }: TestNode,
  of: number,
) {
  const sharing = [...revocations].filter(([, sequence]) => sequence === of);
  if (sharing.length === 0) return true;
  // The answer to a renewal may still be in flight.
  const isOfKey = ([id]: [string, number]) =>
    (certificates.get(id)?.key.publicKey ?? key.publicKey) === key.publicKey;
  return compromised.has(key.publicKey) && sharing.every(isOfKey);
}

async function revokeOperatorKey(na: TestAuthority, ledger: Ledger, keyId: string): Promise<void> {
  const path = `/admin/operator-keys/${keyId}/revoke`;
  const answer = await operate(na, path, { reason: 'key_compromise' });
  expect(ledger, 'operator key', answer, ['200']);
  ledger.revokedKeys.add(keyId);
  ledger.acknowledged += 1;
}

async function beat(na: TestAuthority, ledger: Ledger): Promise<void> {
  const certificate = anyValid(ledger);
  if (certificate === undefined) return;
  const { key, certId } = certificate;
  const request = signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
  const answer = await sendSigned(na, request);
  expect(ledger, 'heartbeat', answer, ['200', ...refusalsOf(ledger, certificate)]);
  if (answer.status === 200) ledger.sentBeats.push(request);
}

async function attest(na: TestAuthority, ledger: Ledger): Promise<void> {
  if (ledger.attested.length > 50) return;
  const body = { subject_id: 'agent', roles: ['role:client'] };
  const answer = await operate(na, '/admin/attestations', body);
  expect(ledger, 'attestation', answer, ['200']);
  ledger.attested.push(answer.body.attestation_id);
}

async function unattest(na: TestAuthority, ledger: Ledger): Promise<void> {
  const id = ledger.attested.shift();
  if (id === undefined) return;
  const path = `/admin/attestations/${id}/revoke`;
  const request = operatorRequest(na, path, { reason: 'left' });
  expect(ledger, 'end of an attestation', await sendSigned(na, request), ['200']);
  ledger.unattested.add(id);
  acknowledge(ledger, request);
}

function readCrl(na: TestAuthority, ledger: Ledger): Promise<void> {
  return readList(na, ledger, ledger.crl);
}

function readFeed(na: TestAuthority, ledger: Ledger): Promise<void> {
  return readList(na, ledger, ledger.feed);
}

async function readList(na: TestAuthority, ledger: Ledger, list: SeenList): Promise<void> {
  const { path, texts, highest: before } = list;
  const answer = await get(na, path);
  expect(ledger, path, answer, ['200']);
  const sequence = Number(answer.body.sequence);
  const changed = (what: string) => ledger.surprises.push(`${path}, sequence ${sequence}: ${what}`);
  if (sequence < before) changed(`went back from ${before}`);
  if ((texts.get(sequence) ?? answer.text) !== answer.text) changed('names two contents');
  texts.set(sequence, answer.text);
  list.highest = Math.max(list.highest, sequence);
}

/**
 * After a restart, the list contains all that any earlier list contained, in the same order, and resolves what was in
 * doubt; the feed contains everything that was acknowledged or ever read.
 */
async function checkLists(na: TestAuthority, ledger: Ledger, publicKey: string): Promise<void> {
  const { crl, feed } = ledger;
  for (const list of [crl, feed]) await readList(na, ledger, list);
  assert.deepEqual(ledger.surprises, []);
  const now = entriesOn(crl.texts.get(crl.highest));
  for (const [sequence, text] of crl.texts) {
    const then = entriesOn(text);
    assert.deepEqual(then, now.slice(0, then.length), `list ${sequence} is a part of the last one`);
    ledger.checked += 1;
  }
  for (const certId of ledger.revocations.keys()) {
    assert.ok(now.includes(certId), `the revocation of ${certId} was acknowledged`);
    ledger.checked += 1;
  }
  for (const certificate of ledger.certificates.values()) {
    if (certificate.state !== 'being revoked') continue;
    certificate.state = now.includes(certificate.certId) ? 'revoked' : 'valid';
  }
  ledger.compromised.clear();

  const record = readRevocationFeed(JSON.parse(feed.texts.get(feed.highest) ?? '{}'));
  assert.ok(record !== null && isSignedByAny(record, [publicKey], verifySignature));
  const listed = new Set(record.revoked_attestation_ids);
  assert.equal(listed.size, Number(record.sequence), 'one sequence for each revocation');
  for (const id of ledger.unattested) assert.ok(listed.has(id), `the revocation of ${id}`);
  for (const text of feed.texts.values()) {
    for (const id of JSON.parse(text).revoked_attestation_ids) assert.ok(listed.has(id));
  }
}

/** Checks made after each restart: replays, operator keys, the newest effects of each kind. */
async function checkRound(
  na: TestAuthority,
  ledger: Ledger,
  spareKeys: readonly TestOperator[],
): Promise<void> {
  const replays = [ledger.sent, ledger.sentBeats].flatMap((sent) => sent.splice(0).slice(-15));
  await inParallel(ledger, replays, async (request) => {
    assert.match(outcome(await sendSigned(na, request)), /^40[13] /, `replay on ${request.path}`);
  });
  const revoked = spareKeys.filter(({ keyId }) => ledger.revokedKeys.has(keyId));
  await inParallel(ledger, revoked.slice(-3), async (operator) => {
    const answer = await operate(na, '/admin/invite', {}, { operator });
    assert.equal(answer.body.error?.message, 'Unknown admin key');
  });
  const unsure = [...ledger.unsure];
  ledger.unsure.clear();
  await inParallel(ledger, unsure, async (token) => {
    const key = newKey();
    const answer = await nodeRequest(na, '/join', key, { invite_token: token });
    assert.match(outcome(answer), /^200$|^403 invalid_invite_token$/);
    if (answer.status === 200) addCertificate(ledger, { key, certId: answer.body.cert_id });
    ledger.spent.add(token);
  });
  await inParallel(ledger, [...ledger.spent].slice(-25), (token) => assertSpent(na, token));
  const newest = [...ledger.certificates.values()].slice(-40);
  await inParallel(ledger, newest, (certificate) => assertStanding(na, certificate));
}

async function checkEverything(na: TestAuthority, ledger: Ledger): Promise<void> {
  await inParallel(ledger, [...ledger.spent], (token) => assertSpent(na, token));
  const certificates = [...ledger.certificates.values()];
  await inParallel(ledger, certificates, (certificate) => assertStanding(na, certificate));
  await inParallel(ledger, ledger.usable.slice(0, 50), async (token) => {
    const answer = await nodeRequest(na, '/join', newKey(), { invite_token: token });
    assert.equal(outcome(answer), '200', 'an acknowledged invite can be used');
  });
}

async function assertSpent(na: TestAuthority, token: string): Promise<void> {
  const answer = await nodeRequest(na, '/join', newKey(), { invite_token: token });
  assert.equal(outcome(answer), '403 invalid_invite_token', 'an invite that is spent');
}

async function assertStanding(na: TestAuthority, certificate: KnownCertificate): Promise<void> {
  const expected = certificate.state === 'revoked' ? '403 certificate_revoked' : '200';
  assert.equal(outcome(await heartbeat(na, certificate)), expected, certificate.certId);
}

/** Every effect has its entry; no invite has two certificates and, compromises aside, no sequence two revocations. */
function checkAudit(entries: readonly AuditEntry[], ledger: Ledger): void {
  const of = (type: string) => entries.filter(({ event_type }) => event_type === type);
  const issued = of('certificate_issued');
  const fingerprints = issued.map(({ details }) => details.invite_token_fingerprint);
  assert.equal(new Set(fingerprints).size, fingerprints.length, 'one certificate for each invite');
  for (const token of ledger.spent) {
    const fingerprint = createHash('sha256').update(token).digest('hex').slice(0, 16);
    assert.ok(fingerprints.includes(fingerprint));
  }
  const certIds = new Set([
    ...issued.map(({ details }) => details.cert_id),
    ...of('certificate_renewed').map(({ details }) => details.new_cert_id),
  ]);
  for (const certId of ledger.certificates.keys()) assert.ok(certIds.has(certId));
  const sequences = new Map(
    of('certificate_revoked').map(({ details }) => [details.cert_id, details.crl_sequence]),
  );
  const others = of('certificate_revoked').filter(
    ({ details }) => details.reason !== 'key_compromise',
  );
  const numbers = others.map(({ details }) => details.crl_sequence);
  assert.equal(new Set(numbers).size, numbers.length, 'one revocation for each sequence');
  for (const [certId, sequence] of ledger.revocations) {
    assert.equal(sequences.get(certId), sequence);
  }
  const keys = new Set(of('operator_key_revoked').map(({ details }) => details.key_id));
  for (const keyId of ledger.revokedKeys) assert.ok(keys.has(keyId));
}

async function killWhileStarting(
  folder: string,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const started = startChildServer(folder, {
    environment,
    onSpawn: (child) => setTimeout(() => child.kill('SIGKILL'), randomInt(300, 1000)),
  });
  await using _server = await started.catch(() => null);
}

async function stopCleanly(server: ChildServer): Promise<void> {
  const { code, stderr } = await server.end('SIGTERM');
  assert.equal(code, 0, stderr);
}

function operatorVariables(spareKeys: readonly TestOperator[]) {
  const keys = spareKeys.map(({ keyId, key }) => [keyId, key.publicKey]);
  const tiers = spareKeys.map(({ keyId }) => [keyId, 'standard']);
  return {
    OPERATOR_PUBLIC_KEYS_JSON: JSON.stringify(Object.fromEntries(keys)),
    OPERATOR_KEY_TIERS_JSON: JSON.stringify(Object.fromEntries(tiers)),
  };
}

async function inParallel<T>(
  ledger: Ledger,
  items: readonly T[],
  check: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const worker = async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
      await check(item);
      ledger.checked += 1;
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

function expect(ledger: Ledger, what: string, answer: Received, outcomes: readonly string[]): void {
  const found = outcome(answer);
  if (!outcomes.includes(found)) ledger.surprises.push(`${what}: ${found}`);
}

function acknowledge(ledger: Ledger, request: SignedRequest): void {
  ledger.acknowledged += 1;
  ledger.sent.push(request);
}

function addCertificate(ledger: Ledger, node: TestNode): void {
  const inDoubt = ledger.compromised.has(node.key.publicKey);
  const state = ledger.revocations.has(node.certId)
    ? 'revoked'
    : inDoubt
      ? 'being revoked'
      : 'valid';
  ledger.certificates.set(node.certId, { ...node, state });
}

function ofSameKey(ledger: Ledger, { key }: TestNode): KnownCertificate[] {
  return [...ledger.certificates.values()].filter(
    (certificate) => certificate.key.publicKey === key.publicKey,
  );
}

function anyValid(ledger: Ledger): KnownCertificate | undefined {
  const recent = [...ledger.certificates.values()].slice(-200);
  const valid = recent.filter(({ state }) => state === 'valid');
  return valid.length === 0 ? undefined : valid[randomInt(valid.length)];
}

/** A certificate may be refused if it is being revoked while its node's request is in flight. */
function refusalsOf(ledger: Ledger, { key, state }: KnownCertificate): string[] {
  const stands = state === 'valid' && !ledger.compromised.has(key.publicKey);
  return stands ? [] : ['403 certificate_revoked'];
}

function entriesOn(text = '{}'): string[] {
  const { revoked_certificates: entries = [] } = JSON.parse(text) as {
    revoked_certificates?: { certificate_id: string }[];
  };
  return entries.map(({ certificate_id }) => certificate_id);
}
