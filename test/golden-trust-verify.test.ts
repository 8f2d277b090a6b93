/** Every public verification of the golden vectors, over HTTP [trust-6], [trust-7]. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  assertAnswered,
  casesOf,
  detailNames,
  EVENTS,
  eventDetailNames,
  GOLDEN,
  startGolden,
} from './support/golden-trust.ts';

const na = await startGolden();
after(() => na[Symbol.asyncDispose]());

test('the authority of the vectors verifies with the key of the vectors', () => {
  assert.equal(na.audience, GOLDEN.keys.na?.public_base64);
});

test('the vectors contain cases of ten endpoints', () => {
  assert.equal(Object.keys(GOLDEN.verify).length, 10);
  assert.ok(casesOf('verify').length >= 181);
});

for (const golden of casesOf('verify')) {
  test(`${golden.endpoint} answers ${golden.name} with ${golden.status}`, () =>
    assertAnswered(na, golden));
}

// Audit events

for (const endpoint of Object.keys(GOLDEN.verify)) {
  const event = EVENTS[endpoint];
  const golden = casesOf('verify', endpoint).find(({ status }) => status === 200);
  if (event === undefined || golden === undefined) continue;

  test(`the audit event ${event} has the members of the vectors`, async () => {
    assert.deepEqual(await eventDetailNames(na, golden), detailNames(event));
  });
}
