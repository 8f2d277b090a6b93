/**
 * The pages of `mesh-na console` about the authority itself: audit log, horizon, health, and the succession of its key.
 */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { sharedAuthority } from './support/authority.ts';
import { SECOND } from './support/clock.ts';
import { type Answer, changeIn, startTestConsole } from './support/console.ts';
import { metricOf } from './support/metrics.ts';
import {
  auditEvents,
  get,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
} from './support/requests.ts';
import { activate, DAY, keyStates, stage, succession } from './support/successions.ts';
import { audited } from './support/trust.ts';

const authority = sharedAuthority();

suite('audit', () => {
  test('entries are found by event, operator key and id, newest first', async () => {
    const na = await authority();
    const node = await joinedNode(na);
    const other = await joinedNode(na);
    await using console = await startTestConsole(na);
    const { text } = await console.page('audit');
    assert.ok(text.indexOf(other.certId) < text.indexOf(node.certId));
    assert.match(text, /data-live="\.\/audit-news\?after=\d+"/);

    const found = await console.page(`audit?type=certificate_issued&q=${node.certId}`);
    assert.match(found.text, /: 1 found, newest first/);
    assert.doesNotMatch(found.text, new RegExp(other.certId));
    const actor = na.standard.keyId;
    assert.ok(text.includes(`<option value="${actor}"></option>`), 'operators are proposed');
    assert.match((await console.page(`audit?actor=${actor}`)).text, /invite_created/);
    assert.match((await console.page('audit?actor=nobody')).text, /None of the entries 1 to/);

    const earlier = await console.page('audit?upto=1');
    assert.match(earlier.text, /Entries 1 to 1, newest first/);
    assert.doesNotMatch(earlier.text, /data-live/);
    assert.match(earlier.text, /Newest entries/);
  });

  test('entries are sentences with their details folded, and found by the name of a node', async () => {
    const na = await authority();
    const node = await joinedNode(na, { name: 'seen-<1>' });
    await operate(na, '/admin/invite', { count: 3, name: 'seen-batch-{n}' });
    await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    await using console = await startTestConsole(na);
    const of = async (subject: string) =>
      (await console.page(`audit?${new URLSearchParams({ q: subject })}`)).text;
    const named = await of('seen-<1>');
    assert.match(named, /: 3 found, newest first/);
    const short = node.certId.slice(0, 8);
    assert.ok(
      named.includes(`<bdi>ops-privileged revoked seen-&lt;1&gt; (${short}): superseded</bdi>`),
    );
    assert.ok(named.includes('<summary>certificate_revoked</summary>'));
    assert.ok(named.includes(node.certId), 'the whole id is in the fold');
    assert.match(
      await of('seen-batch-2'),
      /ops-privileged invited seen-batch-2 \([0-9a-f]{16}\) as role:client/,
    );
    const { text } = await console.page('audit?type=invite_created');
    assert.match(
      text,
      />\d+–\d+<.*invited seen-batch-1 … seen-batch-3 \(3 invites\) as role:client<.*name<\/span> <code><bdi>seen-batch-2</s,
    );
  });

  test('the names that nodes have are asked for once, however many entries do not say them', async () => {
    const na = await authority();
    const node = await joinedNode(na);
    for (let other = 0; other < 3; other += 1) await joinedNode(na);
    await operate(na, `/admin/nodes/${encodeURIComponent(node.key.publicKey)}`, { name: 'late' });
    const series =
      'mesh_na_http_requests_total{method="GET",route="/admin/certificates",status="200"}';
    const before = (await metricOf(na, series)) || 0;
    await using console = await startTestConsole(na);
    const { text } = await console.page('audit?type=certificate_issued');
    assert.match(text, /<bdi>late \([^<]{8}\) joined as role:client<\/bdi>/);
    assert.equal((await metricOf(na, series)) - before, 1);
  });

  test('new entries appear as they happen', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    const { cookie, root } = await console.open();
    const page = await console.page('audit');
    const [, after] = /audit-news\?after=(\d+)/.exec(page.text) ?? [];
    const leaving = new AbortController();
    const { signal } = leaving;
    const news = await fetch(`${console.origin}${root}audit-news?after=${after}`, {
      headers: { cookie },
      signal,
    });
    const reader = news.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.match((await reader?.read())?.value ?? '', /^: waiting/);
    await joinedNode(na);
    assert.match((await reader?.read())?.value ?? '', new RegExp(`^data: ${Number(after) + 1}\n`));
    leaving.abort();
  });

  test('no stream of entries begins for a key that was revoked', async () => {
    const na = await authority();
    const operator = { keyId: 'ops-gone', key: newKey() };
    const added = { key_id: operator.keyId, public_key: operator.key.publicKey, tier: 'standard' };
    await operate(na, '/admin/operator-keys', added);
    await using console = await startTestConsole(na, { operator });
    await operate(na, `/admin/operator-keys/${operator.keyId}/revoke`);
    assert.equal((await console.page('audit-news')).status, 502);
  });

  test('the entire log is verified', async () => {
    const na = await authority();
    await joinedNode(na);
    await using console = await startTestConsole(na);
    const { text, headers } = await console.page('audit-check');
    assert.match(String(headers['content-type']), /^text\/html/);
    assert.match(text, /<a href="\.\/audit" aria-current="page">Audit<\/a>.*<h1>.*<\/main>/s);
    assert.match(text, /The log is intact: each of its \d+ entries.*Last hash.*[0-9a-f]{64}/s);
    await using lost = await startTestConsole(na, { url: 'http://127.0.0.1:1' });
    const failed = await lost.page('audit-check');
    assert.match(failed.text, /role="alert">The log is not verified: .*<\/main>/s);
  });
});

test('the horizon counts what lapses, by kind and week', async () => {
  const na = await authority();
  await joinedNode(na);
  await using console = await startTestConsole(na);
  const { text } = await console.page('horizon');
  assert.match(text, /Delegation of the root key/);
  assert.match(text, /<a href="\.\/nodes\?sort=expires">Node certificates<\/a>/);
  assert.match(text, /Week from/);
});

test('the overview says what is wrong since when, what ends, and who changed what; each page has the verdict', async () => {
  const na = await authority();
  const node = await joinedNode(na, { name: 'quiet-1' });
  await nodeRequest(na, '/heartbeat', node.key, { cert_id: node.certId, status: 'degraded: disk' });
  na.clock.advance(SECOND);
  await operate(na, '/admin/revoke', { cert_id: 'none' });
  await operate(na, '/admin/invite', {}, { operator: na.standard });
  await using console = await startTestConsole(na);
  assert.equal((await console.page('')).headers.location, './overview');
  const { text } = await console.page('overview');
  assert.match(text, /<h2 id="posture-word">.*Needs a/);
  assert.match(
    text,
    /<a href="\.\/nodes\?health=unwell">1 of 1 node does not report itself healthy\.<\/a> <code>.*<\/code> <span class="small muted">since <time/,
  );
  assert.match(text, /<a href="\.\/nodes\?status=active&amp;health=unwell">1 unwell<\/a>/);
  assert.match(text, /needs a person/);
  assert.match(text, /<ul aria-label="Fleet"><li>.*Nodes<.*Invites<.*<ul aria-label="Partners">/s);
  const [first] = /<tr id="changes-\d+".*?<\/tr>/s.exec(text) ?? [''];
  assert.match(first, new RegExp(`${na.standard.keyId} created .*invite_created`, 's'));
  for (const path of ['nodes', 'audit', 'do?action=create-invites', 'nothing']) {
    assert.match(
      (await console.page(path)).text,
      /<p class="verdict (warn|danger)"><a href="\.\/overview">Needs a/,
      path,
    );
  }
});

test('health shows the remote checks, worst first', async () => {
  const na = await authority();
  await using console = await startTestConsole(na);
  const { text } = await console.page('health');
  for (const part of ['Reachable', 'Clock skew', 'Forwarded']) {
    assert.ok(text.includes(part), part);
  }
  assert.match(text, /valid until <time datetime="[^"]+Z">[\d-]+ [\d:]+ UTC<\/time>/);
  assert.doesNotMatch(text.replaceAll(/<[^>]*>/g, ''), /\dT\d\d:/);
  assert.match(text, /<h2 id="history-heading">History.*Heartbeats a minute: .*Joins: .*Failed/s);
  assert.ok(text.includes(`href="${na.url}/dashboard?range=7d"`));
  await using lost = await startTestConsole(na, { url: 'http://127.0.0.1:1' });
  const answer = await lost.page('health');
  assert.ok(answer.text.indexOf('Reachable') > 0);
});

suite('succession', () => {
  test('each step, from staging to the end of the overlap', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    const before = (await console.page('succession')).text;
    assert.match(
      before.replaceAll('<wbr>', ''),
      /The key has never been replaced.*authority-key prepare.*sign --request/s,
    );
    const early = await console.submit('do?action=cancel-succession', {});
    assert.match(early.text, /No succession is staged/);

    // Nobody holds this key, so the authority does not activate it by itself when it is due.
    const signed = await succession(na, { activatesIn: DAY, to: newKey() });
    const { to_key: to } = signed.statement;
    const staged = await console.change('stage-succession', {
      succession: JSON.stringify(signed),
    });
    assert.ok(staged.proposed.includes(`the key ${to} takes over`));
    assert.match(staged.done, /authority_succession_staged/);
    const page = await console.page('succession');
    assert.match(page.text, /takes over by itself at.*Cancel succession…/s);
    assert.doesNotMatch(page.text, /Activate…/, 'the authority would refuse it');
    assert.doesNotMatch(page.text, /Laggards/, 'nobody lags behind a key that is not in force');
    na.clock.advance(DAY);
    assert.match((await console.page('succession')).text, /Activate….*Cancel succession…/s);
    await console.change('cancel-succession');
    assert.deepEqual(await keyStates(na), [[na.audience, 'current']]);

    const key = newKey();
    const { token_id } = (await operate(na, '/admin/invite')).body;
    const named = { invite_token: token_id, hostname: 'late-host' };
    const { body: late } = await nodeRequest(na, '/join', key, named);
    await heartbeat(na, { key, certId: late.cert_id });
    await stage(na, await succession(na));
    await activate(na);
    await joinedNode(na);
    const overlap = await console.page('succession');
    assert.match(overlap.text, /Laggards.*<bdi>\(late-host\)<\/bdi>/s);
    assert.match(overlap.text, /In force; the previous key also signs/);
    assert.match(overlap.text, /Roll back….*Finish…/s, 'somebody has not followed');

    const operator = { ...na.standard, key: na.privileged.key };
    await using wrong = await startTestConsole(na, { operator });
    const refused = await wrong.page('nodes');
    assert.match(refused.text, /role="alert">The authority refused: Admin authentication failed/);
    assert.match(refused.text, /The authority has replaced its key: run mesh-na connect again\.</);
    await console.change('roll-back-key');
    assert.equal(auditEvents(na).at(-1)?.type, 'authority_key_rolled_back');
  });

  test('invalid text is refused with an explanation', async () => {
    const na = await authority();
    await using console = await startTestConsole(na);
    for (const [pasted, problem] of [
      ['{', /this is not JSON/],
      ['[]', /Paste the JSON object/],
      ['{"format":"mesh-na-succession-request"}', /the root key has not signed yet/],
      ['{"format":"mesh-na-genesis"}', /not a signed succession/],
    ] as const) {
      const answer = await console.submit('do?action=stage-succession', { succession: pasted });
      assert.equal(answer.status, 422);
      assert.match(answer.text, problem);
    }
  });

  test('a standard key sees who has adopted it, but no steps', async () => {
    const na = await authority();
    await using console = await startTestConsole(na, { operator: na.standard });
    const { status, text } = await console.page('succession');
    assert.equal(status, 200);
    assert.doesNotMatch(text, /…<\/(a|button)>/);
  });
});

// Invites and operators: their rows and the available actions.

const inviting = sharedAuthority();

/** Where the button for the theme leads back to. */
function addressIn({ text }: Answer): string {
  return /name="back" value="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';
}

suite('invites', () => {
  test('are created as the form says, and their tokens are shown until they are stored', async () => {
    const na = await inviting();
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
    const na = await inviting();
    await operate(na, '/admin/invite', { count: 3, batch: 'lost' });
    const { body } = await operate(na, '/admin/invites', {}, { method: 'GET' });
    const [first] = body.invites.filter(({ batch }: { batch: string }) => batch === 'lost');
    await using console = await startTestConsole(na, { operator: na.standard });
    const fingerprint: string = first.token_fingerprint;
    const one = await console.submit('do?action=withdraw-invite', { fingerprint });
    assert.match((await console.submit('confirm', { id: changeIn(one) })).text, /invite_withdrawn/);
    const rest = await console.submit('do?action=withdraw-batch', { batch: 'lost' });
    await operate(na, '/admin/invite', { batch: 'lost' });
    assert.match(rest.text, /Type <bdi>2<\/bdi> to confirm/);
    const id = changeIn(rest);
    assert.equal((await console.submit('confirm', { id })).status, 422);
    assert.match((await console.submit('confirm', { id, number: '2' })).text, /"withdrawn": 2/);
    assert.equal(audited(na, 'invite_withdrawn').length, 3, 'nobody has confirmed the late one');
    await console.change('withdraw-batch', { batch: 'lost' }, '1');
    const none = await console.submit('do?action=withdraw-batch', { batch: 'lost' });
    assert.match(none.text, /The batch lost has no unused invite/);
  });

  test('are not proposed with invalid fields', async () => {
    await using console = await startTestConsole(await inviting());
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
  const na = await inviting();
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

test('a page whose entries cannot be read does not say that nothing was changed', async () => {
  const na = await authority();
  const operator = { keyId: 'ops-own', key: newKey() };
  const added = { key_id: 'ops-own', public_key: operator.key.publicKey, tier: 'privileged' };
  await operate(na, '/admin/operator-keys', added);
  await using console = await startTestConsole(na, { operator });
  const { proposed, done } = await console.change('revoke-operator-key', { key_id: 'ops-own' });
  assert.match(proposed, /It is your own key/);
  assert.match(done, /The new entries cannot be read/);
});
