/** Everything that is stored is there again after a restart, byte for byte [service-what-the-service-does]. */

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { GENESIS_HASH } from '../src/store/store.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { get, joinedNode, operate, outcome, send } from './support/requests.ts';
import { signAgentDescriptor } from './support/signing.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import {
  attest,
  audited,
  importFeed,
  issued,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  sovereign,
  startUnlimited,
} from './support/trust.ts';

const FREE = parseJson(
  '{"limit":1.0,"n":10,"tiny":1e-7,"big":18446744073709551616,"name":"Z\\u00fcrich \\u2713 \\ud83d\\ude00","deep":[{"a":null},[1.50]]}',
) as JsonObject;

/** The paths of everything that another party can read of the trust state. */
const DOCUMENTS = [
  '/genesis',
  '/sovereign.json',
  '/policy',
  '/crl',
  '/recognition-policy',
  '/recognition-treaties',
  '/recognition-treaties?status=revoked',
  '/attestations',
  '/attestations?status=revoked',
  '/sovereign-revocation-feed',
  '/sovereign-revocation-feed?issuer_sovereign_id=gamma',
  '/recognition-graph',
  '/connectome.json',
  '/connectome/trust-path?from=alpha&to=delta',
  '/connectome/trust-path?from=delta&to=alpha',
  '/atlas.json',
  '/agents',
  '/agents?capability=llm:chat',
];

/** Creates everything in every state that it can have, a second apart. */
async function populate(na: TestAuthority): Promise<{
  readonly beta: Sovereign;
  /** Where each record can be read by its id. */
  readonly paths: readonly string[];
  /** The id of a registration that was removed with its certificate. */
  readonly gone: string;
}> {
  const beta = sovereign('beta');
  let gone = '';
  const paths: string[] = [];
  await operate(na, '/admin/policy', { policy_id: 'first', allowed_services: ['mail'] });
  na.clock.advance(SECOND);
  await operate(na, '/admin/policy', { policy_id: 'second', routing: { max_hops: 3 } });
  await operate(na, '/admin/policy/rollback', { policy_id: 'first' });
  const entry = { sovereign_id: 'beta', public_keys: [beta.key.publicKey] };
  await operate(na, '/admin/recognition-policy', {
    recognition_policy: {
      local_sovereign_id: 'alpha',
      recognized_issuers: [entry],
      revoked_attestation_ids: ['z', 'a'],
    },
  });
  for (const [terms, reason] of [
    [{ subject_sovereign_id: 'beta', subject_public_keys: [beta.key.publicKey] }, null],
    [{ issuer_sovereign_id: 'beta', subject_sovereign_id: 'delta', validity_hours: 48 }, null],
    [{ subject_sovereign_id: 'gamma', validity_hours: 1 }, null],
    [{ subject_sovereign_id: 'delta' }, 'ended'],
    [{ subject_sovereign_id: 'delta' }, 'renewed_by:t-9'],
  ] as [JsonObject, string | null][]) {
    const treaty = await issued(
      recognize(na, { scope: { claims: FREE }, metadata: FREE, ...terms }),
    );
    paths.push(`/recognition-treaties/${treaty.treaty_id}`);
    na.clock.advance(SECOND);
    if (reason !== null) await revokeTreaty(na, treaty.treaty_id, { reason });
  }
  for (const [terms, reason] of [
    [{}, null],
    [{ subject_public_key: 'text' }, 'left'],
    [{ validity_hours: 1 }, null],
    [{ issuer_sovereign_id: 'gamma' }, 'Zürich \u{1f600}'],
    [{ issuer_sovereign_id: 'gamma' }, null],
  ] as [JsonObject, string | null][]) {
    const { attestation_id } = await issued(attest(na, { claims: FREE, ...terms }));
    paths.push(`/attestations/${attestation_id}`);
    na.clock.advance(SECOND);
    if (reason !== null) await revokeAttestation(na, attestation_id, { reason });
  }
  for (const sequence of [1, 2 ** 52]) {
    const feed = beta.feed(na.clock.now(), sequence, {
      revoked_attestation_ids: [`id-${sequence}`, 'x'],
      revocation_reasons: { x: 'left' },
    });
    assert.equal(outcome(await importFeed(na, feed)), '200');
    na.clock.advance(SECOND);
  }
  for (let n = 0; n < 3; n += 1) {
    const node = await joinedNode(na);
    const endpoint = { host: 'h', port: 1 };
    const agent = { agent_id: `agent-${n}`, network_name: 'alpha', endpoint, metadata: FREE };
    const descriptor = signAgentDescriptor(
      { ...agent, capabilities: ['llm:chat'], lifetimeSeconds: 86_400 },
      node.key,
      na.clock.now(),
    );
    assert.equal(outcome(await send(na, 'POST', '/agents', { body: jsonText(descriptor) })), '200');
    const path = `/agents/${encodeURIComponent(node.key.publicKey)}`;
    na.clock.advance(SECOND);
    if (n < 2) paths.push(path);
    else {
      await operate(na, '/admin/revoke', { cert_id: node.certId });
      gone = path;
    }
  }
  na.clock.advance(2 * HOUR);
  return { beta, paths, gone };
}

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly etag: string | null;
}

async function readAll(na: TestAuthority, paths: readonly string[]): Promise<[string, Seen][]> {
  const seen: [string, Seen][] = [];
  for (const path of paths) {
    const { status, text, headers } = await get(na, path);
    const baseless = text.replaceAll(na.url, 'URL');
    // The metadata names the server's port, which is different after a start.
    const etag = path === '/sovereign.json' ? null : headers.get('etag');
    seen.push([path, { status, text: baseless, etag }]);
  }
  const { status, text } = await historyOf(na);
  return [...seen, ['history', { status, text, etag: null }]];
}

function historyOf(na: TestAuthority) {
  return operate(na, '/admin/policy/history', {}, { method: 'GET' });
}

/** A row of a list, as far as it names the record. */
interface Row {
  readonly attestation: JsonObject;
  readonly treaty: JsonObject;
}

suite('what is stored in every state that it can have', () => {
  let na: TestAuthority;
  let stored: Awaited<ReturnType<typeof populate>>;
  before(async () => {
    na = await startUnlimited();
    stored = await populate(na);
  });
  after(() => na[Symbol.asyncDispose]());

  test('is in the audit chain, in order and unbroken, as it was logged', async () => {
    const entries = await auditEntriesOf(na);
    const types = entries.map(({ event_type }) => event_type);
    for (const type of [
      'policy_published',
      'policy_rolled_back',
      'recognition_policy_saved',
      'recognition_treaty_issued',
      'recognition_treaty_revoked',
      'membership_attestation_issued',
      'membership_attestation_revoked',
      'sovereign_revocation_feed_imported',
      'agent_registered',
      'certificate_revoked',
    ]) {
      const details = entries.flatMap((entry) => (entry.event_type === type ? entry.details : []));
      assert.ok(details.length > 0, type);
      assert.deepEqual(details, audited(na, type));
    }
    const verified = types.filter((type) => type.endsWith('_verified'));
    assert.deepEqual(verified, [], 'verifications are log lines only');
    const verdict = await verifyAuditChain(entries, GENESIS_HASH);
    assert.deepEqual([verdict.valid, entries.length > 20], [true, true]);
  });

  test('is the same in every document, list, feed and history after a restart, and after another', async () => {
    const all = [...DOCUMENTS, ...stored.paths];
    const before = await readAll(na, all);
    for (const [path, { status }] of before) assert.equal(status, 200, path);
    for (const _restart of [1, 2]) {
      na = await na.restart();
      assert.deepEqual(await readAll(na, all), before);
      assert.equal(outcome(await get(na, stored.gone)), '404 agent_not_registered');
    }
  });

  test('is decided for good: sequences, revocations, activations', async () => {
    const { beta } = stored;
    na.clock.advance(SECOND);
    const stale = beta.feed(na.clock.now(), 2 ** 52);
    assert.equal(outcome(await importFeed(na, stale)), '409 stale_sequence');
    const [revoked] = (await get(na, '/attestations?status=revoked')).body.attestations;
    const { attestation_id } = revoked.attestation;
    const repeat = await revokeAttestation(na, attestation_id, { reason: 'another' });
    assert.equal(repeat.body.already_revoked, true);
    const sequence = async () => (await get(na, '/sovereign-revocation-feed')).body.sequence;
    assert.equal(await sequence(), 1);
    const next = await issued(attest(na));
    await revokeAttestation(na, next.attestation_id);
    assert.equal(await sequence(), 2, 'one more');
    const published = await operate(na, '/admin/policy', { policy_id: 'third' });
    const { versions } = (await historyOf(na)).body;
    assert.deepEqual(
      versions.map((row: JsonObject) => [row.policy_id, row.active]),
      [
        ['third', true],
        ['second', false],
        ['first', false],
      ],
    );
    assert.equal((await get(na, '/policy')).text, published.text);
    const attestation = beta.attestation(na.clock.now(), { attestation_id: 'id-1' });
    const treaty = await issued(recognize(na, { subject_public_keys: [beta.key.publicKey] }));
    const verdict = await post(na, '/attestations/verify-with-treaty', { attestation, treaty });
    assert.equal(verdict.body.reason, 'attestation_locally_revoked');
  });
});

test('lists keep their order across a restart, even for rows of the same instant', async () => {
  await using na = await startUnlimited();
  for (let n = 0; n < 12; n += 1) {
    await attest(na, { subject_id: `agent-${n}` });
    await recognize(na, { subject_sovereign_id: `s-${n}` });
    await operate(na, '/admin/policy', { policy_id: `policy-${(n * 7) % 12}` });
  }
  const listsOf = async (of: TestAuthority) => {
    const { attestations } = (await get(of, '/attestations')).body;
    const { recognition_treaties } = (await get(of, '/recognition-treaties')).body;
    const { recognition_edges } = (await get(of, '/recognition-graph')).body;
    const { versions } = (await historyOf(of)).body;
    return {
      attestations: attestations.map((row: Row) => row.attestation.attestation_id),
      treaties: recognition_treaties.map((row: Row) => row.treaty.treaty_id),
      edges: recognition_edges.map((row: JsonObject) => row.treaty_id),
      versions: versions.map((row: JsonObject) => row.policy_id),
    };
  };
  const before = await listsOf(na);
  for (const [name, ids] of Object.entries(before)) assert.equal(new Set(ids).size, 12, name);
  await using again = await na.restart();
  assert.deepEqual(await listsOf(again), before);
});

test('lifecycles and evictions follow the clock while the authority is down', async () => {
  await using na = await startUnlimited();
  const { treaty_id } = await issued(recognize(na, { validity_hours: 1 }));
  const node = await joinedNode(na);
  const descriptor = signAgentDescriptor(
    { agent_id: 'a', network_name: 'alpha', endpoint: { host: 'h', port: 1 } },
    node.key,
    na.clock.now(),
  );
  await send(na, 'POST', '/agents', { body: jsonText(descriptor) });
  await na.stop();
  na.clock.advance(2 * HOUR);
  await using again = await na.restart();
  const { body } = await get(again, `/recognition-treaties/${treaty_id}`);
  assert.deepEqual([body.status, body.lifecycle.state], ['active', 'expired']);
  assert.equal((await get(again, '/agents')).body.count, 0);
  const path = await get(again, '/connectome/trust-path?from=alpha&to=beta');
  assert.equal(path.body.reason, 'no_active_treaty_path');
});

test('a change that was answered is on disk: a copy made at that moment contains it', async () => {
  await using na = await startUnlimited();
  const made: JsonValue[] = [];
  for (let n = 0; n < 5; n += 1) made.push((await issued(attest(na))).attestation_id ?? '');
  const ids = (await auditEntriesOf(na)).flatMap(({ event_type, details }) =>
    event_type === 'membership_attestation_issued' ? [details.attestation_id] : [],
  );
  assert.deepEqual(ids, made);
});
