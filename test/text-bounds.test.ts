/** Length limits for texts from callers, in records and in the audit log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyAuditChain } from '../src/authority/audit/audit.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { GENESIS_HASH } from '../src/store/store.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import {
  auditEvents,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  send,
  type TestNode,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import { signedBy } from './support/trust.ts';

const shared = sharedAuthority();

function register(na: TestAuthority, { key }: TestNode, changes: JsonObject) {
  na.clock.advance(1);
  const descriptor = {
    agent_id: 'agent-1',
    node_public_key: key.publicKey,
    network_name: 'alpha',
    capabilities: ['llm:chat'],
    endpoint: { host: '127.0.0.1', port: 7448, scheme: 'ws' },
    registered_at: formatInstant(na.clock.now()),
    expires_at: formatInstant(na.clock.now() + HOUR),
    metadata: {},
    ...changes,
  };
  return send(na, 'POST', '/agents', { body: jsonText(signedBy(descriptor, key)) });
}

function lastDetails(na: TestAuthority, type: string): Record<string, unknown> {
  return auditEvents(na).findLast((event) => event.type === type)?.details ?? {};
}

test('texts of a descriptor have at most 1,024 characters, and the whole of it 64 KiB', async () => {
  const na = await shared();
  const node = await joinedNode(na);
  const longest = 'a'.repeat(1024);
  const endpoint = { host: longest, port: 1, scheme: longest };
  const accepted = { agent_id: longest, capabilities: [longest], endpoint };
  assert.equal(outcome(await register(na, node, accepted)), '200');
  assert.equal(lastDetails(na, 'agent_registered').agent_id, 'a'.repeat(256));
  for (const changes of [
    { agent_id: `${longest}a` },
    { capabilities: [`${longest}a`] },
    { endpoint: { ...endpoint, host: `${longest}a` } },
    { endpoint: { ...endpoint, scheme: `${longest}a` } },
    // 40 KB as sent, and six times as many characters in canonical form.
    { metadata: { note: 'é'.repeat(20_000) } },
  ]) {
    assert.equal(outcome(await register(na, node, changes)), '400 invalid_agent_descriptor');
  }
});

test('texts from strangers are truncated in the audit log', async () => {
  const na = await shared();
  const long = 'x'.repeat(10_000);
  const answer = await nodeRequest(na, '/heartbeat', newKey(), { cert_id: long });
  assert.equal(outcome(answer), '403 certificate_not_found');
  assert.equal(lastDetails(na, 'heartbeat_rejected').cert_id, 'x'.repeat(256));
});

test('so are texts from operators, including lists, and the chain still verifies', async () => {
  const na = await shared();
  const roles = Array.from({ length: 1000 }, (_, n) => `role:${n}`);
  assert.equal(outcome(await operate(na, '/admin/invite', { roles })), '200');
  assert.deepEqual(lastDetails(na, 'invite_created').roles, roles.slice(0, 64));
  const subject = `${'y'.repeat(255)}\u{1F511}${'z'.repeat(100)}`;
  const terms = { subject_id: subject, roles: ['role:client'] };
  const issued = await operate(na, '/admin/attestations', terms);
  assert.equal(issued.body.subject_id, subject);
  const { subject_id } = lastDetails(na, 'membership_attestation_issued');
  assert.equal(subject_id, 'y'.repeat(255));
  const verdict = await verifyAuditChain(await auditEntriesOf(na), GENESIS_HASH);
  assert.equal(verdict.valid, true);
});

test('free texts of operators have at most 1,024 characters', async () => {
  const na = await shared();
  const reason = 'r'.repeat(1025);
  const path = '/admin/operator-keys/ops-standard/revoke';
  const refused = await operate(na, path, { reason });
  assert.equal(outcome(refused), '422 request_validation_failed');
  const terms = { roles: ['role:client'], subject_id: reason };
  const unnamed = await operate(na, '/admin/attestations', terms);
  assert.equal(outcome(unnamed), '400 missing_attestation_subject');
  assert.equal(outcome(await operate(na, path, { reason: reason.slice(1) })), '200');
});
