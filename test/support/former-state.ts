import assert from 'node:assert/strict';
import type { TestAuthority } from './authority.ts';
import { get, joinedNode, operate, outcome } from './requests.ts';

/** Whether the state is that of the fixtures of former schemas, and can be written. */
export async function assertServedAsItWas(na: TestAuthority): Promise<void> {
  const listed = await operate(na, '/admin/certificates', {}, { method: 'GET' });
  const { certificates } = listed.body as { certificates: { status: string }[] };
  const statuses = certificates.map(({ status }) => status).sort();
  assert.deepEqual(statuses, ['active', 'renewed', 'revoked']);
  assert.equal((await get(na, '/crl')).body.revoked_certificates.length, 1);
  const feed = (await get(na, '/sovereign-revocation-feed')).body;
  assert.equal(feed.revoked_attestation_ids.length, 1);
  assert.equal((await get(na, '/policy')).body.policy_id, 'p1');
  assert.match((await joinedNode(na)).certId, /^[0-9a-f-]{36}$/);
  assert.equal(outcome(await get(na, '/readyz')), '200');
}
