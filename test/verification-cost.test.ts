/** What a stranger can make a public verification cost, and that honest records of any size still verify. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/crypto/ed25519.ts';
import { readMembershipAttestation } from '../src/records/membership-attestation.ts';
import { readRecognitionPolicy } from '../src/records/recognition-policy.ts';
import { readRecognitionTreaty } from '../src/records/recognition-treaty.ts';
import {
  verifyAttestation,
  verifyAttestationWithTreaty,
} from '../src/records/recognition-verification.ts';
import { cpuOf } from './support/cpu.ts';
import { post, sovereign, startUnlimited } from './support/trust.ts';

const NOW = Date.UTC(2026, 0, 15, 12);

/** Far above what the checks take on a busy machine, and far below what the products took. */
const CPU_LIMIT = 1500;

/** So many that comparing them pair by pair takes many seconds. */
const ROLES = Array.from({ length: 100_000 }, (_, index) => `r${index}`);

test('A1: 100,000 roles against as many allowed ones, in the opposite order, take no time', async () => {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const allowed_roles = [...ROLES].reverse();
  const attestation = readMembershipAttestation(beta.attestation(NOW, { roles: ROLES }));
  const scope = { allowed_roles, accepted_statuses: ['active'], claims: {} };
  const treaty = readRecognitionTreaty(gamma.treaty(NOW, beta, { scope }));
  assert.ok(attestation !== null && treaty !== null);
  const issuer = { sovereign_id: 'beta', public_keys: [beta.key.publicKey], allowed_roles };
  const policy = readRecognitionPolicy({
    local_sovereign_id: 'alpha',
    recognized_issuers: [issuer],
  });
  assert.ok(policy !== null);
  const known = {
    treatyIssuerKeys: [gamma.key.publicKey],
    treatyRevoked: false,
    attestationRevoked: false,
  };
  let reasons: string[] = [];
  const cpu = await cpuOf(() => {
    reasons = [
      verifyAttestation(attestation, policy, NOW, verifySignature),
      verifyAttestationWithTreaty(attestation, treaty, known, NOW, verifySignature),
    ];
  });
  assert.deepEqual(reasons, ['accepted', 'accepted']);
  assert.ok(cpu < CPU_LIMIT, `${cpu} ms of CPU`);
});

test('A1: one role too many among thousands is still found', async () => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const roles = ROLES.slice(0, 10_000);
  const attestation = beta.attestation(now, { roles: [...roles, 'another'] });
  const issuer = {
    sovereign_id: 'beta',
    public_keys: [beta.key.publicKey],
    allowed_roles: roles,
  };
  const scope = { allowed_roles: roles, accepted_statuses: ['active'], claims: {} };
  const byPolicy = await post(na, '/attestations/verify', {
    attestation,
    recognition_policy: { local_sovereign_id: 'alpha', recognized_issuers: [issuer] },
  });
  const byTreaty = await post(na, '/attestations/verify-with-treaty', {
    attestation,
    treaty: gamma.treaty(now, beta, { scope }),
    treaty_issuer_public_keys: [gamma.key.publicKey],
  });
  assert.equal(byPolicy.body.reason, 'role_not_allowed');
  assert.equal(byTreaty.body.reason, 'attestation_role_not_allowed');
});
