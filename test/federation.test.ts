/** The authorities of other sovereigns are fetched, and give news to this one, or nothing at all [core-4-13-3]. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, suite, test } from 'node:test';
import { setImmediate as nextTurn, setInterval } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Treaty } from '../machines/recognition-treaty.ts';
import type { Authority } from '../src/authority/authority.ts';
import { AsyncResult } from '../src/authority/engine/execute.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import { readPartners } from '../src/authority/recognition/treaties.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import type { Logger } from '../src/base/log/logger.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { createFederation } from '../src/server/federation/federation.ts';
import { createVisitor, NOTHING_SERVED } from '../src/server/federation/visit.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { chainAt, countedKey, FIRST, ROOT, type Step } from './support/authority-chain.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { HOUR, MINUTE, REAL_TIME, SECOND, setClock, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';
import { get, operate, outcome } from './support/requests.ts';
import { activated, DAY, stage, succession } from './support/successions.ts';
import { issueTlsPair, makeIssuer } from './support/tls-files.ts';
import {
  attest,
  audited,
  freshId,
  importFeed,
  issued,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  signedBy,
  sovereign,
} from './support/trust.ts';
import { until } from './support/until.ts';

const PRIVATE = { MESH_FEDERATION_PRIVATE: '1' };
const INTERVAL = 5 * MINUTE;

/** Every partner is visited within an interval and what a visit takes. */
async function visit(na: TestAuthority): Promise<void> {
  na.clock.advance(INTERVAL + 10 * SECOND);
  await na.federate();
}

async function rootOf(na: TestAuthority): Promise<string> {
  return (await get(na, '/sovereign.json')).body.root_public_key;
}

async function fetchOf(na: TestAuthority, { treaty_id }: JsonObject) {
  return (await get(na, `/recognition-treaties/${treaty_id}`)).body.fetch;
}

async function verdict(na: TestAuthority, attestation: JsonObject, treaty: JsonObject) {
  return (await post(na, '/attestations/verify-with-treaty', { attestation, treaty })).body.reason;
}

suite('between real authorities', () => {
  const clock = testClock();
  const [alphaFolder, betaFolder] = [networkFolder('alpha'), networkFolder('beta')];
  const revoked: unknown[] = [];
  let alpha: TestAuthority;
  let beta: TestAuthority;
  let treatyId: string;
  before(async () => {
    alpha = await startTestAuthority({
      clock,
      dataDir: alphaFolder.path,
      environment: PRIVATE,
    });
    beta = await startTestAuthority({ clock, dataDir: betaFolder.path });
    const terms = { endpoint: `${beta.url}/`, metadata: { root_public_key: await rootOf(beta) } };
    treatyId = await recognized(beta, 'beta', terms);
  });
  after(async () => {
    for (const end of [alpha, beta, alphaFolder, betaFolder]) await end[Symbol.asyncDispose]();
  });

  async function recognized(na: TestAuthority, subject_sovereign_id: string, terms: JsonObject) {
    const about = { subject_sovereign_id, subject_public_keys: [na.audience] };
    const { treaty_id } = await issued(
      recognize(alpha, { ...about, validity_hours: 2000, ...terms }),
    );
    return String(treaty_id);
  }

  const stateOf = async (id: string) => (await get(alpha, `/recognition-treaties/${id}`)).body;

  test('a revocation of one is refused by the other within the interval, and nothing is imported twice', async () => {
    const { treaty } = await stateOf(treatyId);
    const attestation = await issued(attest(beta));
    await visit(alpha);
    assert.equal(await verdict(alpha, attestation, treaty), 'accepted');
    assert.equal(audited(alpha, 'sovereign_revocation_feed_imported').length, 1);

    revoked.push(attestation.attestation_id);
    await revokeAttestation(beta, attestation.attestation_id);
    await visit(alpha);
    assert.equal(await verdict(alpha, attestation, treaty), 'attestation_locally_revoked');
    const imported = audited(alpha, 'sovereign_revocation_feed_imported');
    assert.equal(imported[1]?.fetched_from, `${beta.url}/`);
    const now = clock.now();
    for (let more = 0; more < 3; more += 1) await visit(alpha);
    assert.equal(audited(alpha, 'sovereign_revocation_feed_imported').length, 2);
    const state = (await stateOf(treatyId)).fetch;
    assert.equal(Date.parse(state.imported_at), now);
    assert.equal(Date.parse(state.fetched_at), clock.now());
    assert.deepEqual([state.failing_since, state.problem], [null, null]);

    // A restart keeps the endpoint, and spreads the first visits.
    alpha = await alpha.restart();
    await visit(alpha);
    assert.equal((await stateOf(treatyId)).fetch.problem, null);
    assert.equal(audited(alpha, 'sovereign_revocation_feed_imported').length, 0);
  });

  test('a planned change of the key is followed, and feeds of the new key are imported', async () => {
    assert.equal((await stateOf(treatyId)).status, 'active');
    const signed = await succession(beta, { activatesIn: HOUR, overlap: DAY });
    assert.equal(outcome(await stage(beta, signed)), '200');
    clock.advance(HOUR);
    await activated(beta);
    await visit(alpha);
    treatyId = (await stateOf(treatyId)).lifecycle.replacement_treaty_id;
    const successor = await stateOf(treatyId);
    assert.equal(successor.treaty.subject_public_keys.length, 2);
    assert.equal(successor.endpoint, `${beta.url}/`);
    assert.deepEqual([successor.fetch.problem, successor.followed.sequence], [null, 1]);
    assert.equal(audited(alpha, 'recognition_treaty_followed')[0]?.fetched_from, `${beta.url}/`);
    // A clock that is set back changes nothing: visits go by the time that passes.
    const changed = { ...beta, audience: signed.statement.to_key };
    const { attestation_id } = await issued(attest(changed));
    await setClock(alpha, -HOUR);
    await setClock(beta, 0);
    revoked.push(attestation_id);
    await revokeAttestation(changed, attestation_id);
    await visit(alpha);
    assert.equal((await stateOf(treatyId)).fetch.problem, null);
    assert.deepEqual(await importedOf(alpha, 'beta'), revoked.sort());
  });

  test('one that is away delays no other, is reported since when, and is imported when it is back', async () => {
    await using gammaFolder = networkFolder('gamma');
    const gamma = await startTestAuthority({ clock, dataDir: gammaFolder.path });
    const ofGamma = await recognized(gamma, 'gamma', { endpoint: gamma.url });
    await gamma.stop();
    await visit(alpha);
    const since = clock.now();
    await visit(alpha);
    assert.equal((await stateOf(treatyId)).fetch.problem, null);
    const failing = (await stateOf(ofGamma)).fetch;
    assert.equal(failing.problem, 'the connection failed (ECONNREFUSED)');
    assert.equal(Date.parse(failing.failing_since), since);
    assert.equal(failing.fetched_at, null);
    await visit(alpha);
    await visit(alpha);
    await assertShown(ofGamma, gamma, failing);

    await using back = await startTestAuthority({ clock, dataDir: gammaFolder.path });
    const endpoint = `/admin/recognition-treaties/${ofGamma}/endpoint`;
    assert.equal(outcome(await operate(alpha, endpoint, { endpoint: back.url })), '200');
    await alpha.federate();
    const state = (await stateOf(ofGamma)).fetch;
    assert.deepEqual([state.problem, state.failing_since], [null, null]);
    assert.equal(Date.parse(state.imported_at), clock.now());

    // Of neither anything is fetched when its treaty has ended, or has no endpoint.
    await operate(alpha, endpoint, {});
    await revokeTreaty(alpha, treatyId);
    await visit(alpha);
    assert.equal((await stateOf(ofGamma)).fetch, undefined);
    assert.equal((await stateOf(treatyId)).fetch.fetched_at, null);
  });

  /** Wherever an operator may look. */
  async function assertShown(
    treatyId: string,
    { url }: TestAuthority,
    failing: JsonObject,
  ): Promise<void> {
    const { partners, posture } = (await get(alpha, '/dashboard.json')).body;
    assert.deepEqual(partners[0], { subject_sovereign_id: 'gamma', endpoint: url, ...failing });
    assert.deepEqual(
      posture.findings.filter(({ rule }: JsonObject) => rule === 'partners'),
      [
        {
          rule: 'partners',
          severity: 'attention',
          sentence: 'The feed or keys of 1 of 2 sovereigns cannot be fetched.',
          since: failing.failing_since,
        },
      ],
    );
    const call = { method: 'GET', operator: alpha.standard };
    const { lapsing } = (await operate(alpha, '/admin/horizon', {}, call)).body;
    const found = lapsing.find(({ kind }: JsonObject) => kind === 'partner');
    assert.deepEqual([found.count, found.soonest], [1, failing.failing_since]);
    const metrics = (await get(alpha, '/metrics')).text;
    const failingFrom = Date.parse(String(failing.failing_since)) / 1000;
    assert.ok(metrics.includes(`mesh_na_expiry_timestamp_seconds{kind="partner"} ${failingFrom}`));
    const lag = Math.round((clock.now() - Date.parse(String(failing.failing_since))) / 1000);
    assert.ok(metrics.includes(`mesh_na_partner_lag_seconds{host="${new URL(url).host}"} ${lag}`));
    const page = (await get(alpha, `/treaty?id=${treatyId}`)).text;
    assert.match(page, /the connection failed \(ECONNREFUSED\), since/);
    const environment = { MESH_URL: alpha.url, MESH_DATA_DIR: alpha.dataDir };
    const listed = await runCommand(['treaty', 'list', '--wide'], environment);
    assert.match(listed.stdout, /the connection failed \(ECONNREFUSED\)/);
    const doctor = await runCommand(['doctor', '--json'], environment);
    assert.match(doctor.stdout, /\\"gamma\\" at http:[^"]* the connection failed \(ECONNREFUSED\)/);
  }
});

test('a treaty is proposed with what an authority publishes, and renewed with what it publishes later', async () => {
  await using betaFolder = networkFolder('beta');
  await using alpha = await startTestAuthority({ clock: REAL_TIME, environment: PRIVATE });
  await using beta = await startTestAuthority({ clock: REAL_TIME, dataDir: betaFolder.path });
  const environment = { MESH_URL: alpha.url, MESH_DATA_DIR: alpha.dataDir };
  const run = (...words: string[]) => runCommand(['treaty', ...words], environment);
  const unasked = await run('propose', beta.url, '--any-role');
  assert.match(unasked.stderr, /needs confirmation: add --yes, or run this on a terminal/);
  const proposed = await run('propose', beta.url, '--role', 'role:client', '--yes', '--json');
  const treaty = JSON.parse(proposed.stdout);
  assert.deepEqual(
    [treaty.subject_sovereign_id, treaty.subject_public_keys, treaty.scope.allowed_roles],
    ['beta', [beta.audience], ['role:client']],
  );
  assert.deepEqual(treaty.metadata, { root_public_key: await rootOf(beta) });
  await alpha.federate();
  const { endpoint, fetch } = (await get(alpha, `/recognition-treaties/${treaty.treaty_id}`)).body;
  assert.deepEqual([endpoint, fetch.problem], [beta.url, null]);
  assert.notEqual(fetch.imported_at, null, 'at once');

  const renewed = await run('renew', treaty.treaty_id, '--published', '--yes', '--json');
  const { treaty_id: id, ...successor } = JSON.parse(renewed.stdout);
  assert.deepEqual(successor.subject_public_keys, [beta.audience]);
  await operate(alpha, `/admin/recognition-treaties/${id}/endpoint`, { endpoint: alpha.url });
  const other = await run('renew', id, '--published', '--yes');
  assert.match(other.stderr, /is "alpha"\. Nothing was changed/);
  const plain = await run('renew', id.slice(0, 13));
  assert.match(plain.stdout, /^Treaty \S+ is issued\.\nIt takes the place/);
});

const shared = sharedAuthority({ environment: { ...PRIVATE, MESH_MAX_FEED_ENTRIES: '50' } });

const FEED = 'GET /sovereign-revocation-feed';
const KEYS = 'GET /authority-keys';

interface Partner extends AsyncDisposable {
  readonly na: TestAuthority;
  readonly beta: Sovereign;
  readonly host: HostileAuthority;
  readonly treaty: JsonObject;
  feed(sequence: number, changes?: JsonObject): JsonObject;
}

/** A partner whose authority answers whatever a test wants it to. */
async function partner(terms: JsonObject = {}): Promise<Partner> {
  const na = await shared();
  const beta = sovereign(freshId('beta'), FIRST);
  const host = await startHostileAuthority({ [KEYS]: { successions: [] } });
  const treaty = await issued(
    recognize(na, {
      subject_sovereign_id: beta.name,
      subject_public_keys: [beta.key.publicKey],
      endpoint: host.url,
      validity_hours: 87_600,
      ...terms,
    }),
  );
  return {
    na,
    beta,
    host,
    treaty,
    feed: (sequence, changes) => beta.feed(na.clock.now(), sequence, changes),
    async [Symbol.asyncDispose]() {
      await revokeTreaty(na, treaty.treaty_id);
      await host[Symbol.asyncDispose]();
    },
  };
}

async function importedOf(na: TestAuthority, name: string): Promise<string[]> {
  const { revocation_blast_radius: rows } = (await get(na, '/connectome.json')).body;
  return rows
    .filter((row: JsonObject) => row.issuer_sovereign_id === name)
    .map(({ id }: JsonObject) => id);
}

const never = new Promise<string>(() => undefined);
const answered = (text: string | Buffer, headers: Record<string, string>, status = 200) =>
  new Response(text, { status, headers });

function slowly(): Readable {
  return Readable.from(setInterval(100, ' '));
}

type Wrong = (given: Partner) => object | string | null | Promise<string>;

const WRONG: readonly (readonly [string, Wrong, RegExp])[] = [
  ['answers nothing', () => never, /^it took longer than 5 s$/],
  ['answers slowly, a space at a time', () => [slowly(), slowly()], /^it took longer than 5 s$/],
  ['ends the connection', () => null, /^the connection failed \(ECONNRESET\)$/],
  ['answers 500', () => answered('{}', {}, 500), /^it answered 500$/],
  [
    'redirects to what would be accepted',
    ({ host }) => answered('', { location: `${host.url}/feed` }, 302),
    /^it redirects \(302\), and redirects are not followed$/,
  ],
  [
    'answers endlessly',
    () => `"${'x'.repeat(3 * 1024 * 1024)}"`,
    /^its answer has more than 2 Mi?B$/,
  ],
  [
    'compresses',
    ({ feed }) =>
      answered(gzipSync(JSON.stringify(feed(5))).toString('latin1'), {
        'content-encoding': 'gzip',
      }),
    /^it compresses its answer, which was not asked for$/,
  ],
  ['answers a page', () => '<html>', /^its \/sovereign-revocation-feed is no JSON object$/],
  [
    'answers another document',
    () => ({}),
    /^its feed is refused: invalid_sovereign_revocation_feed$/,
  ],
  [
    'answers more ids than are taken',
    ({ feed }) =>
      feed(5, { revoked_attestation_ids: Array.from({ length: 51 }, (_, n) => `id-${n}`) }),
    /^its feed is refused: invalid_sovereign_revocation_feed$/,
  ],
  [
    'answers a feed with a long id, which each of its rows would repeat',
    ({ feed }) => feed(5, { feed_id: 'f'.repeat(257) }),
    /^its feed is refused: invalid_sovereign_revocation_feed$/,
  ],
  ['answers an older feed', ({ feed }) => feed(1), /^its feed is refused: stale_sequence$/],
  [
    'answers another feed with the same sequence',
    ({ feed }) => feed(2),
    /^its feed is refused: stale_sequence$/,
  ],
  [
    'answers a forged feed',
    ({ feed }) => ({ ...feed(5), revoked_attestation_ids: ['forged'] }),
    /^its feed is refused: invalid_feed_signature$/,
  ],
  [
    'answers a feed without a signature',
    ({ feed }) => ({ ...feed(5), signatures: [] }),
    /^its feed is refused: missing_feed_signature$/,
  ],
  [
    'answers the feed of another sovereign',
    ({ feed }) => signedBy({ ...feed(5), issuer_sovereign_id: 'gamma' }, FIRST),
    /^its feed is refused: (wrong_issuer|missing_issuer_public_keys)$/,
  ],
];

test('partners whose feeds are not accepted change nothing, and the reasons and their time are shown', async () => {
  const na = await shared();
  const cases = await Promise.all(
    WRONG.map(async ([what, wrong, problem]) => ({ what, wrong, problem, ...(await partner()) })),
  );
  await using _ = {
    async [Symbol.asyncDispose]() {
      for (const given of cases) await given[Symbol.asyncDispose]();
    },
  };
  const answerAll = (answerOf: (given: (typeof cases)[0]) => object | string | null) => {
    for (const given of cases) {
      given.host.answers = { ...given.host.answers, [FEED]: answerOf(given) };
    }
    return visit(na);
  };
  await answerAll(({ feed }) => feed(2, { revoked_attestation_ids: ['one'] }));
  for (const { what, treaty } of cases) {
    assert.equal((await fetchOf(na, treaty)).problem, null, what);
  }
  const log = na.logLines.length;
  for (const { host, feed } of cases) host.answers = { ...host.answers, 'GET /feed': feed(6) };
  await answerAll((given) => given.wrong(given));
  const since = na.clock.now();
  await visit(na);
  for (const { what, problem, beta, host, treaty } of cases) {
    const state = await fetchOf(na, treaty);
    assert.match(state.problem, problem, what);
    assert.equal(Date.parse(state.failing_since), since, what);
    assert.equal(Date.parse(state.fetched_at), since - INTERVAL - 10 * SECOND, what);
    assert.deepEqual(await importedOf(na, beta.name), ['one'], what);
    const followed = host.asked.filter(({ route }) => route === 'GET /feed');
    assert.deepEqual(followed, [], what);
  }
  const lines = na.logLines.slice(log).join('');
  assert.equal(lines.match(/cannot be imported/g)?.length, cases.length, 'once for each');
  assert.doesNotMatch(lines, /sovereign_revocation_feed_/);

  await answerAll(({ feed }) => feed(7, { revoked_attestation_ids: ['one', 'two'] }));
  for (const { what, beta, treaty } of cases) {
    assert.equal((await fetchOf(na, treaty)).failing_since, null, what);
    assert.deepEqual(await importedOf(na, beta.name), ['one', 'two'], what);
  }
});

test('what was accepted is read again only when it or the treaties have changed', async () => {
  await using given = await partner();
  const { na, beta, host, feed } = given;
  host.answers = {
    [KEYS]: answered('{"successions":[]}', { etag: '"keys"' }),
    [FEED]: answered(JSON.stringify(feed(1)), { etag: '"feed"' }),
  };
  const named = async () => {
    host.asked.length = 0;
    await visit(na);
    return host.asked.map(({ headers }) => headers['if-none-match']);
  };
  assert.deepEqual(await named(), [undefined, undefined]);
  assert.deepEqual(await named(), ['"keys"', '"feed"']);
  const other = await issued(
    recognize(na, {
      subject_sovereign_id: beta.name,
      subject_public_keys: [beta.key.publicKey],
      endpoint: host.url,
    }),
  );
  assert.deepEqual(await named(), [undefined, undefined]);
  host.answers = { ...host.answers, [FEED]: answered('{}', { etag: '"other"' }) };
  assert.deepEqual(await named(), ['"keys"', '"feed"']);
  assert.deepEqual(await named(), ['"keys"', '"feed"'], 'what is refused is read each time');
  await revokeTreaty(na, other.treaty_id);
});

test('the horizon says when the last feed of one that cannot be fetched becomes stale', async () => {
  await using given = await partner();
  const { na, host, treaty, feed } = given;
  host.answers = { ...host.answers, [FEED]: feed(1) };
  const call = { method: 'GET', operator: na.standard };
  const found = async () => {
    await visit(na);
    const { lapsing } = (await operate(na, '/admin/horizon', {}, call)).body;
    return lapsing.find(({ kind }: JsonObject) => kind === 'partner');
  };
  assert.equal(await found(), undefined);
  const importedAt = Date.parse((await fetchOf(na, treaty)).imported_at);
  host.answers = { ...host.answers, [FEED]: null };
  const { count, soonest } = await found();
  assert.deepEqual([count, Date.parse(soonest)], [1, importedAt + 73 * HOUR]);
});

for (const [what, changed, problem] of [
  ['becomes too old, although it is accepted', {}, 'its feed is older than a day'],
  [
    'is no newer because someone without the key says so',
    { issued_at: '2100-01-01T00:00:00Z' },
    'its feed is refused: stale_sequence',
  ],
] as [string, JsonObject, string][]) {
  test(`a feed that is withheld ${what}`, async () => {
    await using given = await partner();
    const { na, host, treaty, feed } = given;
    const first = feed(1);
    host.answers = { ...host.answers, [FEED]: first };
    await visit(na);
    assert.equal((await fetchOf(na, treaty)).problem, null);
    host.answers = { ...host.answers, [FEED]: { ...first, ...changed } };
    na.clock.advance(DAY);
    await na.federate();
    assert.equal((await fetchOf(na, treaty)).problem, problem);
  });
}

test('a feed that was signed while the clock was ahead is reported, because it becomes too old late', async () => {
  await using given = await partner();
  const { na, host, treaty, beta } = given;
  host.answers = { ...host.answers, [FEED]: beta.feed(na.clock.now() + 2 * DAY, 1) };
  await visit(na);
  const { imported_at, problem } = await fetchOf(na, treaty);
  assert.notEqual(imported_at, null);
  assert.equal(problem, 'its feed is dated more than a day ahead');
});

test('feeds that omit what earlier ones have named are fetched only a few times', async () => {
  await using given = await partner();
  const { na, beta, host, treaty, feed } = given;
  for (let sequence = 1; sequence <= 12; sequence += 1) {
    const ids = { revoked_attestation_ids: [`id-${sequence}`] };
    host.answers = { ...host.answers, [FEED]: feed(sequence, ids) };
    await visit(na);
  }
  assert.equal((await importedOf(na, beta.name)).length, 8);
  assert.equal((await fetchOf(na, treaty)).problem, 'its feed is refused: ids_omitted');
  assert.equal(outcome(await importFeed(na, feed(20))), '200', 'by hand it still is');
});

test('imports whose ids a later one names do not count among those few', async () => {
  await using given = await partner();
  const { na, beta, host, treaty, feed } = given;
  for (let sequence = 1; sequence <= 12; sequence += 1) {
    // From the seventh on, each names what the one before has named, and more.
    const first = Math.min(sequence, 7);
    const ids = Array.from({ length: sequence - first + 1 }, (_, n) => `id-${first + n + 10}`);
    host.answers = { ...host.answers, [FEED]: feed(sequence, { revoked_attestation_ids: ids }) };
    await visit(na);
  }
  assert.equal((await importedOf(na, beta.name)).length, 12);
  assert.equal((await fetchOf(na, treaty)).problem, null);
});

test('without MESH_FEDERATION_PRIVATE, nothing is sent to a private address or without TLS', async () => {
  await using na = await startTestAuthority();
  await using host = await startHostileAuthority();
  const treaty = await issued(recognize(na, { endpoint: host.url }));
  const named = await issued(recognize(na, { endpoint: 'https://127.0.0.1:1' }));
  await visit(na);
  assert.match((await fetchOf(na, treaty)).problem, /^its address must be an https URL, or http/);
  assert.match((await fetchOf(na, named)).problem, /^its address names a private address/);
  assert.deepEqual(host.asked, []);
});

const PLANNED: Step = { kind: 'planned', at: -1 };
const STOLEN: Step = { kind: 'compromise', at: -1 };
const ROOT_NAMED = { metadata: { root_public_key: ROOT.publicKey } };
const WITH_OTHER_KEY = { subject_public_keys: [countedKey(30).publicKey] };

for (const [what, steps, terms, problem] of [
  ['planned', [PLANNED], ROOT_NAMED, null],
  ['planned, and the treaty names no root key', [PLANNED], {}, 'root_key_needed'],
  ['stolen', [STOLEN], ROOT_NAMED, null],
  ['stolen, and the treaty names no root key', [STOLEN], {}, 'root_key_needed'],
  ['unknown', [PLANNED], WITH_OTHER_KEY, 'unknown_key'],
] as [string, Step[], JsonObject, string | null][]) {
  test(`a key that is ${what} is ${problem === null ? 'followed' : 'not followed'}`, async () => {
    await using given = await partner(terms);
    const { na, beta, host, treaty } = given;
    const successions = chainAt(na.clock.now(), beta.name, steps);
    const changed = sovereign(beta.name, countedKey(2));
    const ids = { revoked_attestation_ids: ['one'] };
    host.answers = {
      [KEYS]: { successions },
      [FEED]: changed.feed(na.clock.now(), 1, ids),
    };
    await visit(na);
    const { status, fetch, lifecycle } = (
      await get(na, `/recognition-treaties/${treaty.treaty_id}`)
    ).body;
    assert.equal(status, problem === null ? 'revoked' : 'active');
    assert.deepEqual(await importedOf(na, beta.name), problem === null ? ['one'] : []);
    if (problem === null) await revokeTreaty(na, lifecycle.replacement_treaty_id);
    else assert.match(fetch.problem, /^its feed is refused: invalid_feed_signature$/);
    // With a feed that is accepted, the reason is that of the keys.
    host.answers = { ...host.answers, [FEED]: beta.feed(na.clock.now(), 2, ids) };
    await visit(na);
    if (problem !== null && terms !== WITH_OTHER_KEY) {
      const later = await fetchOf(na, treaty);
      assert.equal(later.problem, `its keys are refused: ${problem}`);
    }
  });
}

test('thousands of partners are listed in slices, each with its treaties', async () => {
  const recognition = createRecognitionIndex();
  for (let count = 0; count < 6000; count += 1) {
    const treaty = {
      issuer: 'alpha',
      subject: `s-${count % 3000}`,
      endpoint: 'https://na.example',
    };
    const always = { issuedAt: count, expiresAt: Number.MAX_SAFE_INTEGER, revokedAt: null };
    recognition.putTreaty(`t-${count}`, { ...treaty, ...always } as unknown as Treaty);
  }
  recognition.endLoading();
  const made = readPartners({ recognition } as unknown as Authority, null, 0);
  assert.ok(made instanceof AsyncResult);
  let isOver = false;
  const listed = made.made.finally(() => {
    isOver = true;
  });
  let turns = 0;
  for (; !isOver; turns += 1) await nextTurn();
  const partners = JSON.parse(jsonText(await listed));
  assert.equal(partners.length, 3000);
  assert.deepEqual(partners[1], {
    subject: 's-1',
    endpoint: 'https://na.example',
    treatyIds: ['t-1', 't-3001'],
  });
  assert.ok(turns > 10, `${turns} turns of others`);
});

test('a partner that has failed is visited again, although the others take all of the time', async () => {
  const subjects = ['away', ...Array.from({ length: 20 }, (_, count) => `beta-${count}`)];
  const endpoint = 'https://na.example';
  const partners = subjects.map((subject) => ({ subject, endpoint, treatyIds: [] }));
  let elapsed = 0;
  const visited: string[] = [];
  const federation = createFederation(
    { every: MINUTE, allowsPrivate: false },
    {
      call: () => ({ ok: true, json: JSON.stringify(partners) }),
      runtime: { ...systemRuntime, elapsed: () => elapsed },
      logger: { write: () => undefined } as unknown as Logger,
      startThread: () => ({
        async visit({ subject }, served) {
          visited.push(subject);
          elapsed += 10 * SECOND;
          if (visited.length === 200) federation.stop();
          const problem = subject === 'away' ? { text: 'away', isRefused: false } : null;
          return { problem, served };
        },
        end: () => undefined,
      }),
    },
  );
  await federation.readPartners();
  elapsed += MINUTE;
  await federation.visitDue();
  const times = visited.filter((subject) => subject === 'away').length;
  assert.ok(times > 5, `${times} times`);
});

test('a stop does not wait for the treaties that a visit has not come to', async () => {
  await using host = await startHostileAuthority({ [KEYS]: { successions: [] } });
  const asked: string[] = [];
  const reach = { allowsPrivate: true, setting: 'MESH_FEDERATION_PRIVATE=1' } as const;
  const visitor = createVisitor({ reach, maxFeedEntries: 1 }, (name) => {
    asked.push(name);
    visitor.stop();
    return { ok: false, refusal: 'treaty_not_found', details: {} };
  });
  const partner = { subject: 'beta', endpoint: host.url, treatyIds: ['a', 'b', 'c'] };
  const { problem } = await visitor.visit(partner, NOTHING_SERVED, 0);
  assert.deepEqual([asked, problem?.text], [['treatyPin'], 'the service is stopping']);
});

test('a treaty that cannot follow a key keeps no other with the same sovereign from it', async () => {
  await using given = await partner();
  const { na, beta, host, treaty } = given;
  const about = { subject_sovereign_id: beta.name, subject_public_keys: [beta.key.publicKey] };
  const second = await issued(recognize(na, { ...about, endpoint: host.url, ...ROOT_NAMED }));
  const successions = chainAt(na.clock.now(), beta.name, [PLANNED]);
  const ids = { revoked_attestation_ids: ['one'] };
  host.answers = { [KEYS]: { successions }, [FEED]: beta.feed(na.clock.now(), 1, ids) };
  await visit(na);
  assert.equal((await fetchOf(na, treaty)).problem, 'its keys are refused: root_key_needed');
  const { lifecycle } = (await get(na, `/recognition-treaties/${second.treaty_id}`)).body;
  assert.notEqual(lifecycle.replacement_treaty_id, null, 'it has followed');
  await revokeTreaty(na, lifecycle.replacement_treaty_id);
});

/** Now and then a value that does not fit. */
function mostly<Value>(fits: fc.Arbitrary<Value>, ...odd: unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof(
    { arbitrary: fits, weight: 8 },
    { arbitrary: fc.constantFrom(...odd), weight: 1 },
  );
}

test('of random feeds, exactly those are imported that the command accepts', async () => {
  await using given = await partner();
  const { na, host, beta } = given;
  const changes = fc.record({
    issuer_sovereign_id: mostly(fc.constant(beta.name), 'gamma', ''),
    sequence: mostly(fc.nat(3), -1, 1.5, '4', null),
    issued_at: mostly(fc.constant('2026-01-01T00:00:00Z'), 'yesterday', 7),
    revoked_attestation_ids: mostly(fc.subarray(['a', 'b', 'c']), null, 'a', [7], ['b', 'a']),
    revocation_reasons: mostly(fc.constant({}), { a: 'x' }, { z: 'x' }, []),
    feed_id: mostly(fc.uuid(), 'f', null),
  });
  const mark = mostly(fc.constant('signed'), 'unsigned', 'altered', 'by another');
  await using twin = await startTestAuthority({ clock: na.clock });
  await recognize(twin, {
    subject_sovereign_id: beta.name,
    subject_public_keys: [beta.key.publicKey],
    validity_hours: 87_600,
  });
  const isImported = async (changed: JsonObject, kind: unknown) => {
    const draft = { ...beta.feed(na.clock.now(), 1), ...changed };
    const key = kind === 'by another' ? countedKey(31) : beta.key;
    const whole = kind === 'unsigned' ? { ...draft, signatures: [] } : signedBy(draft, key);
    const feed = kind === 'altered' ? { ...whole, revoked_attestation_ids: ['z'] } : whole;
    host.answers = { ...host.answers, [FEED]: feed };
    const log = na.logLines.length;
    await visit(na);
    const text = na.logLines.slice(log).join('');
    const accepted = text.includes('sovereign_revocation_feed_imported');
    const byHand = await importFeed(twin, feed, { expected_issuer_sovereign_id: beta.name });
    assert.equal(accepted, byHand.status === 200, JSON.stringify([feed, byHand.body]));
    return accepted;
  };
  let imported = 0;
  let run = 0;
  await fc.assert(
    fc.asyncProperty(changes, mark, async (changed, kind) => {
      run += 1;
      const { sequence } = changed;
      const isSmall = typeof sequence === 'number' && sequence >= 0 && sequence <= 3;
      const later = isSmall ? { sequence: sequence + run } : {};
      if (await isImported({ ...(changed as JsonObject), ...later }, kind)) imported += 1;
    }),
    { numRuns: 30 },
  );
  assert.ok(imported > 1, `${imported} are imported`);
  // Last, because nothing comes after it.
  assert.equal(await isImported({ sequence: 2 ** 60 }, 'signed'), true);
  assert.deepEqual(await importedOf(na, beta.name), await importedOf(twin, beta.name));
});

// Authorities of other sovereigns whose certificates are of a CA of their own [core-4-13-3].

const NEEDS_CA =
  'the connection failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE): its certificate is of a CA that is unknown here; NODE_EXTRA_CA_CERTS can name it';

test('a partner whose certificate is of its own CA is fetched with that CA, and without it the finding says so', async () => {
  await using scratch = scratchFolder();
  const issuer = makeIssuer(scratch.path, 'house');
  const served = issueTlsPair(scratch.path, 'beta', issuer, { subject: 'IP:127.0.0.1' });
  await using betaFolder = networkFolder('beta');
  await using beta = await startTestAuthority({
    clock: REAL_TIME,
    dataDir: betaFolder.path,
    flags: { tlsCert: served.certFile, tlsKey: served.keyFile },
  });
  await using trusting = networkFolder('alpha');
  await using trusts = await serve(trusting.path, { NODE_EXTRA_CA_CERTS: issuer.certFile });
  const fetched = await firstFetch(trusts, beta);
  assert.equal(fetched.problem, null);
  assert.notEqual(fetched.imported_at, null);

  await using plain = networkFolder('gamma');
  await using lacks = await serve(plain.path, {});
  const refused = await firstFetch(lacks, beta);
  assert.deepEqual([refused.problem, refused.imported_at], [NEEDS_CA, null]);
  const environment = { MESH_URL: lacks.na.url, MESH_DATA_DIR: plain.path };
  const { stdout } = await runCommand(['doctor', '--json'], environment);
  const { checks } = JSON.parse(stdout);
  const { found } = checks.find(({ check }: JsonObject) => check === 'partners');
  assert.ok(found.startsWith(`"beta" at ${beta.url}: ${NEEDS_CA} (since `), stdout);
});

function serve(folder: string, environment: Record<string, string>): Promise<ChildServer> {
  return startChildServer(folder, {
    environment: { ...NO_LIMITS, MESH_FEDERATION_PRIVATE: '1', ...environment },
  });
}

/** The state of fetching after the first visit. */
async function firstFetch({ na }: ChildServer, partner: TestAuthority): Promise<JsonObject> {
  const terms = { subject_public_keys: [partner.audience], endpoint: partner.url };
  const { treaty_id } = await issued(recognize(na, terms));
  let fetch: JsonObject = {};
  await until(async () => {
    fetch = (await get(na, `/recognition-treaties/${treaty_id}`)).body.fetch;
    return fetch.fetched_at !== null || fetch.problem !== null;
  });
  return fetch;
}
