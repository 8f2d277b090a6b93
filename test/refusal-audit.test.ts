/** The audit entries of refused unauthenticated requests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRefusalAudit } from '../src/authority/engine/refusal-audit.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  get,
  newKey,
  outcome,
  type Received,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';

const DEFAULT = { MESH_RATE_LIMIT_AUTH_FAILURES: '10/60' };
const BOGUS = {
  'X-Admin-Key-Id': 'nobody',
  'X-Admin-Timestamp': 'now',
  'X-Admin-Nonce': 'n',
  'X-Admin-Signature': 's',
};

/** Sends the request this many times, some of them concurrently; all answers must be alike. */
async function flood(na: TestAuthority, request: SignedRequest, times: number): Promise<string> {
  const outcomes = new Set<string>();
  const silent = { ...na, settle: () => Promise.resolve() };
  for (let sent = 0; sent < times; sent += 50) {
    const answers: Received[] = await Promise.all(
      Array.from({ length: 50 }, () => sendSigned(silent, request)),
    );
    for (const answer of answers) outcomes.add(outcome(answer));
  }
  await na.settle();
  return [...outcomes].join();
}

function bogusRoster(): SignedRequest {
  return { method: 'GET', path: '/nodes', init: { headers: BOGUS } };
}

function unknownNode(na: TestAuthority): SignedRequest {
  return signedByNode(na, '/heartbeat', newKey(), { cert_id: 'unknown' });
}

async function entriesOf(
  na: TestAuthority,
): Promise<{ type: string; details: Record<string, unknown> }[]> {
  return (await auditEntriesOf(na)).map(({ event_type, details }) => ({
    type: event_type,
    details: details as Record<string, unknown>,
  }));
}

test('700 bogus requests leave a few entries, and a summary that counts the rest', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  assert.equal(await flood(na, bogusRoster(), 400), '401 admin_auth_failed');
  assert.equal(await flood(na, unknownNode(na), 300), '403 certificate_not_found');
  na.clock.advance(MINUTE);
  await na.flush();
  const entries = await entriesOf(na);
  assert.ok(entries.length < 50, `${entries.length} entries`);
  const about = { remote_addr: '127.0.0.1' };
  assert.deepEqual(
    entries.filter(({ type }) => type === 'refusals_summarized').map(({ details }) => details),
    [
      { ...about, event: 'admin_auth_failed', reason: 'unknown_key', count: 390 },
      { ...about, event: 'heartbeat_rejected', reason: 'certificate_not_found', count: 300 },
    ],
  );
  assert.equal(entries.filter(({ type }) => type === 'admin_auth_failed').length, 10);
  const audited = na.logLines.filter((line) => line.includes('mesh.audit'));
  assert.equal(audited.length, entries.length);
  const metrics = (await get(na, '/metrics')).text;
  const counter = 'mesh_na_auth_failed_total{kind="operator",reason="unknown_key"} 400';
  assert.ok(metrics.includes(counter));
});

test('the counts of the last minute are summarized at the stop', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  await flood(na, bogusRoster(), 50);
  await na.flush();
  assert.equal((await entriesOf(na)).length, 10);
  await na.stop();
  const { type, details } = (await entriesOf(na)).at(-1) ?? {};
  assert.deepEqual([type, details?.count], ['refusals_summarized', 40]);
});

test('after a minute the first refusals of a source have entries of their own again', async () => {
  await using na = await startTestAuthority({ environment: DEFAULT });
  await flood(na, bogusRoster(), 50);
  na.clock.advance(61 * SECOND);
  await na.flush();
  await flood(na, bogusRoster(), 50);
  const singles = (await entriesOf(na)).filter(({ type }) => type === 'admin_auth_failed');
  assert.equal(singles.length, 20);
});

test('refusals from any number of sources cannot make the log grow either', () => {
  const refusals = createRefusalAudit({ count: 10, windowMs: MINUTE }, () => 0);
  let singles = 0;
  for (let i = 0; i < 50_000; i += 1) {
    const details = { reason: 'unknown_key', remote_addr: `2001:db8::${(i % 5000).toString(16)}` };
    if (refusals.isSingle('admin_auth_failed', details)) singles += 1;
  }
  assert.ok(singles <= 1010, `${singles} entries`);
  const summaries = refusals.takeSummaries(true);
  assert.ok(summaries.length <= 101, `${summaries.length} summaries`);
  const total = summaries.reduce((sum, { count }) => sum + count, singles);
  assert.equal(total, 50_000);
});

test('AUTH_FAILURES=off audits every refusal', async () => {
  await using na = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_AUTH_FAILURES: 'off' },
  });
  await flood(na, bogusRoster(), 50);
  assert.equal((await entriesOf(na)).length, 50);
});
