/** The forms of `mesh-na console` for treaties whose subjects are fetched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { startTestConsole } from './support/console.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { auditEvents, get } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { freshId, issued, recognize, sovereign } from './support/trust.ts';

const authority = sharedAuthority({ environment: { MESH_FEDERATION_PRIVATE: '1' } });

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
