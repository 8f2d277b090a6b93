/** Invites and operators in `mesh-na console`: their rows and the available actions. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { TestAuthority } from './support/authority.ts';
import { type Answer, changeIn, startTestConsole } from './support/console.ts';
import { auditEvents, get, joinedNode, newKey, nodeRequest, operate } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';

const authority = sharedAuthority();

/** Where the button for the theme leads back to. */
function addressIn({ text }: Answer): string {
  return /name="back" value="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
}

function audited(na: TestAuthority, type: string): Record<string, unknown>[] {
  return auditEvents(na)
    .filter((event) => event.type === type)
    .map(({ details }) => details);
}

suite('invites', () => {
  test('are created as the form says, and their tokens are shown until they are stored', async () => {
    const na = await authority();
    await using console = await startTestConsole(na, { operator: na.standard });
    const proposed = await console.submit('do?action=create-invites', {
      roles: 'role:client, role:anchor',
      count: '2',
      name: 'cam-{n}',
      batch: 'cams',
      token_expiry_hours: '12',
      max_validity_hours: '24',
      recipient_public_key: '',
      labels: 'site=north',
    });
    for (const part of ['2 nodes can join', 'cam-1 to cam-2', '"token_expiry_hours": 12']) {
      assert.ok(proposed.text.includes(part), part);
    }
    assert.ok(
      proposed.text.includes(
        'mesh-na invite create --role role:client --role role:anchor --count 2 --name cam-{n} --batch cams --token-expiry-hours 12 --max-validity-hours 24 --label site=north',
      ),
    );
    const id = changeIn(proposed);
    const kept = await console.submit('theme', { back: addressIn(proposed), theme: 'dark' });
    assert.equal(changeIn(kept), id, 'a change of theme leads back to what was proposed');
    const done = await console.submit('confirm', { id });
    const tokens = done.text.match(/\b[0-9a-f]{48}\b/g) ?? [];
    assert.equal(tokens.length, 2);
    const { root_public_key: rootKey } = (await get(na, '/genesis')).body;
    const joining = `mesh-na node join --url ${na.url} --root-key ${rootKey} --token-file token`;
    assert.ok(done.text.includes(`>${joining}</pre>`), 'the command is complete');
    for (const [index, name] of ['cam-1', 'cam-2'].entries()) {
      assert.match(done.text, new RegExp(`>${name}</th><td class="id"[^>]*>${tokens[index]}<`));
    }
    assert.match(
      done.text,
      /ops-standard invited cam-1 … cam-2 \(2 invites\) as .*invite_created/s,
    );
    assert.equal(done.text.match(/>token_fingerprint</g)?.length, 2, 'the details of both');
    assert.deepEqual(
      audited(na, 'invite_created').map(({ batch }) => batch),
      ['cams', 'cams'],
    );
    const shown = new RegExp(tokens[0] ?? 'none');
    await console.submit('theme', { back: addressIn(done), theme: 'light' });
    const { cookie, root } = await console.open();
    await console.ask('HEAD', `${root}outcome?id=${id}`, { cookie });
    assert.match((await console.page(`outcome?id=${id}`)).text, shown, 'after theme and HEAD');
    assert.match((await console.page(`outcome?id=${id}`)).text, shown, 'when it is loaded again');
    await console.submit('taken', { id });
    assert.doesNotMatch((await console.page(`outcome?id=${id}`)).text, shown, 'once stored');

    const key = newKey();
    const joined = await nodeRequest(na, '/join', key, { invite_token: tokens[0] ?? '' });
    assert.equal(joined.status, 200);
    const { text } = await console.page('invites?batch=cams');
    for (const part of [
      'consumed',
      'unused',
      'cam-2',
      'site=north',
      encodeURIComponent(key.publicKey),
      'Withdraw the batch…',
    ]) {
      assert.ok(text.includes(part), part);
    }
    assert.match((await console.page('invites?status=withdrawn')).text, /No invite matches/);
    na.clock.advance(1000);
    await operate(na, '/admin/invite', { batch: 'newest' });
    const unused = (await console.page('invites')).text;
    assert.match(unused, /batch=newest.*batch=cams/s, 'newest first');
    assert.doesNotMatch(unused, /">consumed</);
    assert.match((await console.page('invites?status=')).text, /">unused<.*">consumed</s);
  });

  test('are withdrawn one by one, and as a batch once the number is typed', async () => {
    const na = await authority();
    await operate(na, '/admin/invite', { count: 3, batch: 'lost' });
    const { body } = await operate(na, '/admin/invites', {}, { method: 'GET' });
    const [first] = body.invites.filter(({ batch }: { batch: string }) => batch === 'lost');
    await using console = await startTestConsole(na, { operator: na.standard });
    const fingerprint: string = first.token_fingerprint;
    const one = await console.submit('do?action=withdraw-invite', { fingerprint });
    assert.match((await console.submit('confirm', { id: changeIn(one) })).text, /invite_withdrawn/);
    const rest = await console.submit('do?action=withdraw-batch', { batch: 'lost' });
    assert.match(rest.text, /Type <bdi>2<\/bdi> to confirm/);
    const id = changeIn(rest);
    assert.equal((await console.submit('confirm', { id })).status, 422);
    assert.match((await console.submit('confirm', { id, number: '2' })).text, /"withdrawn": 2/);
    assert.equal(audited(na, 'invite_withdrawn').length, 3);
    const none = await console.submit('do?action=withdraw-batch', { batch: 'lost' });
    assert.match(none.text, /The batch lost has no unused invite/);
  });

  test('are not proposed with invalid fields', async () => {
    await using console = await startTestConsole(await authority());
    for (const [fields, problem] of [
      [{ count: '0' }, /must be a whole number/],
      [{ count: '1001' }, /At most 1000 invites/],
      [{ count: '1', name: 'a\u202eb' }, /A name is 1 to 64/],
      [{ count: '1', batch: 'ü' }, /A batch is 1 to 64/],
      [{ count: '1', labels: 'x' }, /“x” is not a label/],
    ] as const) {
      const answer = await console.submit('do?action=create-invites', fields);
      assert.equal(answer.status, 422);
      assert.match(answer.text, problem);
    }
  });
});

test('operators are listed with their last change, added, moved to another tier, and revoked', async () => {
  const na = await authority();
  await joinedNode(na);
  await using console = await startTestConsole(na);
  const { text } = await console.page('operators');
  assert.match(text, /ops-standard<.*?<time/s, 'it has invited the node');
  const key = newKey().publicKey;
  const added = await console.change('add-operator-key', {
    key_id: 'ops-9',
    public_key: key,
    tier: 'standard',
  });
  assert.match(added.done, /operator_key_added/);
  const raised = await console.change('set-operator-tier', { key_id: 'ops-9', tier: 'privileged' });
  assert.match(raised.done, /operator_key_tier_set/);
  const revoked = await console.change('revoke-operator-key', { key_id: 'ops-9', reason: 'left' });
  assert.match(revoked.proposed, /2 keys stay usable, 1 of them privileged/);
  assert.match(revoked.done, /operator_key_revoked/);
  assert.deepEqual(
    audited(na, 'operator_key_revoked').map(({ key_id: id, reason }) => [id, reason]),
    [['ops-9', 'left']],
  );
  const last = await console.submit('do?action=revoke-operator-key', { key_id: 'ops-privileged' });
  assert.equal(last.status, 422);
  assert.match(last.text, /ops-privileged is the last privileged key\. Add another one first\./);
  const missing = await console.submit('do?action=revoke-operator-key', {
    key_id: 'ops-0',
    reason: '',
  });
  assert.match(missing.text, /There is no operator key ops-0/);
  await using standard = await startTestConsole(na, { operator: na.standard });
  assert.doesNotMatch((await standard.page('operators')).text, /Revoke…|New operator key/);
});
