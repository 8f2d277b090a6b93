/** The pages of single treaties, sovereigns, attestations and capabilities, at addresses that can be shared. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { jsonText } from '../src/base/json/write.ts';
import { displayTime, formatInstant } from '../src/base/timestamp.ts';
import { sovereignPage } from '../src/pages/trust/sovereign.ts';
import { reference } from '../src/pages/ui/values.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, HOSTILE_NAME, sharedBrowser } from './support/browser.ts';
import { HOUR } from './support/clock.ts';
import { connectomeOf, graphOf } from './support/connectome.ts';
import { cpuOf } from './support/cpu.ts';
import { textOf } from './support/pages.ts';
import { get, joinedNode, outcome, send } from './support/requests.ts';
import { signAgentDescriptor } from './support/signing.ts';
import { activate, keyStates, stage, succession } from './support/successions.ts';
import {
  attest,
  importFeed,
  issued,
  recognize,
  revokeAttestation,
  revokeTreaty,
  sovereign,
} from './support/trust.ts';

const ENDLESS = `first-${'W'.repeat(1000)}-last`;

const open = sharedBrowser();
let na: TestAuthority;
/** The ids of what the authority has. */
let old: string;
let renewed: string;
let hostile: string;
let revoked: string;

before(async () => {
  na = await startTestAuthority();
  const beta = sovereign('beta');
  const terms = { subject_public_keys: [beta.key.publicKey] };
  old = await treaty(terms);
  const scope = { allowed_roles: ['role:client'] };
  renewed = await treaty({ ...terms, scope, metadata: { note: HOSTILE_NAME } });
  await revokeTreaty(na, old, { reason: `renewed_by:${renewed}` });
  hostile = await treaty({ subject_sovereign_id: HOSTILE_NAME });
  await revokeTreaty(na, hostile, { reason: HOSTILE_NAME });
  await treaty({ subject_sovereign_id: ENDLESS });
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['attestation-of-beta'] });
  await issued(importFeed(na, feed));
  const { attestation_id } = await issued(attest(na, { claims: { note: HOSTILE_NAME } }));
  revoked = String(attestation_id);
  await revokeAttestation(na, revoked, { reason: 'left' });
  await registerAgent(['search', HOSTILE_NAME]);
});

after(() => na?.[Symbol.asyncDispose]());

async function treaty(terms: Parameters<typeof recognize>[1]): Promise<string> {
  return String((await issued(recognize(na, terms))).treaty_id);
}

async function registerAgent(capabilities: readonly string[]): Promise<void> {
  const { key } = await joinedNode(na);
  const endpoint = { host: '127.0.0.1', port: 7448 };
  const agent = { agent_id: 'agent-1', network_name: 'alpha', capabilities, endpoint };
  const descriptor = signAgentDescriptor({ ...agent, lifetimeSeconds: 3600 }, key, na.clock.now());
  const { status } = await send(na, 'POST', '/agents', { body: jsonText(descriptor) });
  assert.equal(status, 200);
}

function pages(): string[] {
  return [
    `/treaty?id=${old}`,
    `/treaty?id=${renewed}`,
    `/treaty?id=${hostile}`,
    '/treaty',
    '/attestation',
    '/sovereign',
    '/sovereign?id=alpha',
    '/sovereign?id=beta',
    `/sovereign?id=${encodeURIComponent(HOSTILE_NAME)}`,
    `/sovereign?id=${encodeURIComponent(reference(ENDLESS))}`,
    `/attestation?id=${revoked}`,
    '/capability',
    '/capability?name=search',
    `/capability?name=${encodeURIComponent(HOSTILE_NAME)}`,
  ];
}

suite('in a browser', () => {
  test('all are accessible and run nothing hostile', async () => {
    await using visit = await open(na.url);
    const { page } = visit;
    for (const path of pages()) {
      await page.goto(na.url + path);
      await assertSound(visit);
      assert.equal(await page.evaluate('window.hacked'), undefined);
      assert.equal(await page.locator('main img, main script').count(), 0);
    }
  });

  test('the pages of an empty network are accessible', async () => {
    await using empty = await startTestAuthority();
    for (const path of ['/dashboard', '/connectome', '/atlas']) {
      await using visit = await open(empty.url + path);
      await assertSound(visit);
    }
  });

  test('a treaty links to its successor and back, to its parties and to its data', async () => {
    await using visit = await open(`${na.url}/connectome`);
    const { page } = visit;
    await page.locator(`#treaties a[href="./treaty?id=${old}"]`).click();
    await page.waitForURL(`${na.url}/treaty?id=${old}`);
    assert.match(await page.innerText('.page-head'), /alpha recognizes beta\. Replaced/);
    assert.match(await page.innerText('.history'), /Replaced at .* by/);
    await page.locator('.history a').click();
    await page.waitForURL(`${na.url}/treaty?id=${renewed}`);
    assert.match(await page.innerText('.history'), new RegExp(`Replaced ${old}$`, 'm'));
    assert.match(await page.innerText('main'), /role:client/);
    await page.locator('.history a').click();
    await page.waitForURL(`${na.url}/treaty?id=${old}`);
    await page.getByRole('link', { name: 'beta' }).first().click();
    await page.waitForURL(`${na.url}/sovereign?id=beta`);
    assert.equal(await page.locator('#in tbody tr').count(), 2);
    assert.match(await page.innerText('main'), /Freshness\s+Fresh/);
    assert.equal(
      await page.locator('#blast-radius th', { hasText: 'attestation-of-beta' }).count(),
      1,
    );
    assert.deepEqual(visit.problems, []);
  });

  test('an attestation shows who is attested, whether it was revoked, and why', async () => {
    await using visit = await open(`${na.url}/attestation?id=${revoked}`);
    assert.match(
      await visit.page.innerText('.page-head'),
      /alpha attests that agent-7 is a member\. Revoked/,
    );
    assert.match(await visit.page.innerText('.history'), /Revoked at .*: left/);
  });

  test('a capability links to its agents, and they to their other capabilities', async () => {
    await using visit = await open(`${na.url}/capability`, { javaScript: false });
    const { page } = visit;
    await page.fill('#name', 'search');
    await page.click('main button[type=submit]');
    await page.waitForURL(`${na.url}/capability?name=search`);
    assert.match(await page.innerText('#agents tbody'), /agent-1/);
    assert.equal(await page.locator('#agents tbody td a').count(), 2);
  });

  test('the key of a treaty can be copied', async () => {
    await using visit = await open(`${na.url}/treaty?id=${renewed}`, { isApart: true });
    const { page } = visit;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const key = page.locator('section', { hasText: 'Keys of' }).locator('.id');
    const text = await key.innerText();
    await key.getByRole('button').click();
    await page.getByText('Copied', { exact: true }).waitFor({ state: 'attached' });
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), text.trim());
  });
});

suite('an id that does not exist', () => {
  const ids = [
    'nobody',
    '<script>window.hacked=1</script>',
    'x'.repeat(900),
    '%2500%0A%1b%202E',
    '%zz%ff',
    '..%2F..%2Fcrl',
    '__proto__',
    `sha256:${'0'.repeat(64)}`,
  ];
  for (const [path, refusal, title] of [
    ['/treaty', 'treaty_not_found', 'Treaty'],
    ['/sovereign', 'not_found', 'Sovereign'],
    ['/attestation', 'attestation_not_found', 'Attestation'],
  ] as const) {
    test(`is a page that does not repeat it, or refused in the envelope: ${path}`, async () => {
      assert.equal(outcome(await get(na, `${path}?id=nobody`)), `404 ${refusal}`);
      for (const id of ids) {
        const target = `${path}?id=${id.replaceAll('<', '%3C')}`;
        const { status, headers, text } = await send(na, 'GET', target, {
          headers: { Accept: 'text/html,*/*;q=0.8' },
        });
        assert.equal(status, 404, target);
        assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
        assert.ok(text.includes(`<h1><bdi>${title} not found`), target);
        assert.match(text, new RegExp(`<form [^>]*action="\\.${path}"`), 'it can be corrected');
        assert.ok(!text.includes('window.hacked') && !text.includes('x'.repeat(100)));
        assert.ok(text.length < 8000, String(text.length));
      }
    });
  }

  test('a capability that no agent has is a page of bounded length', async () => {
    const { status, text } = await get(na, `/capability?name=${'%22%3E%3Cb%3E'.repeat(300)}`);
    assert.equal(status, 200);
    assert.match(text, /No agent is registered/);
    assert.ok(!text.includes('<b>') && text.length < 10_000, String(text.length));
  });
});

test('an invalid page position leads to the first page', async () => {
  for (const query of ['out=0', 'out=-1', 'out=1e9', 'in=99999999', 'revoked=x']) {
    const { status, text } = await get(na, `/sovereign?id=alpha&${query}`);
    assert.equal(status, 200);
    assert.match(text, /id="out"/);
  }
  for (const cursor of ['x', 'W10', '%00']) {
    const { text } = await get(na, `/capability?name=search&cursor=${cursor}`);
    assert.match(text, /agent-1/);
  }
});

test('what is signed again after a change of the key does not claim that the new key had signed it at first', async () => {
  await using own = await startTestAuthority();
  const { treaty_id } = await issued(recognize(own, {}));
  const { attestation_id } = await issued(attest(own, {}));
  const paths = [`/treaty?id=${treaty_id}`, `/attestation?id=${attestation_id}`];
  const signers = async () => {
    const answers = await Promise.all(paths.map((path) => get(own, path)));
    return answers.map(({ text }) => {
      const [, signed = ''] = /<dt>Signed with<\/dt><dd[^>]*>(.*?)<\/dd>/s.exec(text) ?? [];
      return textOf(signed).replace(/\s+/g, ' ').trim();
    });
  };
  const [[before = ''] = []] = await keyStates(own);
  assert.deepEqual(await signers(), [before, before]);
  own.clock.advance(3 * HOUR);
  await stage(own, await succession(own));
  await activate(own);
  const [, [renewedKey = ''] = []] = await keyStates(own);
  const time = displayTime(formatInstant(own.clock.now()));
  for (const text of await signers()) {
    assert.ok(text.startsWith(`${renewedKey} again, since it replaced`), text);
    assert.ok(text.includes(time), text);
  }
});

test('a page that the client already has is answered with 304', async () => {
  for (const path of pages()) {
    const etag = (await get(na, path)).headers.get('etag') ?? '';
    const again = await send(na, 'GET', path, { headers: { 'If-None-Match': etag } });
    assert.deepEqual([again.status, again.text], [304, ''], path);
  }
});

test('a sovereign with 10,000 treaties is a short page, rendered within 50 ms', async (t) => {
  const { recognition_edges: edges, ...rest } = connectomeOf(10_000, 10_000);
  const all = edges.map((edge) => ({ ...edge, from: 'sovereign-0000' }));
  const model = graphOf({ ...rest, recognition_edges: all });
  const node = model.node('sovereign-0000');
  const render = (out: number) =>
    sovereignPage(
      { id: 'sovereign-0000', node, feed: undefined },
      { out, in: 1, revoked: 1 },
      model,
    );
  render(1);
  let page = render(200);
  const ms = await cpuOf(() => {
    page = render(100);
  });
  t.diagnostic(`${ms.toFixed(1)} ms of CPU, ${page.document.bytes.byteLength} bytes`);
  assert.ok(ms < 50, `${ms} ms`);
  assert.ok(page.document.bytes.byteLength < 100_000);
});
