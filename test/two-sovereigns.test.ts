/** Two sovereigns that recognize each other, also when one replaces its authority key [core-4-13-1] [authority-keys-9]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { createNetworkTrust } from '../src/client/followed-keys.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND } from './support/clock.ts';
import { get, newKey, operate, outcome } from './support/requests.ts';
import { activate, activated, DAY, keyIn, stage, step, succession } from './support/successions.ts';
import {
  attest,
  importFeed,
  issued,
  parsed,
  post,
  recognize,
  revokeAttestation,
  revokeTreaty,
  signedBy,
  sovereignPair,
} from './support/trust.ts';

test('a revocation at home is enforced abroad once its feed is imported', async () => {
  await using pair = await sovereignPair();
  const { alpha, beta } = pair;

  const scope = { allowed_roles: ['role:client'] };
  const treaty = await issued(recognize(alpha, { subject_public_keys: [beta.audience], scope }));
  const attestation = await issued(attest(beta));
  const evidence = { attestation, treaty };
  const accepted = await post(alpha, '/attestations/verify-with-treaty', evidence);
  assert.deepEqual(accepted.body, {
    accepted: true,
    reason: 'accepted',
    treaty_id: treaty.treaty_id,
    attestation_id: attestation.attestation_id,
    issuer_sovereign_id: 'alpha',
    subject_sovereign_id: 'beta',
    trust_basis: 'own_key',
  });

  const { attestation_id: id } = attestation;
  const revoked = await revokeAttestation(beta, id, { reason: 'left' });
  assert.deepEqual(revoked.body, { attestation_id: id, status: 'revoked' });
  const feed = (await get(beta, '/sovereign-revocation-feed')).body;
  assert.deepEqual([feed.sequence, feed.revoked_attestation_ids], [1, [id]]);
  assert.equal(outcome(await importFeed(alpha, feed)), '200');
  const refused = await post(alpha, '/attestations/verify-with-treaty', evidence);
  assert.equal(refused.body.reason, 'attestation_locally_revoked');

  assert.equal(outcome(await importFeed(alpha, feed)), '409 stale_sequence');

  const graph = await get(alpha, '/recognition-graph');
  const atlas = await get(alpha, '/atlas.json');
  assert.equal(atlas.body.graph_digest, sha256Hex(graph.text));
  const path = await get(alpha, '/connectome/trust-path?from=alpha&to=beta');
  assert.deepEqual([path.body.trusted, path.body.hop_count], [true, 1]);
});

test('recognition is one-way, and ends with its treaty', async () => {
  await using pair = await sovereignPair();
  const { alpha, beta, clock } = pair;
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
  await using pair = await sovereignPair();
  const { alpha, beta, clock } = pair;
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

/** The current form of a treaty that a sovereign has issued, signed by its current keys. */
async function servedTreaty(na: TestAuthority, { treaty_id }: JsonObject): Promise<JsonObject> {
  return parsed(await get(na, `/recognition-treaties/${treaty_id}`)).treaty as JsonObject;
}

async function servedAttestation(
  na: TestAuthority,
  { attestation_id }: JsonObject,
): Promise<JsonObject> {
  return parsed(await get(na, `/attestations/${attestation_id}`)).attestation as JsonObject;
}

/** Lets a treaty follow the chain that the other sovereign currently serves. */
async function follow(na: TestAuthority, { treaty_id }: JsonObject, other: TestAuthority) {
  const authority_keys = parsed(await get(other, '/authority-keys'));
  const { root_public_key } = (await get(other, '/sovereign.json')).body;
  const path = `/admin/recognition-treaties/${treaty_id}/follow`;
  return operate(na, path, { authority_keys, root_public_key });
}

async function verdict(na: TestAuthority, attestation: JsonObject, treaty: JsonObject) {
  return (await post(na, '/attestations/verify-with-treaty', { attestation, treaty })).body.reason;
}

for (const isRolledBack of [false, true]) {
  test(`a planned change is followed${isRolledBack ? ', and rolled back' : ''}, and attestations verify both ways at each instant`, async () => {
    await using pair = await sovereignPair();
    const { alpha, beta, clock } = pair;
    const terms = { validity_hours: 2000 };
    let ofAlpha = await issued(
      recognize(alpha, { ...terms, subject_public_keys: [beta.audience] }),
    );
    const ofBeta = await issued(
      recognize(beta, {
        ...terms,
        subject_sovereign_id: 'alpha',
        subject_public_keys: [alpha.audience],
      }),
    );
    const early = await issued(attest(beta, terms));
    const ofAlphas = await issued(attest(alpha, terms));
    let operated = beta;
    let feeds = 0;

    /** Checks what was issued before the change, what is issued now, what the other side issued, and the feed. */
    async function assertTrusted(instant: string, copy: JsonObject): Promise<void> {
      const treaty = await servedTreaty(alpha, ofAlpha);
      const now = await issued(attest(operated, terms));
      assert.equal(await verdict(alpha, copy, treaty), 'accepted', `${instant}: of before`);
      assert.equal(await verdict(alpha, now, treaty), 'accepted', `${instant}: of now`);
      const back = await servedTreaty(beta, ofBeta);
      assert.equal(
        await verdict(beta, ofAlphas, back),
        'accepted',
        `${instant}: of the other side`,
      );
      assert.equal(outcome(await revokeAttestation(operated, now.attestation_id)), '200');
      const feed = parsed(await get(beta, '/sovereign-revocation-feed'));
      assert.ok(Number(feed.sequence) > feeds, instant);
      feeds = Number(feed.sequence);
      assert.equal(outcome(await importFeed(alpha, feed)), '200', instant);
      assert.equal(outcome(await importFeed(alpha, feed)), '409 stale_sequence', instant);
      assert.equal(await verdict(alpha, now, treaty), 'attestation_locally_revoked', instant);
    }

    await assertTrusted('before', early);
    const signed = await succession(beta, { activatesIn: HOUR, overlap: DAY });
    const { to_key: next, activates_at } = signed.statement;
    assert.equal(outcome(await stage(beta, signed)), '200');
    const tooEarly = await follow(alpha, ofAlpha, beta);
    assert.equal(outcome(tooEarly), '409 nothing_to_follow');
    assert.equal(tooEarly.body.error.details.activates_at, activates_at);
    await assertTrusted('staged', early);

    clock.advance(HOUR);
    await activated(beta);
    await assertTrusted('activated, not followed', early);

    ofAlpha = await issued(follow(alpha, ofAlpha, beta));
    assert.deepEqual(ofAlpha.subject_public_keys, [next, beta.audience]);
    assert.equal(outcome(await follow(alpha, ofAlpha, beta)), '409 nothing_to_follow');
    await assertTrusted('followed', early);

    if (isRolledBack) {
      assert.equal(outcome(await step(beta, 'roll-back')), '200');
      await assertTrusted('rolled back, not followed', early);
      ofAlpha = await issued(follow(alpha, ofAlpha, beta));
      assert.deepEqual(ofAlpha.subject_public_keys, [beta.audience, next]);
      await assertTrusted('rolled back, followed', early);
    }

    clock.advance(DAY);
    operated = { ...beta, audience: isRolledBack ? beta.audience : next };
    assert.equal(outcome(await step(operated, 'finish')), '409 no_overlap', 'it has ended');
    await alpha.renewLists();
    const { lifecycle } = (await get(alpha, `/recognition-treaties/${ofAlpha.treaty_id}`)).body;
    ofAlpha = { treaty_id: lifecycle.replacement_treaty_id };
    const last = await servedTreaty(alpha, ofAlpha);
    assert.deepEqual(last.subject_public_keys, [operated.audience]);
    const ofEarly = isRolledBack ? 'accepted' : 'attestation_invalid_signature';
    assert.equal(await verdict(alpha, early, last), ofEarly);
    await assertTrusted('finished', await servedAttestation(beta, early));
  });
}

test('a change that is due but waits for its key takes effect nowhere, so canceling it forks nothing', async () => {
  await using pair = await sovereignPair();
  const { alpha, beta, clock } = pair;
  const treaty = await issued(recognize(alpha, { subject_public_keys: [beta.audience] }));
  const pin = { networkName: 'beta', authorityKey: beta.audience, now: clock.now };
  const client = createNetworkTrust(pin);
  const followed = async () => {
    const genesis = (await get(beta, '/genesis')).body;
    return client.follow((await get(beta, '/authority-keys')).body, genesis);
  };

  const lost = await succession(beta, { to: newKey(), activatesIn: HOUR });
  assert.equal(outcome(await stage(beta, lost)), '200');
  clock.advance(2 * HOUR);
  await beta.keepKeys();
  const waiting = await followed();
  assert.deepEqual([waiting.refusal, waiting.changes], [null, []]);
  assert.deepEqual(waiting.next?.to_key, lost.statement.to_key);
  assert.equal(client.currentKey(), beta.audience);
  const early = await follow(alpha, treaty, beta);
  assert.equal(outcome(early), '409 nothing_to_follow');
  assert.equal(early.body.error.details.activates_at, lost.statement.activates_at);

  assert.equal(outcome(await step(beta, 'cancel')), '200');
  const kept = await succession(beta);
  assert.equal(outcome(await stage(beta, kept)), '200');
  await activate(beta);
  clock.advance(HOUR);
  assert.equal((await followed()).refusal, null);
  assert.equal(client.currentKey(), kept.statement.to_key);
  const successor = await issued(follow(alpha, treaty, beta));
  assert.deepEqual(successor.subject_public_keys, [kept.statement.to_key, beta.audience]);
});

test('after a theft, what the thief signs is refused as soon as the treaty has followed', async () => {
  await using pair = await sovereignPair();
  const { alpha, beta, clock } = pair;
  const treaty = await issued(recognize(alpha, { subject_public_keys: [beta.audience] }));
  const genuine = await issued(attest(beta));
  const stolen: Signer = keyIn(beta.dataDir, 'na.key');
  clock.advance(SECOND);
  const forged = signedBy({ ...genuine, attestation_id: 'forged', roles: ['role:admin'] }, stolen);
  assert.equal(await verdict(alpha, forged, treaty), 'accepted', 'nobody knows yet');

  const signed = await succession(beta, { kind: 'compromise' });
  assert.equal(outcome(await stage(beta, signed)), '200');
  await activate(beta);
  const authority_keys = parsed(await get(beta, '/authority-keys'));
  const path = `/admin/recognition-treaties/${treaty.treaty_id}/follow`;
  const unproven = await operate(alpha, path, { authority_keys });
  assert.equal(unproven.body.error.details.cause, 'root_key_needed');

  const successor = await issued(follow(alpha, treaty, beta));
  assert.deepEqual(successor.subject_public_keys, [signed.statement.to_key]);
  assert.equal(await verdict(alpha, forged, treaty), 'treaty_locally_revoked');
  assert.equal(await verdict(alpha, forged, successor), 'attestation_invalid_signature');
  assert.equal(await verdict(alpha, genuine, successor), 'attestation_invalid_signature');
  const again = await servedAttestation(beta, genuine);
  assert.equal(again.attestation_id, genuine.attestation_id);
  assert.equal(await verdict(alpha, again, successor), 'accepted', 'signed again by the new key');

  const feed = parsed(await get(beta, '/sovereign-revocation-feed'));
  const byThief = signedBy({ ...feed, sequence: 99 }, stolen);
  assert.equal(outcome(await importFeed(alpha, byThief)), '400 invalid_signature');
  assert.equal(outcome(await importFeed(alpha, feed)), '200');
});
