/** Every record of the golden vectors that operators create, over HTTP [trust-5]. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
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

test('the operator of the vectors signs with the key of the vectors', () => {
  assert.equal(na.privileged.key.publicKey, GOLDEN.keys.op?.public_base64);
});

test('the vectors contain cases of eleven operator routes and one read', () => {
  assert.equal(Object.keys(GOLDEN.build).length, 12);
  assert.ok(casesOf('build').length >= 139);
});

for (const golden of casesOf('build')) {
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

const EARLIER = '2020-01-01T00:00:00Z';
const LATER = '2099-01-01T00:00:00Z';

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

for (const { input, ours } of GOLDEN.request_timestamps.cases) {
  for (const [route, member, within] of TIMESTAMPS) {
    test(`${route} reads ${member} ${input} as ${ours}`, async () => {
      const { request } = caseNamed('build', route, 'ok');
      const body = { ...request, valid_from: EARLIER, valid_until: LATER, [member]: input };
      const answer = await operate(na, route, body);
      assert.equal(answer.status, 201, outcome(answer));
      const record = parsed(answer);
      const holder = within === null ? record : (record[within] as JsonObject);
      assert.equal(holder[member], ours);
    });
  }
}

// Audit events

test('the vectors name the members of every audit event of the trust protocol', () => {
  const events = new Set([...Object.values(EVENTS), 'admin_auth_failed']);
  assert.deepEqual(new Set(Object.keys(GOLDEN.audit_event_detail_keys)), events);
});

for (const endpoint of Object.keys(GOLDEN.build)) {
  const event = EVENTS[endpoint];
  const golden = casesOf('build', endpoint).find(({ status }) => status === 201);
  if (event === undefined || golden === undefined) continue;

  test(`the audit event ${event} has the members of the vectors`, async () => {
    const names = await eventDetailNames(
      na,
      endpoint === NULLIFIER ? withFreshProof(golden) : golden,
    );
    assert.deepEqual(names, detailNames(event));
  });
}

/** A proof can be nullified only once, so each case gets a new one. */
function withFreshProof(golden: GoldenCase): GoldenCase {
  const proof = { ...(golden.request.proof as JsonObject), proof_id: freshId('proof') };
  return { ...golden, request: { proof } };
}

test('the audit event recognition_treaty_issued has the members of the vectors', () => {
  const event = 'recognition_treaty_issued';
  const [details] = audited(na, event);
  assert.deepEqual(Object.keys(details ?? {}).sort(), detailNames(event));
});

test('the audit event admin_auth_failed has the members of the vectors', async () => {
  const event = 'admin_auth_failed';
  const earlier = audited(na, event).length;
  await operate(na, POLICY, {}, { alter: (headers) => delete headers['X-Admin-Signature'] });
  const [details] = audited(na, event).slice(earlier);
  assert.deepEqual(Object.keys(details ?? {}).sort(), detailNames(event));
});
