/** The pages of the service itself, in a browser and over HTTP. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { request } from 'node:http';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { anchorOf } from '../src/pages/reference/contents.ts';
import { type Content, Html, html, NO_HTML } from '../src/pages/ui/html.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { startTestAuthority } from './support/authority.ts';
import { assertSound, HOSTILE_NAME, NARROW } from './support/browser.ts';
import { startChildServer } from './support/child-server.ts';
import { exchange } from './support/exchange.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { attributesOf, entriesOf, startPages, textOf } from './support/pages.ts';
import { outcome, send, sendRaw } from './support/requests.ts';

const PAGES = ['/', '/search', '/api-reference', '/cli-reference'] as const;
const REFERENCES: readonly string[] = ['/api-reference', '/cli-reference'];
const GZIP = { 'Accept-Encoding': 'gzip' };
const COMMANDS = commandReference(buildProgram());

const { na, browser } = await startPages({ commands: COMMANDS });

async function markupOf(path: string): Promise<string> {
  return (await send(na, 'GET', path)).text;
}

test('no page has errors, outside requests, accessibility violations or sideways scrolling, and a hostile network name is text', async (t) => {
  const { folder } = makeNetworkFolder(HOSTILE_NAME);
  t.after(() => rmSync(folder, { recursive: true }));
  await using hostile = await startTestAuthority({ dataDir: folder, commands: COMMANDS });
  // axe-core takes eight seconds for each reference: `page-widths.deep.test.ts`.
  for (const path of ['/', '/search']) {
    await using visit = await browser.visit(hostile.url + path);
    const { page } = visit;
    assert.equal(await page.locator('.brand-name').textContent(), HOSTILE_NAME);
    if (path === '/') assert.equal(await page.locator('h1').textContent(), HOSTILE_NAME);
    assert.ok((await page.title()).includes('</title><script>'));
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.evaluate('window.hacked'), undefined);
    await assertSound(visit);
  }
  for (const path of REFERENCES) {
    const { text } = await send(hostile, 'GET', path);
    assert.doesNotMatch(text, /<img|<script>/);
    assert.ok(textOf(text).includes(HOSTILE_NAME));
  }
});

test('without JavaScript every page is complete, without controls that would do nothing', async () => {
  await using visit = await browser.visit(na.url, { javaScript: false });
  const { page } = visit;
  for (const path of PAGES) {
    await page.goto(na.url + path);
    assert.equal(await page.locator('h1').count(), 1);
    assert.equal(await page.locator('nav[aria-label="Pages"] a').count(), 7);
    const controls = 'button:not(form *):visible, input:not(form *):visible';
    assert.equal(await page.locator(controls).count(), 0);
    assert.equal(await page.locator('[data-entry]:not(:visible)').count(), 0);
  }
  assert.deepEqual(visit.problems, []);
});

test('the first key leads past the navigation', async () => {
  await using visit = await browser.visit(na.url);
  const { page } = visit;
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('document.activeElement.id'), 'content');
});

for (const path of PAGES) {
  test(`${path} has a way past the navigation, its place in it, and headings in order`, async () => {
    const text = await markupOf(path);
    assert.match(text, /<body>\s*<a [^>]*href="#content">Skip to content</);
    assert.match(text, /<main id="content"/);
    let level = 0;
    for (const [, heading] of text.matchAll(/<h([1-4])[\s>]/g)) {
      assert.ok(Number(heading) <= level + 1, `h${heading} below h${level}`);
      level = Number(heading);
    }
    const current = text.match(/aria-current="page"/g) ?? [];
    assert.equal(current.length, path === '/search' ? 0 : 1);
  });

  test(`every link of ${path} leads to something that exists`, async () => {
    const text = await markupOf(path);
    const hrefs = attributesOf(text, 'a', 'href');
    const known = new Set(ROUTES.map((route) => route.path));
    const lost = hrefs.filter((href) => {
      const { pathname, hash, origin } = new URL(href, na.url + path);
      if (origin !== na.url) return true;
      if (pathname === '/api-reference' && hash !== '' && path !== '/api-reference') {
        return !ROUTES.some((route) => `#${anchorOf(route)}` === hash);
      }
      return !known.has(pathname);
    });
    assert.deepEqual(lost, []);
    const ids = attributesOf(text, '\\w+', 'id');
    for (const href of new Set(hrefs.filter((each) => each.startsWith('#')))) {
      assert.equal(ids.filter((id) => `#${id}` === href).length, 1, href);
    }
  });

  test(`GET ${path} has its own policy, which allows nothing inline and nothing from elsewhere`, async () => {
    const { status, headers, text } = await send(na, 'GET', path);
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; /);
    for (const directive of ['base-uri', 'frame-ancestors']) {
      assert.ok(policy.includes(`${directive} 'none'`), directive);
    }
    assert.match(policy, /; form-action 'self';/);
    // Only the search sends requests to this server.
    assert.equal(policy.includes("connect-src 'self'"), path === '/search');
    assert.doesNotMatch(
      policy.replace(/(?:style-src|script-src|form-action|connect-src) 'self'/g, ''),
      /unsafe|https?:|\*|'self'/,
    );
    assert.doesNotMatch(text, /<style|<script>/);
    for (const [form] of text.matchAll(/<form[^>]*>/g))
      assert.match(form, / method="get" action="\.\//);
    assert.doesNotMatch(text, /\son[a-z]+=|\sstyle=|javascript:|<iframe/i);
    assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//);
  });

  test(`GET ${path} answers 304 to clients that have either form, and HEAD like GET`, async () => {
    const plain = await sendRaw(na, 'GET', path);
    const etag = plain.headers.get('etag') ?? '';
    assert.match(etag, /^"[0-9a-f]{32}"$/);
    assert.equal(plain.headers.get('cache-control'), 'no-cache');
    assert.equal(plain.headers.get('vary'), 'Accept-Encoding');
    assert.equal(plain.headers.get('content-encoding'), null);
    const compressed = await sendRaw(na, 'HEAD', path, { headers: GZIP });
    assert.equal(compressed.headers.get('content-encoding'), 'gzip');
    const gzipEtag = compressed.headers.get('etag') ?? '';
    assert.equal(gzipEtag, etag.replace(/"$/, '-gzip"'));
    for (const held of [etag, gzipEtag, `W/${gzipEtag}`]) {
      const again = await sendRaw(na, 'GET', path, { headers: { ...GZIP, 'If-None-Match': held } });
      assert.equal(again.status, 304);
      assert.equal(again.text, '');
      assert.equal(again.headers.get('etag'), held.replace(/^W\//, ''));
      assert.equal(again.headers.get('content-encoding'), null);
    }
    const head = await sendRaw(na, 'HEAD', path);
    assert.equal(head.text, '');
    assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(plain.text)));
  });
}

// `api-reference.deep.test.ts` searches both references.
test('the search of a reference narrows entries and contents, and shows how many are left', async () => {
  // A fragment that cannot be decoded must not stop the script.
  await using visit = await browser.visit(`${na.url}/api-reference#%`);
  const { page } = visit;
  const outcomes = page.locator('[data-filter-count]');
  assert.equal(await outcomes.textContent(), `${ROUTES.length} total`);
  await page.getByRole('searchbox').fill('REVOKE treat');
  const shown = page.locator('[data-entry]:visible');
  const count = await shown.count();
  assert.ok(count > 0 && count < ROUTES.length);
  assert.equal(await outcomes.textContent(), `${count} of ${ROUTES.length}`);
  for (const text of await shown.allTextContents()) assert.match(text, /revoke/i);
  assert.equal(await page.locator('.contents li:visible').count(), count);
  await page.getByRole('searchbox').fill('no such thing anywhere');
  assert.equal(await page.getByText('No matches.').isVisible(), true);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('[data-entry]:visible').count(), ROUTES.length);
  assert.deepEqual(visit.problems, []);
});

test('/api-reference describes every route: fields, refusals with status and code', async () => {
  const entries = entriesOf(await markupOf('/api-reference'));
  assert.equal(entries.size, ROUTES.length);
  for (const route of ROUTES) {
    const text = textOf(entries.get(anchorOf(route)) ?? '');
    assert.ok(text.includes(route.path) && text.includes(route.summary), route.path);
    for (const name of route.refusals) {
      const { status, code } = REFUSALS[name];
      assert.ok(text.includes(`${status} ${code}`), `${route.path} ${code}`);
    }
    for (const field of Object.keys(route.body?.properties ?? {})) {
      assert.ok(text.includes(field), `${route.path} ${field}`);
    }
  }
});

test('/cli-reference describes every command with all its options, its help in fields that wrap', async () => {
  const entries = entriesOf(await markupOf('/cli-reference'));
  assert.equal(entries.size, COMMANDS.commands.length);
  assert.ok(COMMANDS.commands.length > 40);
  for (const command of COMMANDS.commands) {
    const text = textOf(entries.get(command.path.replaceAll(' ', '-')) ?? '');
    for (const { term, description } of [...command.options, ...command.arguments]) {
      assert.ok(text.includes(term) && text.includes(description), `${command.path} ${term}`);
    }
    const shown = text.replace(/\s+/g, '');
    for (const line of command.notes.split('\n')) {
      assert.ok(shown.includes(line.replace(/\s+/g, '')), `${command.path} ${line}`);
    }
  }
  const serve = entries.get('serve') ?? '';
  assert.match(serve, /<dt>MESH_LEASE_MS<dd>with --store: [^<]* 1500\)</);
  assert.match(serve, /<pre>Examples:\n {2}\$ mesh-na/);
});

test('/cli-reference of the program itself describes its own commands, on any number of threads', async (t) => {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true }));
  const server = await startChildServer(folder, { args: ['--threads', '2'] });
  await using running = server.na;
  const { text } = await send(running, 'GET', '/cli-reference');
  assert.equal(entriesOf(text).size, COMMANDS.commands.length);
});

test('/ links to every route that is not a page, and names the network and its keys', async () => {
  const text = await markupOf('/');
  const genesis = (await send(na, 'GET', '/genesis')).body;
  const words = textOf(text);
  for (const fact of ['alpha', genesis.network_authority.public_key, genesis.root_public_key]) {
    assert.ok(words.includes(String(fact)), fact);
  }
  for (const { method, path, answer } of ROUTES) {
    if ('contentType' in answer && String(answer.contentType).startsWith('text/html')) continue;
    const link = `<span class="verb">${method}</span> ${path}</a>`;
    assert.ok(text.includes(link), `${method} ${path}`);
  }
});

test('/ shows commands with the address at which it was requested', async () => {
  await using proxied = await startTestAuthority({
    environment: { MESH_PUBLIC_URL: 'https://na.example/mesh' },
  });
  const { text } = await send(proxied, 'GET', '/');
  assert.ok(text.includes('curl -s https://na.example/mesh/genesis'));
  assert.doesNotMatch(text, /href="\//, 'links stay below the path of the proxy');
  await using local = await browser.visit(`${na.url}/`);
  const shown = await local.page.locator('main').textContent();
  assert.ok(shown?.includes(`curl -s ${na.url}/genesis`));
  assert.ok(shown?.includes(`Address${na.url}`));
});

test('a chosen theme also applies to the next page', async () => {
  await using visit = await browser.visit(`${na.url}/`, { theme: 'light' });
  const { page } = visit;
  const paper = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  const light = await paper();
  await page.getByRole('button', { name: 'Switch to dark theme' }).click();
  const dark = await paper();
  assert.notEqual(dark, light);
  await page.goto(`${na.url}/search`);
  assert.equal(await paper(), dark);
  assert.deepEqual(await visit.violations(), []);
  await page.getByRole('button', { name: 'Switch to light theme' }).click();
  assert.equal(await paper(), light);
});

test('public documents of more than a kilobyte are compressed for clients that accept it', async () => {
  for (const path of ['/crl', '/swagger.json', '/recognition-graph', ...PAGES]) {
    const plain = await sendRaw(na, 'GET', path);
    const response = await fetch(na.url + path, { headers: GZIP });
    const isLong = Buffer.byteLength(plain.text) > 1024;
    assert.equal(response.headers.get('content-encoding'), isLong ? 'gzip' : null, path);
    assert.equal(await response.text(), plain.text, path);
    if (isLong) {
      const length = Number(response.headers.get('content-length'));
      assert.ok(length < Buffer.byteLength(plain.text), path);
    }
  }
});

test('a compressed page is a complete gzip file, for those that accept it in any way', async () => {
  for (const [accepted, encoding] of [
    ['br, gzip;q=0.5', 'gzip'],
    ['GZIP', 'gzip'],
    ['*', 'gzip'],
    ['identity, *;q=0.1', 'gzip'],
    ['', null],
    ['identity', null],
    ['br', null],
    ['gzip; q=0.000, *', null],
    ['*;q=0', null],
  ] as const) {
    const headers = { 'Accept-Encoding': accepted };
    const answer = await sendRaw(na, 'HEAD', '/api-reference', { headers });
    assert.equal(answer.headers.get('content-encoding'), encoding, accepted);
  }
  const { hostname, port } = new URL(na.url);
  const bytes = await new Promise<Buffer>((resolve, reject) => {
    const outgoing = request({ hostname, port, path: '/cli-reference', headers: GZIP });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => incoming.toArray().then(Buffer.concat).then(resolve));
    outgoing.end();
  });
  assert.equal(gunzipSync(bytes).toString('utf8'), await markupOf('/cli-reference'));
});

test('all pages have the same style and script, which browsers keep', async () => {
  const { text } = await send(na, 'GET', '/');
  const named = (page: string) => page.match(/assets\/[0-9a-f]{32}\.(?:css|js)(?=")/g) ?? [];
  const paths = named(text);
  assert.deepEqual(
    paths.map((path) => path.split('.').pop()),
    ['css', 'js'],
  );
  for (const path of PAGES) assert.deepEqual(named((await send(na, 'GET', path)).text), paths);
  const [style = '', script = ''] = paths;
  for (const [name, type, most] of [
    [style, 'text/css', 7000],
    [script, 'text/javascript', 10_800],
  ] as const) {
    const path = `/${name}`;
    const plain = await sendRaw(na, 'GET', path);
    assert.equal(plain.status, 200);
    assert.equal(plain.headers.get('content-type'), `${type}; charset=utf-8`);
    assert.equal(plain.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(plain.headers.get('x-content-type-options'), 'nosniff');
    const etag = plain.headers.get('etag') ?? '';
    assert.equal(path.split(/[/.]/)[2], etag.slice(1, -1));
    const head = await sendRaw(na, 'HEAD', path, { headers: GZIP });
    assert.equal(head.headers.get('content-encoding'), 'gzip');
    const length = Number(head.headers.get('content-length'));
    assert.ok(length < most, `${path}: ${length}`);
    const again = await sendRaw(na, 'GET', path, { headers: { 'If-None-Match': etag } });
    assert.deepEqual([again.status, again.text], [304, '']);
    assert.equal(again.headers.get('cache-control'), plain.headers.get('cache-control'));
  }
});

test('a digest that no page of this version names is not found, and that is not kept', async () => {
  for (const path of ['0'.repeat(32), 'x', '..%2f', '%00'].flatMap((digest) => [
    `/assets/${digest}.css`,
    `/assets/${digest}.js`,
  ])) {
    const { status, headers } = await sendRaw(na, 'GET', path);
    assert.equal(status, 404, path);
    assert.equal(headers.get('cache-control'), 'no-store');
  }
});

test('documents that are not pages keep the policy that allows nothing', async () => {
  for (const path of ['/crl', '/healthz', '/no-such-route']) {
    const { headers } = await send(na, 'GET', path);
    const policy = headers.get('content-security-policy');
    assert.equal(policy, "default-src 'none'; frame-ancestors 'none'", path);
  }
});

// What a browser gets for an unknown path; programs get the envelope.

const OF_CHROMIUM =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8';

function asked(method: string, path: string, accept?: string) {
  const headers = { 'X-Request-ID': 'same', ...(accept === undefined ? {} : { Accept: accept }) };
  return sendRaw(na, method, path, { headers });
}

for (const accept of [OF_CHROMIUM, 'text/html', 'text/*', 'text/html, application/json;q=0.9']) {
  test(`an unknown path is a page for clients that prefer one: ${accept}`, async () => {
    const { status, headers, text } = await asked('GET', '/nowhere', accept);
    assert.equal(status, 404);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('vary'), 'Accept, Accept-Encoding');
    assert.equal(headers.get('etag'), null);
    assert.equal(headers.get('x-request-id'), 'same');
    assert.match(
      headers.get('content-security-policy') ?? '',
      /^default-src 'none'; style-src 'self'; script-src 'self'; /,
    );
    const head = await asked('HEAD', '/nowhere', accept);
    assert.equal(head.status, 404);
    assert.equal(head.text, '');
    assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(text)));
  });
}

test('it is compressed for clients that accept it', async () => {
  const plain = await asked('GET', '/nowhere', 'text/html');
  const { headers, bytes } = await exchange(`${na.url}/nowhere`, {
    method: 'GET',
    headers: { Accept: 'text/html' },
  });
  assert.equal(headers.get('content-encoding'), 'gzip');
  assert.ok(Number(headers.get('content-length')) < plain.text.length / 2);
  assert.equal(bytes.toString(), plain.text);
});

test('for all others it is the envelope, byte for byte', async () => {
  const plain = await asked('GET', '/nowhere');
  assert.equal(
    plain.text,
    '{"error":{"code":"not_found","message":"The path does not exist","details":{},"request_id":"same"}}',
  );
  const accepted = [
    '*/*',
    'application/json',
    'application/json, text/html',
    'text/html;q=0.5, application/json',
    'text/html;q=0',
    'text/html;q=0.5, */*',
    'image/png',
    'nonsense',
    `text/html, ${'a/b,'.repeat(900)}c/d`,
  ];
  for (const accept of accepted) {
    const answer = await asked('GET', '/nowhere', accept);
    assert.equal(answer.text, plain.text, accept);
    const names = [...answer.headers.keys()].filter((name) => name !== 'date');
    assert.deepEqual(
      names,
      [...plain.headers.keys()].filter((name) => name !== 'date'),
    );
  }
});

test('a page is only for an unknown path, and only for reads', async () => {
  assert.equal(outcome(await asked('POST', '/nowhere', OF_CHROMIUM)), '404 not_found');
  assert.equal(outcome(await asked('PUT', '/crl', OF_CHROMIUM)), '405 method_not_allowed');
  assert.equal(outcome(await asked('GET', '/%zz', OF_CHROMIUM)), '400 bad_request');
  assert.equal(
    outcome(await asked('GET', '/attestations/none', OF_CHROMIUM)),
    '404 attestation_not_found',
  );
  assert.equal(outcome(await asked('GET', `/${'a/'.repeat(40)}`, OF_CHROMIUM)), '404 not_found');
});

for (const path of ['/deep/in/nowhere/', '//nowhere?q=1']) {
  test(`in a browser, ${path} says so and links to what exists`, async () => {
    await using visit = await browser.visit(na.url + path, { width: NARROW });
    const { page } = visit;
    assert.equal(await page.locator('h1').textContent(), 'Page not found');
    assert.deepEqual(await visit.violations(), []);
    assert.equal(await visit.overflow(), 0);
    // Chromium reports the status as a console error.
    assert.deepEqual(
      visit.problems.filter((problem) => !problem.includes('404')),
      [],
    );
    const hrefs = await page
      .locator('a')
      .evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href));
    for (const target of ['', 'dashboard', 'api-reference', 'cli-reference']) {
      assert.ok(hrefs.includes(`${na.url}/${target}`), target);
    }
    await page.getByRole('searchbox').fill('renew');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${na.url}/search?q=renew`);
    assert.equal(await page.getByRole('searchbox').inputValue(), 'renew');
  });
}

test('a hostile network name is text on it', async (t) => {
  const { folder } = makeNetworkFolder(HOSTILE_NAME);
  t.after(() => rmSync(folder, { recursive: true }));
  await using hostile = await startTestAuthority({ dataDir: folder });
  await using visit = await browser.visit(`${hostile.url}/nowhere`);
  assert.equal(await visit.page.locator('.brand-name').textContent(), HOSTILE_NAME);
  assert.equal(await visit.page.evaluate('window.hacked'), undefined);
});

// HTML templates: every value stays text, regardless of its content.

const PIECES = [...`<>"'&/!=\``, '--', '<script>', '</p>', '&lt', '\u202E'];
const hostile = fc.array(
  fc.oneof(fc.constantFrom(...PIECES), fc.string({ unit: 'grapheme', maxLength: 4 })),
  { maxLength: 12 },
);

test('a browser reads every text and attribute as it was given, and finds no element in it', async () => {
  const given = [...fc.sample(hostile, 500).map((pieces) => pieces.join('')), HOSTILE_NAME].map(
    // An HTML parser turns CR LF into one line break, and replaces null characters.
    (text) => text.replaceAll('\r', ' ').replaceAll('\0', ' '),
  );
  const list = html`<ul>${given.map((text) => html`<li title="${text}" class="a ${text}">${text}</li>`)}</ul>`;
  await using visit = await browser.visit('about:blank');
  const read = await visit.page.evaluate<[string, string, string, number][]>(
    `(() => {
      const parsed = new DOMParser().parseFromString(${JSON.stringify(list.text)}, 'text/html');
      return [...parsed.querySelectorAll('ul > *')].map((item) => [
        item.textContent, item.title, item.className, item.attributes.length + item.children.length,
      ]);
    })()`,
  );
  assert.deepEqual(
    read,
    given.map((text) => [text, text, `a ${text}`, 2]),
  );
});

test('markup is inserted unchanged, alone or in lists', () => {
  const item = (count: number) => html`<li>${count}</li>`;
  assert.equal(html`<ul>${[1, 2].map(item)}${NO_HTML}</ul>`.text, '<ul><li>1</li><li>2</li></ul>');
});

test('text is refused where its characters would mean something, however harmless it looks', () => {
  for (const [place, template] of [
    ['where an attribute would be', (text: Content) => html`<a ${text}>b</a>`],
    ['in an attribute without quotes', (text: Content) => html`<a href=${text}>b</a>`],
    ['in an attribute with single quotes', (text: Content) => html`<a href='${text}'>b</a>`],
    ['as the name of an element', (text: Content) => html`<${text}>b</b>`],
    ['in a script', (text: Content) => html`<p></p><script type="module">${text}</script>`],
    ['in a style', (text: Content) => html`<style>a{}${text}</style>`],
  ] as const) {
    assert.throws(() => template('harmless'), /is not allowed/, place);
    assert.doesNotThrow(() => template(Html.trusted('b')), place);
  }
});

test('markup in an attribute is refused: its quotes are not escaped', () => {
  assert.throws(() => html`<p title="${html`${'"'}`}"></p>`, /accepts text, not markup/);
  assert.throws(() => html`<p title="a ${[NO_HTML]}"></p>`, /accepts text, not markup/);
});

test('a closed script, and angle brackets in quotes, do not affect the text after them', () => {
  const text = html`<script>${Html.trusted('1 < 2 && "a"')}</script><p title="a > b">${'<b>'}</p>`
    .text;
  assert.equal(text, '<script>1 < 2 && "a"</script><p title="a > b">&lt;b&gt;</p>');
});

test('a misspelt member, a missing value and an object that only looks like markup do not compile', () => {
  const row: { readonly name: string; readonly note?: string } = { name: 'beta' };
  const lookalike = { text: '<b>', toString: () => '<b>' };
  const refused = [
    // @ts-expect-error There is no such member.
    () => html`<p>${row.nmae}</p>`,
    // @ts-expect-error It may be missing.
    () => html`<p>${row.note}</p>`,
    // @ts-expect-error It was not created by a template.
    () => html`<p>${lookalike}</p>`,
  ];
  assert.equal(refused.length, 3);
});
