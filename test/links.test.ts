/** Links in documents, and names of tests in them. `docs.deep.test.ts` tests the output that they show. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { test } from 'node:test';
import { markdownFiles, readDocument } from './support/documents.ts';
import { PROJECT_PATH as root } from './support/project.ts';

test('every link in a document leads to an existing file, heading or anchor', () => {
  const broken = markdownFiles().flatMap((path) =>
    linksOf(readDocument(path))
      .filter((link) => !leadsSomewhere(path, link))
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

test('every alert names the section that says what to do', () => {
  const rules = readDocument('docs/deploy/prometheus-rules.yml');
  const urls = [...rules.matchAll(/^ +runbook_url: '(.*)'$/gm)].map(([, url = '']) => url);
  assert.equal(urls.length, rules.match(/- alert: /g)?.length);
  assert.deepEqual(
    urls.filter((url) => !leadsSomewhere('docs/monitoring.md', url)),
    [],
  );
});

test('every deep test has existing short forms', () => {
  const rows = readDocument('test/README.md').matchAll(/^\| (`.*`) \| (`.*`) \|$/gm);
  const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' });
  const shortened = new Set<string>();
  for (const [, deep = '', short = ''] of rows) {
    for (const name of namesIn(deep)) shortened.add(name);
    for (const name of namesIn(short)) {
      const isThere = new RegExp(`^${name.replace('*', '[\\w-]*')}\\.test\\.ts$`);
      assert.ok(
        tests.some((path) => isThere.test(path)),
        name,
      );
    }
  }
  const isDeep = /\.deep\.test\.ts$/;
  const deep = tests.filter((path) => isDeep.test(path));
  assert.deepEqual(
    deep.filter((path) => !shortened.has(basename(path).replace(isDeep, ''))),
    [],
  );
});

function namesIn(cell: string): string[] {
  return cell.split('`').filter((_, index) => index % 2 === 1);
}

/** Targets of links and images, and sources of pictures, except in fenced blocks. */
function linksOf(markdown: string): string[] {
  const text = markdown.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');
  const found = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)];
  return found.map(([, link, source]) => link ?? source ?? '');
}

function leadsSomewhere(from: string, link: string): boolean {
  if (/^https?:/.test(link)) return true;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? from : posix.join(dirname(from), path);
  if (!existsSync(join(root, target))) return false;
  return anchor === undefined || anchorsOf(readDocument(target)).has(anchor);
}

function anchorsOf(markdown: string): Set<string> {
  const ids = [...markdown.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id ?? '');
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => slug(heading ?? ''));
  return new Set([...ids, ...headings]);
}

/** The anchor that Markdown renderers generate for a heading. */
function slug(heading: string): string {
  const words = heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '');
  return words.replaceAll(' ', '-');
}
