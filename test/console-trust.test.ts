/**
 * The pages of `mesh-na console` about policy and trust: what they show, and what their changes add to the audit log.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { changeIn, startTestConsole } from './support/console.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { auditEvents, get, newKey, operate } from './support/requests.ts';
import { freshId, issued, recognize, sovereign } from './support/trust.ts';

const authority = sharedAuthority({ environment: { MESH_FEDERATION_PRIVATE: '1' } });

suite('policy', () => {
  test('is published, compared with the previous version, and rolled back', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    const before = (await get(na, '/policy')).body;
    const form = {
      policy_id: 'spring',
      min_client_version: '0.2.0',
      'routing.max_hops': '4',
      allowed_ports: '443\r\n8080',
    };
    const published = await console.change('publish-policy', {
      ...form,
      allowed_services: 'llm',
      'routing.preferred_transports': 'quic',
    });
    assert.ok(published.proposed.includes(before.policy_id));
    assert.match(published.proposed, /<li>Ports: 443, 8080 in place of 443, 8443\.<\/li>/);
    assert.match(published.done, /policy_published/);
    assert.deepEqual((await get(na, '/policy')).body.allowed_ports, [443, 8080]);

    const page = await console.page(`policy?before=${before.policy_id}&after=spring`);
    assert.match(page.text, /5 settings differ/);
    assert.match(page.text, /<table id="differences">.*<td[^>]*>443, 8080<\/td>/s);
    const same = await console.page('policy?before=spring&after=spring');
    assert.match(same.text, /They say the same/);
    assert.match(page.text, /<textarea[^>]*name="allowed_ports"[^>]*>443\n8080</);

    await console.change('roll-back-policy', { policy_id: before.policy_id });
    assert.equal((await get(na, '/policy')).body.policy_id, before.policy_id);
    assert.equal(auditEvents(na).at(-1)?.type, 'policy_rolled_back');
    for (const [fields, problem] of [
      [{ ...form, allowed_ports: '0' }, /0 is not a port/],
      [{ ...form, 'routing.max_hops': 'many' }, /The number of hops must be a whole number/],
    ] as const) {
      const answer = await console.submit('do?action=publish-policy', fields);
      assert.equal(answer.status, 422);
      assert.match(answer.text, problem);
    }
  });
});

suite('treaties, attestations and feeds', () => {
  test('a sovereign is recognized, found, and no longer recognized', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    assert.match((await console.page('treaties?subject=beta')).text, /No treaty matches/);
    const keys = newKey().publicKey;
    const issued = await console.change('issue-treaty', {
      subject_sovereign_id: 'beta',
      subject_public_keys: keys,
      'scope.allowed_roles': 'role:client',
      validity_hours: '24',
    });
    assert.match(issued.proposed, /mesh-na treaty issue beta --key \S+ --role role:client/);
    assert.match(issued.done, /recognition_treaty_issued/);
    const { body } = await get(na, '/recognition-treaties?subject_sovereign_id=beta');
    const { treaty_id } = body.recognition_treaties[0].treaty;
    const page = await console.page('treaties?subject=beta&status=active');
    assert.ok(page.text.includes(treaty_id));
    assert.match(page.text, /Follow….*Revoke…/s);

    const follow = await console.submit('do?action=follow-treaty', {
      treaty_id,
      authority_keys: 'none',
    });
    assert.equal(follow.status, 422);
    assert.match(follow.text, /Paste the JSON text of its authority keys/);

    const cut = await console.submit('do?action=revoke-treaty', { treaty_id, reason: 'over' });
    assert.match(cut.text, /Attestations of beta are no longer accepted/);

    na.clock.advance(24 * HOUR);
    const expired = await console.page('treaties?subject=beta');
    assert.doesNotMatch(expired.text, /Follow…/, 'an expired treaty cannot follow');
    assert.match(expired.text, /Revoke…/, 'the posture counts it until then');
    assert.match(expired.text, /renew-treaty.*name="validity_hours" value="24">.*Renew….*Revoke…/s);

    const revoked = await console.change('revoke-treaty', { treaty_id, reason: 'over' });
    assert.match(revoked.proposed, /It has expired[^<]*no longer counts as expired/);
    assert.doesNotMatch(revoked.proposed, /Attestations of beta/);
    assert.match(revoked.done, /recognition_treaty_revoked/);
    assert.match((await console.page('treaties?subject=beta&status=revoked')).text, /over/);
    const incomplete = await console.submit('do?action=issue-treaty', {
      subject_sovereign_id: 'gamma',
    });
    assert.match(incomplete.text, /at least one of its keys/);
  });

  test('a membership is attested and revoked', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    const issued = await console.change('issue-attestation', {
      subject_id: 'member-1',
      roles: 'role:client',
    });
    assert.match(issued.done, /membership_attestation_issued/);
    const { body } = await get(na, '/attestations?subject_id=member-1');
    const { attestation_id } = body.attestations[0].attestation;
    assert.ok((await console.page('attestations?subject=member-1')).text.includes(attestation_id));
    const revoked = await console.change('revoke-attestation', { attestation_id, reason: '' });
    assert.match(revoked.done, /membership_attestation_revoked/);

    await console.change('issue-attestation', {
      subject_id: 'member-2',
      roles: 'role:client',
      validity_hours: '1',
    });
    const row = async () => (await console.page('attestations?subject=member-2')).text;
    na.clock.advance(HOUR);
    assert.match(await row(), /expired.*Renew….*Revoke…/s, 'clocks differ');
    na.clock.advance(5 * MINUTE);
    assert.doesNotMatch(await row(), /Revoke…/);
  });

  test('a feed is imported, or refused with an explanation', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    assert.match((await console.page('feeds')).text, /No feed was imported/);
    const own = (await get(na, '/sovereign-revocation-feed')).body;
    const proposed = await console.submit('do?action=import-feed', {
      feed: JSON.stringify(own),
      expected_issuer_sovereign_id: 'beta',
    });
    const refused = await console.submit('confirm', { id: changeIn(proposed) });
    assert.match(refused.text, /<title>Not done/);
    assert.match(refused.text, /role="alert">The authority refused: /);
    const hostile = { ...own, issuer_sovereign_id: `\u202e${'x'.repeat(999)}end` };
    const named = await console.submit('do?action=import-feed', { feed: JSON.stringify(hostile) });
    assert.match(named.text, /<p class="lede">[^<\u202e]* of ⟨U\+202E⟩x{1,96}…x+end\.</);
    const text = await console.submit('do?action=import-feed', { feed: 'feed.json' });
    assert.match(text.text, /this is not JSON/);
  });

  test('a standard key sees the lists, but no changes', async () => {
    const na = await authority();
    await operate(na, '/admin/recognition-treaties', {
      subject_sovereign_id: 'delta',
      subject_public_keys: [newKey().publicKey],
    });
    await using console = await startTestConsole(na, { operator: na.standard });
    for (const path of ['treaties', 'attestations', 'feeds', 'policy']) {
      const { status, text } = await console.page(path);
      assert.equal(status, 200, path);
      assert.doesNotMatch(text, /…<\/(a|button)>/, path);
    }
  });
});

// The forms of `mesh-na console` for treaties whose subjects are fetched.

async function rowsOf(na: TestAuthority, subject: string, status: string) {
  const path = `/recognition-treaties?subject_sovereign_id=${subject}&status=${status}`;
  return (await get(na, path)).body.recognition_treaties;
}

test('a sovereign is recognized with its address, and the list says how it is fetched', async () => {
  const na = await authority();
  await using console = await startTestConsole(na);
  const beta = sovereign(freshId('beta'));
  await using host = await startHostileAuthority({
    'GET /authority-keys': { successions: [] },
    'GET /sovereign-revocation-feed': beta.feed(na.clock.now(), 1),
  });
  const fields = {
    subject_sovereign_id: beta.name,
    subject_public_keys: beta.key.publicKey,
    validity_hours: '48',
  };
  for (const endpoint of ['beta.example', 'ftp://beta.example', `${host.url}?a=b`]) {
    const refused = await console.submit('do?action=issue-treaty', { ...fields, endpoint });
    assert.equal(refused.status, 422, endpoint);
    assert.match(refused.text, /endpoint must be an http or https URL without user/, endpoint);
  }
  assert.deepEqual(await rowsOf(na, beta.name, 'active'), []);
  const { proposed } = await console.change('issue-treaty', { ...fields, endpoint: host.url });
  assert.match(proposed, new RegExp(`treaty issue ${beta.name} .*--endpoint ${host.url}`));
  const [{ treaty, endpoint }] = await rowsOf(na, beta.name, 'active');
  assert.equal(endpoint, host.url);
  assert.equal(Date.parse(treaty.expires_at) - Date.parse(treaty.issued_at), 48 * HOUR);

  await na.federate();
  const list = async () => (await console.page(`treaties?subject=${beta.name}`)).text;
  assert.ok((await list()).includes(new URL(host.url).host));
  assert.match(await list(), /fetched <time/);
  host.answers = {};
  na.clock.advance(HOUR);
  await na.federate();
  assert.match(await list(), /it answered 404/);
});

test('a treaty gets an address and loses it', async () => {
  const na = await authority();
  await using console = await startTestConsole(na);
  const subject = freshId('beta');
  const { treaty_id } = await issued(recognize(na, { subject_sovereign_id: subject }));
  const endpointOf = async () => (await rowsOf(na, subject, 'active'))[0].endpoint;
  const page = await console.page(`treaties?subject=${subject}`);
  assert.ok(page.text.includes(`do?action=set-treaty-endpoint&amp;treaty_id=${treaty_id}`));
  const set = { treaty_id: String(treaty_id), endpoint: 'https://beta.example' };
  const { proposed } = await console.change('set-treaty-endpoint', set);
  assert.match(proposed, new RegExp(`treaty endpoint ${treaty_id} https://beta.example`));
  assert.equal(await endpointOf(), 'https://beta.example');
  const { proposed: removing } = await console.change('set-treaty-endpoint', {
    ...set,
    endpoint: '',
  });
  assert.match(removing, /Do not fetch the subject of the treaty/);
  assert.match(removing, new RegExp(`treaty endpoint ${treaty_id} none`));
  assert.equal(await endpointOf(), undefined);
});

test('a treaty that ends soon is renewed with the same keys, scope and address', async () => {
  const na = await authority();
  await using console = await startTestConsole(na);
  const subject = freshId('beta');
  const before = await issued(
    recognize(na, {
      subject_sovereign_id: subject,
      scope: { allowed_roles: ['role:client'] },
      validity_hours: 24,
      endpoint: 'https://beta.example',
    }),
  );
  const id = String(before.treaty_id);
  const form = await console.page(`do?action=renew-treaty&treaty_id=${id}`);
  assert.equal(form.status, 200);
  const { proposed } = await console.change('renew-treaty', {
    treaty_id: id,
    validity_hours: '720',
  });
  assert.match(
    proposed,
    new RegExp(`Replace the treaty ${id} by one with the same keys and scope`),
  );
  assert.match(proposed, new RegExp(`treaty renew ${id} --validity-hours 720`));
  const [{ treaty, endpoint }] = await rowsOf(na, subject, 'active');
  const kept = ({ subject_public_keys, scope }: JsonObject) => ({ subject_public_keys, scope });
  assert.deepEqual(kept(treaty), kept(before));
  assert.equal(endpoint, 'https://beta.example');
  assert.equal(Date.parse(treaty.expires_at) - Date.parse(treaty.issued_at), 720 * HOUR);
  const [{ lifecycle }] = await rowsOf(na, subject, 'revoked');
  assert.equal(lifecycle.replacement_treaty_id, treaty.treaty_id);
  assert.deepEqual(
    auditEvents(na)
      .slice(-2)
      .map(({ type }) => type),
    ['recognition_treaty_issued', 'recognition_treaty_revoked'],
  );
  assert.match((await console.page(`treaties?subject=${subject}`)).text, /Revoke…/);
});
