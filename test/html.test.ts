/** HTML templates: every value stays text, regardless of its content. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Content, Html, html, NO_HTML } from '../src/pages/ui/html.ts';
import { HOSTILE_NAME, sharedBrowser } from './support/browser.ts';

const open = sharedBrowser();

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
  await using visit = await open('about:blank');
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
