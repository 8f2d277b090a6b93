import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { get, operate, outcome } from './support/requests.ts';
import {
  attest,
  importFeed,
  issued,
  parsed,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
} from './support/trust.ts';

test('a revocation at home is enforced abroad once its feed is imported', async () => {
  const clock = testClock();
  await using betaFolder = networkFolder('beta');
  await using alpha = await startTestAuthority({ clock });
  await using beta = await startTestAuthority({ clock, dataDir: betaFolder.path });

  const treaty = await operate(alpha, '/admin/recognition-treaties', {
    subject_sovereign_id: 'beta',
    subject_public_keys: [beta.audience],
    scope: { allowed_roles: ['role:client'] },
  });
  assert.equal(treaty.status, 200, treaty.text);
  const attestation = await operate(beta, '/admin/attestations', {
    subject_id: 'agent-7',
    roles: ['role:client'],
  });
  assert.equal(attestation.status, 200, attestation.text);
  const evidence = { attestation: attestation.body, treaty: treaty.body };
  const accepted = await post(alpha, '/attestations/verify-with-treaty', evidence);
  assert.deepEqual(accepted.body, {
    accepted: true,
    reason: 'accepted',
    treaty_id: treaty.body.treaty_id,
    attestation_id: attestation.body.attestation_id,
    issuer_sovereign_id: 'alpha',
    subject_sovereign_id: 'beta',
    trust_basis: 'own_key',
  });

  const id = attestation.body.attestation_id;
  const revoked = await operate(beta, `/admin/attestations/${id}/revoke`, { reason: 'left' });
  assert.deepEqual(revoked.body, { attestation_id: id, status: 'revoked' });
  const feed = (await get(beta, '/sovereign-revocation-feed')).body;
  assert.deepEqual([feed.sequence, feed.revoked_attestation_ids], [1, [id]]);
  const imported = await operate(alpha, '/admin/sovereign-revocation-feeds/import', { feed });
  assert.equal(imported.status, 200, imported.text);
  const refused = await post(alpha, '/attestations/verify-with-treaty', evidence);
  assert.equal(refused.body.reason, 'attestation_locally_revoked');

  const stale = await operate(alpha, '/admin/sovereign-revocation-feeds/import', { feed });
  assert.deepEqual([stale.status, stale.body.error.code], [409, 'stale_sequence']);

  const graph = await get(alpha, '/recognition-graph');
  const atlas = await get(alpha, '/atlas.json');
  assert.equal(atlas.body.graph_digest, sha256Hex(graph.text));
  const path = await get(alpha, '/connectome/trust-path?from=alpha&to=beta');
  assert.deepEqual([path.body.trusted, path.body.hop_count], [true, 1]);
});

test('recognition is one-way, and ends with its treaty', async () => {
  const clock = testClock();
  await using betaFolder = networkFolder('beta');
  await using alpha = await startTestAuthority({ clock });
  await using beta = await startTestAuthority({ clock, dataDir: betaFolder.path });
  const treaty = await issued(
    recognize(alpha, { subject_public_keys: [beta.audience], validity_hours: 1 }),
  );
  const ofBeta = await issued(attest(beta, { validity_hours: 100 }));
  const ofAlpha = await issued(attest(alpha, { validity_hours: 100 }));
  const verdict = async (at: TestAuthority, attestation: JsonObject, keys: readonly string[]) => {
    const evidence = { attestation, treaty, treaty_issuer_public_keys: keys };
    return (await post(at, '/attestations/verify-with-treaty', evidence)).body.reason;
  };
  const keys = [alpha.audience];
  assert.equal(await verdict(alpha, ofBeta, keys), 'accepted');
  assert.equal(await verdict(beta, ofBeta, keys), 'accepted', 'anyone may verify');
  assert.equal(await verdict(alpha, ofAlpha, keys), 'treaty_wrong_subject');
  assert.equal(await verdict(beta, ofBeta, [beta.audience]), 'treaty_invalid_signature');

  const path = async (at: TestAuthority) =>
    (await get(at, '/connectome/trust-path?from=alpha&to=beta')).body.reason;
  assert.equal(await path(alpha), 'active_treaty_path');
  assert.equal(await path(beta), 'no_active_treaty_path', 'beta holds no such treaty');

  clock.advance(HOUR + 5 * MINUTE);
  assert.equal(await verdict(alpha, ofBeta, keys), 'accepted', 'within the skew of five minutes');
  assert.equal(await path(alpha), 'no_active_treaty_path', 'to ourselves it has expired');
  clock.advance(1);
  assert.equal(await verdict(alpha, ofBeta, keys), 'treaty_outside_validity_window');
});

test('a renewed treaty continues recognition, and with it the feed of the subject', async () => {
  const clock = testClock();
  await using betaFolder = networkFolder('beta');
  await using alpha = await startTestAuthority({ clock });
  await using beta = await startTestAuthority({ clock, dataDir: betaFolder.path });
  const terms = { subject_public_keys: [beta.audience] };
  const old = await issued(recognize(alpha, terms));
  clock.advance(HOUR);
  const successor = await issued(recognize(alpha, terms));
  await revokeTreaty(alpha, old.treaty_id, { reason: `renewed_by:${successor.treaty_id}` });
  const attestation = await issued(attest(beta));
  const verdict = async (treaty: JsonObject) =>
    (await post(alpha, '/attestations/verify-with-treaty', { attestation, treaty })).body.reason;
  assert.equal(await verdict(old), 'treaty_locally_revoked');
  assert.equal(await verdict(successor), 'accepted');

  await revokeAttestation(beta, attestation.attestation_id);
  const feed = parsed(await get(beta, '/sovereign-revocation-feed'));
  assert.equal(outcome(await importFeed(alpha, feed)), '200', 'by the keys of the successor');
  assert.equal(await verdict(successor), 'attestation_locally_revoked');
  await revokeTreaty(alpha, successor.treaty_id);
  const next = await issued(attest(beta));
  await revokeAttestation(beta, next.attestation_id);
  const later = parsed(await get(beta, '/sovereign-revocation-feed'));
  assert.equal(later.sequence, 2);
  assert.equal(outcome(await importFeed(alpha, later)), '400 missing_issuer_public_keys');
  const { summary, revocation_blast_radius } = (await get(alpha, '/connectome.json')).body;
  assert.deepEqual(summary, {
    sovereign_count: 2,
    recognition_edge_count: 2,
    active_edge_count: 0,
    revoked_edge_count: 2,
    revoked_trust_material_count: 3,
    imported_revocation_count: 1,
  });
  assert.deepEqual(revocation_blast_radius[0].affected_accepting_sovereigns, []);
});
