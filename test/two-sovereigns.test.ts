import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/crypto/digest.ts';
import { startTestAuthority } from './support/authority.ts';
import { testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { get, operate, send } from './support/requests.ts';

const post = (na: { readonly url: string }, path: string, body: object) =>
  send(na, 'POST', path, { body: JSON.stringify(body) });

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
