/** The built-in trust cycle [service-audit-events], [core-6-5]: what it checks, reports and stores. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { walkTrustCycle } from '../src/authority/recognition/trust-cycle.ts';
import { SHA256, sha256Hex } from '../src/base/crypto/digest.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { Issuer } from '../src/protocol/records/issuer.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { get, newKey, operate, sendRaw } from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';
import { audited } from './support/trust.ts';

const STEPS = [
  'attestation_issued',
  'treaty_issued',
  'attestation_accepted',
  'feed_issued',
  'feed_imported',
  'feed_replay_refused',
  'revoked_attestation_refused',
  'tampered_attestation_refused',
];
const EVENT = 'trust_cycle_completed';
const CYCLES_ON = { environment: { MESH_TRUST_CYCLE_HOURS: '6' } };

async function summaryOf(na: TestAuthority) {
  return (await get(na, '/dashboard.json')).body.trust_cycle_summary;
}

function display(instant: number): string {
  const text = formatInstant(instant);
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
}

suite('what the dashboard shows of it', () => {
  test('nothing is observed while cycles are off and none was run; then how old the last one is', async () => {
    await using na = await startTestAuthority();
    assert.deepEqual(await summaryOf(na), {
      status: 'not_observed',
      freshness: 'none',
      completed_at: null,
      completed_at_display: '',
      age_hours: null,
    });
    assert.deepEqual(audited(na, EVENT), []);
    await na.runTrustCycle();
    const start = na.clock.now();
    for (const [hours, freshness] of [
      [29, 'fresh'],
      [30, 'fresh'],
      [31, 'watch'],
      [48, 'watch'],
      [49, 'stale'],
    ] as const) {
      na.clock.advance(start + (hours + 1) * HOUR - 1 - na.clock.now());
      await na.renewLists();
      const { status, age_hours, freshness: found } = await summaryOf(na);
      assert.deepEqual([status, age_hours, found], ['verified', hours, freshness]);
    }
    const stale = (await get(na, '/dashboard.json')).body;
    assert.deepEqual(stale.warnings, ['The last trust cycle is more than two days old.']);
    await na.runTrustCycle();
    const renewed = (await get(na, '/dashboard.json')).body;
    assert.deepEqual(renewed.warnings, []);
    assert.equal(renewed.trust_cycle_summary.freshness, 'fresh');
    assert.notEqual(renewed.trust_cycle_summary.digest, undefined);
  });

  test('one has run when the authority has started, and is not among the recent changes', async () => {
    await using na = await startTestAuthority(CYCLES_ON);
    const [event] = audited(na, EVENT);
    assert.deepEqual(await summaryOf(na), {
      status: 'verified',
      freshness: 'fresh',
      completed_at: formatInstant(na.clock.now()),
      completed_at_display: display(na.clock.now()),
      age_hours: 0,
      digest: event?.digest,
    });
    assert.equal(audited(na, EVENT).length, 1);
    assert.deepEqual((await get(na, '/dashboard.json')).body.recent_changes, []);
  });

  test('the newest one is known again after a restart', async () => {
    await using first = await startTestAuthority();
    await first.runTrustCycle();
    const before = await summaryOf(first);
    await using second = await first.restart();
    assert.deepEqual(await summaryOf(second), before);
  });
});

suite('what it leaves behind', () => {
  test('one audit event without secrets, whose digest is that of its other members, and nothing else', async () => {
    await using na = await startTestAuthority();
    for (const path of ['/trust-cycle', '/admin/trust-cycle', '/dashboard.json']) {
      await sendRaw(na, 'POST', path);
    }
    assert.deepEqual(audited(na, EVENT), [], 'it cannot be requested over HTTP');
    const paths = [
      '/recognition-graph',
      '/recognition-treaties',
      '/attestations',
      '/sovereign-revocation-feed',
      '/crl',
      '/connectome.json',
    ];
    const read = () => Promise.all(paths.map(async (path) => (await get(na, path)).text));
    const before = await read();
    await na.runTrustCycle();
    assert.deepEqual(await read(), before);
    const entries = await auditEntriesOf(na);
    assert.deepEqual(
      entries.map(({ event_type }) => event_type),
      [EVENT],
    );
    const { digest, ...others } = entries[0]?.details ?? {};
    const { duration_ms: duration, ...outcomes } = others;
    assert.deepEqual(outcomes, { result: 'passed', failed_step: null, steps: STEPS });
    assert.ok(Number.isInteger(duration) && Number(duration) >= 0);
    assert.equal(digest, sha256Hex(canonicalJson(others)));
    const text = JSON.stringify(audited(na, EVENT));
    assert.doesNotMatch(text, /sig|key|token|[A-Za-z0-9+/]{40,}={1,2}/);
  });

  test('operators and nodes are served while cycles run', async () => {
    await using na = await startTestAuthority();
    const [, invited] = await Promise.all([
      na.runTrustCycle(),
      operate(na, '/admin/invite', {}),
      na.runTrustCycle(),
    ]);
    assert.equal(invited.status, 200);
    assert.equal(audited(na, EVENT).length, 2);
  });
});

suite('what it finds', () => {
  const now = systemRuntime.now();

  function issuer(sovereignId: string, signer: Signer = newKey()): Issuer {
    return { sovereignId, keyId: 'key', signer, sha256: SHA256, now, uuid: systemRuntime.uuid };
  }

  /** Claims to have a key, but signs with another one. */
  function impostor(): Signer {
    return { publicKey: newKey().publicKey, sign: newKey().sign };
  }

  test('every step passes with keys that sign', () => {
    const course = walkTrustCycle(issuer('alpha'), issuer('beta'));
    assert.deepEqual(course, { passed: STEPS, failedStep: null });
  });

  for (const [name, local, peer, failedStep] of [
    ['a key of ours that does not sign', impostor(), newKey(), 'attestation_accepted'],
    ['a key of the peer that does not sign', newKey(), impostor(), 'attestation_accepted'],
    [
      'a signer that throws',
      { publicKey: newKey().publicKey, sign: () => assert.fail('no key') },
      newKey(),
      'treaty_issued',
    ],
  ] as const) {
    test(`${name} fails the step ${failedStep}, and nothing after it is tried`, () => {
      const course = walkTrustCycle(issuer('alpha', local), issuer('beta', peer));
      const passed = STEPS.slice(0, STEPS.indexOf(failedStep));
      assert.deepEqual(course, { passed, failedStep });
    });
  }

  test('a feed that its issuer did not sign is not imported', () => {
    const key = newKey();
    let signed = 0;
    const forgetful: Signer = {
      publicKey: key.publicKey,
      sign(text) {
        signed += 1;
        return signed === 1 ? key.sign(text) : newKey().sign(text);
      },
    };
    const { failedStep } = walkTrustCycle(issuer('alpha'), issuer('beta', forgetful));
    assert.equal(failedStep, 'feed_imported');
  });
});
