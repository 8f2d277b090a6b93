/**
 * The golden vectors of the trust protocol over HTTP: every record that operators create [trust-5], and every public
 * verification [trust-6], [trust-7], which the client makes without a server, too.
 */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject, JsonValue } from '../src/base/json/value.ts';
import { createVerifier } from '../src/client/offline.ts';
import {
  assertAnswered,
  caseNamed,
  casesOf,
  detailNames,
  EVENTS,
  eventDetailNames,
  GOLDEN,
  type GoldenCase,
  goldenKey,
  startGolden,
} from './support/golden-trust.ts';
import { get, operate, outcome } from './support/requests.ts';
import { audited, freshId, issued, parsed, recognize } from './support/trust.ts';

const POLICY = '/admin/data-usage/policy';
const NULLIFIER = '/admin/disclosure/nullifier';
const READ_POLICY = 'GET /data-usage/policy';

const na = await startGolden();
after(() => na[Symbol.asyncDispose]());
await issued(
  recognize(na, {
    subject_sovereign_id: 'net-b',
    subject_public_keys: [goldenKey('b').publicKey],
  }),
);

test('the authority and the operator of the vectors have the keys of the vectors', () => {
  assert.equal(na.audience, GOLDEN.keys.na?.public_base64);
  assert.equal(na.privileged.key.publicKey, GOLDEN.keys.op?.public_base64);
});

test('the vectors contain cases of eleven operator routes, one read and ten verifications', () => {
  assert.equal(Object.keys(GOLDEN.build).length, 12);
  assert.ok(casesOf('build').length >= 139);
  assert.equal(Object.keys(GOLDEN.verify).length, 10);
  assert.ok(casesOf('verify').length >= 181);
});

for (const golden of [...casesOf('build'), ...casesOf('verify')]) {
  if (golden.endpoint === READ_POLICY) continue;

  test(`${golden.endpoint} answers ${golden.name} with ${golden.status}`, () =>
    assertAnswered(na, golden));
}

for (const { name, status } of casesOf('build', READ_POLICY)) {
  test(`${READ_POLICY} answers ${name} with ${status}`, async () => {
    assert.equal(name, 'returns_last_policy_even_if_expired_window');
    const { request } = caseNamed('build', POLICY, 'ok_window_in_past');
    const created = await operate(na, POLICY, request);
    assert.equal(created.status, 201, outcome(created));
    const read = await get(na, '/data-usage/policy');
    assert.equal(read.status, status);
    assert.deepEqual(parsed(read), parsed(created));
  });
}

// Timestamps of requests [trust-1-3]

/** The route, the request member, and the member of the record that contains it; null if the record itself does. */
const TIMESTAMPS: readonly (readonly [string, string, string | null])[] = [
  ['/admin/agreements/offer', 'valid_from', 'requested_terms'],
  ['/admin/agreements/offer', 'valid_until', 'requested_terms'],
  ['/admin/agreements/offer', 'expires_at', null],
  ['/admin/agreements/counter', 'valid_from', 'agreed_terms'],
  ['/admin/agreements/counter', 'valid_until', 'agreed_terms'],
  [POLICY, 'valid_from', null],
  [POLICY, 'valid_until', null],
];

for (const [route, member, within] of TIMESTAMPS) {
  test(`${route} reads ${member} as the vectors do`, async () => {
    const { request } = caseNamed('build', route, 'ok');
    const window = { valid_from: '2020-01-01T00:00:00Z', valid_until: '2099-01-01T00:00:00Z' };
    for (const { input, ours } of GOLDEN.request_timestamps.cases) {
      const answer = await operate(na, route, { ...request, ...window, [member]: input });
      assert.equal(answer.status, 201, outcome(answer));
      const record = parsed(answer);
      const holder = within === null ? record : (record[within] as JsonObject);
      assert.equal(holder[member], ours, input);
    }
  });
}

// Audit events

test('the vectors name the members of every audit event of the trust protocol', () => {
  const events = new Set([...Object.values(EVENTS), 'admin_auth_failed']);
  assert.deepEqual(new Set(Object.keys(GOLDEN.audit_event_detail_keys)), events);
});

test('each audit event has the members of the vectors', async () => {
  for (const section of ['build', 'verify'] as const) {
    for (const endpoint of Object.keys(GOLDEN[section])) {
      const event = EVENTS[endpoint];
      const golden = casesOf(section, endpoint).find(({ status }) => status < 300);
      if (event === undefined || golden === undefined) continue;
      const sent = endpoint === NULLIFIER ? withFreshProof(golden) : golden;
      assert.deepEqual(await eventDetailNames(na, sent), detailNames(event), event);
    }
  }
  await operate(na, POLICY, {}, { alter: (headers) => delete headers['X-Admin-Signature'] });
  for (const event of ['recognition_treaty_issued', 'admin_auth_failed']) {
    const details = audited(na, event).at(-1);
    assert.deepEqual(Object.keys(details ?? {}).sort(), detailNames(event));
  }
});

/** A proof can be nullified only once, so each case gets a new one. */
function withFreshProof(golden: GoldenCase): GoldenCase {
  const proof = { ...(golden.request.proof as JsonObject), proof_id: freshId('proof') };
  return { ...golden, request: { proof } };
}

// The client, without a server

const verifier = createVerifier({ now: () => Date.parse(GOLDEN.meta.clock) });

/** An authority that gets no keys uses its own; a client always has to name the keys. */
function keysOf(keys: JsonValue | undefined): string[] {
  return Array.isArray(keys) ? keys.map(String) : [GOLDEN.keys.na?.public_base64 ?? ''];
}

/** How the client verifies the records in a request to each endpoint. */
const JUDGED: Readonly<Record<string, (request: JsonObject) => string>> = {
  '/agreements/verify': (r) =>
    verifier.agreement(r.agreement, keysOf(r.offerer_public_keys), keysOf(r.responder_public_keys)),
  '/boundary/verify': (r) => verifier.decision(r.decision, keysOf(r.operator_public_keys)),
  '/trust-evidence/verify': (r) =>
    verifier.evidence(
      r.evidence,
      keysOf(r.issuer_public_keys),
      typeof r.expected_graph_digest === 'string' ? r.expected_graph_digest : null,
    ),
  '/disclosure/verify': (r) =>
    verifier.membership(r.proof, r.commitment, keysOf(r.issuer_public_keys)),
  '/attestations/verify': (r) => verifier.attestation(r.attestation, r.recognition_policy),
};

suite('offline', () => {
  for (const [endpoint, judge] of Object.entries(JUDGED)) {
    for (const { name, request, rawBody, status, body } of casesOf('verify', endpoint)) {
      // Null if the answer concerns the form of the request, not a record.
      const { reason = null } = (body ?? {}) as JsonObject;
      if (status !== 200 || reason === null) continue;

      test(`${name} of ${endpoint} is ${reason}`, () => {
        const sent = rawBody === null ? request : (parseJson(rawBody) as JsonObject);
        assert.equal(judge(sent), reason);
      });
    }
  }
});
