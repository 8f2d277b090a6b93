/**
 * What documents say of the code: citations of `docs/wire` and links lead somewhere, its pages name all that exists, tests
 * that are named are there, words are plain, and generated pages match. `docs.deep.test.ts` tests what documents print.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROUTES } from '../src/edge/routes/table.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { AUDIT_EVENTS } from '../src/protocol/rows/audit-event.ts';
import { SERIES } from '../src/protocol/rows/history.ts';
import { GROUPS, type OptionEntry } from '../src/server/config/options.ts';
import { PAGES } from '../tools/reference/pages.ts';
import { markdownFiles, readDocument } from './support/documents.ts';
import { PROJECT, PROJECT_PATH } from './support/project.ts';

/** This file mentions the old forms; in the others, a reporter and a manifest member have names that look like them. */
const EXEMPT = ['test/docs.test.ts', 'test/kubernetes.deep.test.ts', 'test/run.ts'];

const files = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
  .concat('docs', 'src', 'machines', 'test', 'bench', 'tools')
  .flatMap(filesAt)
  .filter((file) => /\.(?:ts|js|md)$/.test(file))
  .map((file) => ({ file, text: readFileSync(join(PROJECT_PATH, file), 'utf8') }));
const texts = files.filter(({ file }) => !EXEMPT.includes(file));
const code = texts.filter(({ file }) => !file.endsWith('.md'));
const pages = texts.filter(({ file }) => file.endsWith('.md'));

const anchors = pages
  .filter(({ file }) => file.startsWith('docs/wire/'))
  .flatMap(({ text }) => [...text.matchAll(/<a id="([^"]+)"/g)].map(([, id]) => id ?? ''));

test('each clause of the contract has an anchor of its own', () => {
  assert.ok(anchors.length > 200);
  assert.deepEqual(repeated(anchors), []);
});

test('each citation in the code leads to a clause of the contract', () => {
  const known = new Set(anchors);
  const citations = found(
    code,
    /\[((?:core|trust|service|backup|events|authority-keys)-[^\]\s]*)\]/g,
  );
  assert.ok(citations.length > 250);
  assert.deepEqual(
    citations.filter(({ match }) => !known.has(match)).map(({ at, match }) => `${at}: ${match}`),
    [],
  );
});

test('the contract is cited in no other form', () => {
  const anywhere = /\bwire (?:core |trust )?(?:rules?|[0-9]|core\b|trust\b)|\bspec,/gi;
  const inCode = [
    anywhere,
    /\bspecs?\b/gi,
    /\[(?:core|trust|service) [0-9G-T]/g,
    /(?<=\s)\((?:[1-9]|1[0-2])\.[0-9]{1,2}\)/g,
    /(?<=\s)\([a-z]+, [0-9]/g,
    /\b(?:clause|section) [0-9]/gi,
  ];
  const old = [...inCode.flatMap((form) => found(code, form)), ...found(pages, anywhere)];
  assert.deepEqual(
    old.map(({ at, match }) => `${at}: ${match}`),
    [],
  );
});

test('every document that is named exists', () => {
  const named = found(texts, /(?<![\w.*:/-])((?:\.\.?\/)*[\w-]+(?:\/[\w-]+)*\.md)\b(?!\]\()/g);
  assert.ok(named.some(({ match }) => match === 'core.md'));
  assert.deepEqual(
    named
      .filter(({ file, match }) => !leadsToFile(file, match))
      .map(({ at, match }) => `${at}: ${match}`),
    [],
  );
});

test('every link in a document leads to an existing file, heading or anchor', () => {
  const broken = markdownFiles().flatMap((path) =>
    linksOf(readDocument(path))
      .filter((link) => !leadsToPlace(path, link))
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

test('every alert names the section that says what to do', () => {
  const rules = readDocument('docs/deploy/prometheus-rules.yml');
  const urls = [...rules.matchAll(/^ +runbook_url: '(.*)'$/gm)].map(([, url = '']) => url);
  assert.equal(urls.length, rules.match(/- alert: /g)?.length);
  assert.deepEqual(
    urls.filter((url) => !leadsToPlace('docs/monitoring.md', url)),
    [],
  );
});

test('every deep test has existing short forms', () => {
  const rows = readDocument('test/README.md').matchAll(/^\| (`.*`) \| (`.*`) \|$/gm);
  const tests = readdirSync(join(PROJECT_PATH, 'test'), { recursive: true, encoding: 'utf8' });
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

interface Found {
  readonly file: string;
  /** `<file>:<line>` */
  readonly at: string;
  readonly match: string;
}

/** The first group of each match, or the whole match. */
function found(where: typeof texts, pattern: RegExp): Found[] {
  return where.flatMap(({ file, text }) =>
    [...text.matchAll(pattern)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      return { file, at: `${file}:${line}`, match: match[1] ?? match[0] };
    }),
  );
}

/** A document is named relative to the file's folder, the project, or `docs`. */
function leadsToFile(file: string, path: string): boolean {
  return [dirname(file), '.', 'docs'].some((folder) =>
    existsSync(join(PROJECT_PATH, folder, path)),
  );
}

/** Targets of links and images, and sources of pictures, except in fenced blocks. */
function linksOf(markdown: string): string[] {
  const text = markdown.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '');
  const found = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)];
  return found.map(([, link, source]) => link ?? source ?? '');
}

function leadsToPlace(from: string, link: string): boolean {
  if (/^https?:/.test(link)) return true;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? from : join(dirname(from), path);
  if (!existsSync(join(PROJECT_PATH, target))) return false;
  return anchor === undefined || anchorsOf(readDocument(target)).has(anchor);
}

/** The anchors of a page: explicit ones, and those that headings get when they are rendered. */
function anchorsOf(markdown: string): Set<string> {
  const ids = [...markdown.matchAll(/<a id="([^"]+)"/g)].map(([, id]) => id ?? '');
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...ids, ...headings]);
}

function repeated(values: readonly string[]): string[] {
  return values.filter((value, at) => values.indexOf(value) !== at);
}

function filesAt(path: string): string[] {
  if (statSync(join(PROJECT_PATH, path)).isFile()) return [path];
  return readdirSync(join(PROJECT_PATH, path)).flatMap((name) => filesAt(join(path, name)));
}

// Words that read as foreign: the number of their uses may only decrease.

/** How often each is still used in sources, tests and documents. Find better words, and lower the number. */
const LEFT: Readonly<Record<string, number>> = {
  whoever: 0,
  beside: 0,
  told: 0,
  'tells?': 0,
  'so many': 0,
  'is made': 0,
  'found out': 0,
};

const READ =
  /^(?:(?:README|CONTRIBUTING|SECURITY)\.md|src\/.*\.[jt]s|(?:machines|bench|test)\/.*\.ts|docs\/.*\.md)$/;
const sentences = files.filter(({ file }) => READ.test(file) && file !== 'test/docs.test.ts');

for (const [word, left] of Object.entries(LEFT)) {
  test(`"${word}" is in no further sentence`, () => {
    const found = sentences.flatMap(
      ({ text }) => text.match(new RegExp(`\\b${word}\\b`, 'gi')) ?? [],
    );
    assert.equal(found.length, left, 'it became less: lower the number; more: write it otherwise');
  });
}

// The files and functions that the tour names exist.

const tour = readFileSync(new URL('docs/code-tour.md', PROJECT), 'utf8');

/** A path, and the names in backquotes that follow it before the next path. */
const STOPS = [...tour.matchAll(/`((?:src|machines|test)\/[\w./-]*)`((?:[^`]*`\w+`)*)/g)];

test('the tour stops at files', () => {
  assert.ok(STOPS.length > 30);
  for (const [, path = ''] of STOPS) assert.ok(existsSync(new URL(path, PROJECT)), path);
});

test('everything that the tour names in a file is defined there', () => {
  const named = STOPS.flatMap(([, path = '', names = '']) => {
    const [list = ''] = /^[\s(]*`\w+`(?:,?\s+(?:(?:then|or|and)\s+)?`\w+`)*/.exec(names) ?? [];
    const listed = [...list.matchAll(/\w+(?=`)/g)];
    return path.endsWith('.ts') ? listed.map(([name]) => ({ path, name })) : [];
  });
  assert.ok(named.length > 25);
  for (const { path, name } of named) {
    const defined = new RegExp(`\\b(?:function\\*?|const|class|interface) ${name}\\b`);
    assert.match(readFileSync(new URL(path, PROJECT), 'utf8'), defined, `${name} in ${path}`);
  }
});

// The generated pages of `docs/` match the code.

for (const [name, page] of Object.entries(PAGES)) {
  test(`docs/${name} matches the code: if not, run npm run docs`, () => {
    assert.equal(readFileSync(new URL(`docs/${name}`, PROJECT), 'utf8'), page(PROJECT_PATH));
  });
}

// The pages of `docs/wire` name every existing route, error, limit, metric and event, and no others.

const service = readDocument('docs/wire/service.md');
const core = readDocument('docs/wire/core.md');

const ACCESS: Readonly<Record<string, string>> = {
  Public: 'public',
  Internal: 'internal',
  Node: 'node',
  Operator: 'operator',
  'Operator-privileged': 'operator-privileged',
  'Public; Operator': 'public-or-operator',
};

test('every route is a row of the endpoint tables, with its access, and has the limit that counts it', () => {
  const rows = rowsOf(service, 'service-endpoints', 'service-events');
  const counting = rowsOf(core, 'core-4-1', 'core-4-2').filter(([bucket]) => bucket !== 'Bucket');
  const limitOf = (method: string, path: string, access: string) => {
    if (method === 'POST' && path.startsWith('/admin/')) return 'ADMIN';
    if (method === 'POST' && access === 'public') return 'VERIFY';
    const named = counting.find(
      ([bucket, , counts = '']) =>
        counts.includes(`\`${method} ${path.replace('{node_public_key}', '…')}\``) ||
        (bucket === '`SEARCH`' && method === 'GET' && counts.includes(`\`${path}\``)),
    );
    return named?.[0]?.replaceAll('`', '') ?? 'none';
  };
  const documented = rows.flatMap(([first = '', second = '']) => {
    const [, method = 'POST', path] = /^(?:(GET|POST|DELETE) )?`(\/[^`?]*)/.exec(first) ?? [];
    if (path === undefined) return [];
    // The tables of records and of verifications say it above all of their rows.
    const access = ACCESS[second] ?? (path.startsWith('/admin/') ? 'operator' : 'public');
    return [`${method} ${path} ${access} ${limitOf(method, path, access)}`];
  });
  const served = ROUTES.map(
    ({ method, path, access, limit }) => `${method} ${path} ${access} ${limit}`,
  );
  assert.deepEqual(documented.toSorted(), served.toSorted());
});

test('every series of the history is a row, in the order in which the values of a row are stored', () => {
  const rows = rowsOf(core, 'core-4-22', 'core-4-23').filter((row) => row.length === 3);
  const documented = rows.slice(rows.findIndex(([first]) => first === 'Series') + 1);
  assert.deepEqual(
    documented,
    SERIES.map(({ name, kind, meaning }) => [`\`${name}\``, kind, meaning]),
  );
});

test('every error code is named by the clause of a route or of a check', () => {
  const named = new Set(
    contractPages().flatMap((page) => matches(page, /(?<=`(?:[0-9]{3} )?)[a-z][a-z_]+(?=`)/g)),
  );
  assert.ok(Object.values(REFUSALS).length > 100);
  const codes = Object.values(REFUSALS).map(({ code }) => code);
  assert.deepEqual(
    codes.filter((code) => !named.has(code)),
    [],
  );
});

test('a code that a clause names together with a status is answered with this status', () => {
  const contract = contractPages().join('\n');
  const inText = matches(contract, /(?<=`)[45][0-9]{2} [a-z][a-z_]+(?=`)/g);
  const inRows = [...contract.matchAll(/^\|.*? ([45][0-9]{2}) \| (`.*?) \|/gm)].flatMap(
    ([, status, codes = '']) => quotedNames(codes).map((code) => `${status} ${code}`),
  );
  const answered = new Set<string>(
    Object.values(REFUSALS).map(({ status, code }) => `${status} ${code}`),
  );
  assert.ok(inText.length > 100);
  assert.ok(inRows.length > 20);
  assert.deepEqual(
    [...inText, ...inRows].filter((each) => !answered.has(each)),
    [],
  );
});

test('every rate limit is a row of the limit table, with its default', () => {
  const fromCore = rowsOf(core, 'core-4-1', 'core-4-2').flatMap(([bucket = '', fallback]) =>
    quotedNames(bucket).map((name) => [name, fallback] as const),
  );
  const buckets = fromCore.filter(([, fallback = '']) => /^(?:off|[0-9]+\/[0-9]+)$/.test(fallback));
  const limits = Object.values<OptionEntry>(GROUPS['Rate limits']);
  const defaults = Object.fromEntries(
    limits.map(({ variable = '', fallback }) => [
      variable.replace('MESH_RATE_LIMIT_', ''),
      fallback,
    ]),
  );
  assert.deepEqual(Object.fromEntries(buckets), defaults);
});

test('every metric is a row of the metrics table', () => {
  const metric = /\bmesh_na_[a-z_0-9]*[a-z0-9]/g;
  const modules = readdirSync(new URL('src/server/metrics', PROJECT));
  const sources = modules.map((name) => readDocument(`src/server/metrics/${name}`));
  sources.push(readDocument('src/edge/metrics.ts'));
  const kept = matches(sources.join('\n'), metric);
  assert.ok(kept.length > 15);
  assert.deepEqual(
    matches(section(service, 'service-metrics', 'service-node-endpoints'), metric),
    kept,
  );
});

test('every audit event is a row of the event table', () => {
  const recorded = AUDIT_EVENTS.toSorted();
  assert.ok(recorded.length > 30);
  const rows = rowsOf(service, 'service-audit-events', 'service-logs');
  const documented = rows.flatMap(([event = '']) => quotedNames(event));
  assert.deepEqual(documented.toSorted(), recorded);
});

function contractPages(): string[] {
  return readdirSync(new URL('docs/wire', PROJECT)).map((name) =>
    readDocument(`docs/wire/${name}`),
  );
}

/** The text between two anchors. */
function section(page: string, from: string, to: string): string {
  const start = page.indexOf(`<a id="${from}"`);
  const end = page.indexOf(`<a id="${to}"`);
  assert.ok(start >= 0 && end > start, `${from} to ${to}`);
  return page.slice(start, end);
}

/** The cells of every table row between two anchors. */
function rowsOf(page: string, from: string, to: string): string[][] {
  return section(page, from, to)
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
    .map((line) =>
      line
        .slice(2, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    );
}

function quotedNames(cell: string): string[] {
  return [...cell.matchAll(/`([A-Za-z_]+)`/g)].map(([, name]) => name ?? '');
}

/** Each distinct match, in order. */
function matches(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([match]) => match))].toSorted();
}
