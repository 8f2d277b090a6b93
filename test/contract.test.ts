/** The pages of `docs/wire` name every existing route, error, setting, limit, metric and event, and no others. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ROUTES } from '../src/edge/routes/table.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { AUDIT_EVENTS } from '../src/protocol/rows/audit-event.ts';
import { SERIES } from '../src/protocol/rows/history.ts';
import { GROUPS, OPTIONS, type OptionEntry } from '../src/server/config/options.ts';
import { PROJECT } from './support/project.ts';

const service = textOf('docs/wire/service.md');
const core = textOf('docs/wire/core.md');

test('every route is a row of the endpoint tables', () => {
  const rows = rowsOf(service, 'service-endpoints', 'service-authentication');
  const documented = rows.flatMap(([first = '']) => {
    const [, method = 'POST', path] = /^(?:(GET|POST|DELETE) )?`(\/[^`?]*)/.exec(first) ?? [];
    return path === undefined ? [] : [`${method} ${path}`];
  });
  const served = ROUTES.map(({ method, path }) => `${method} ${path}`);
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

test('every error code is a row of the code tables, with its statuses', () => {
  const answered = Object.values(REFUSALS).map(({ status, code }) => `${status} ${code}`);
  const documented = codesIn(rowsOf(service, 'service-error-codes', 'service-limits'));
  assert.deepEqual([...new Set(documented)].toSorted(), [...new Set(answered)].toSorted());
  const ofCore = codesIn(rowsOf(core, 'core-4-2', 'core-4-3'));
  assert.deepEqual(
    ofCore.filter((code) => !answered.includes(code)),
    [],
  );
});

test('every setting is a row of the configuration table, with its default', () => {
  const documented = rowsOf(core, 'core-7', 'core-8')
    .filter((row) => row.length === 4 && row[0] !== 'Flag' && !row[1]?.includes('<BUCKET>'))
    .map(([flag, variable, fallback = '']) => ({ flag, variable, fallback }));
  const settings = Object.values<OptionEntry>(OPTIONS).filter(
    ({ member }) => member?.startsWith('rate_limit.') !== true,
  );
  for (const { flag, variable, fallback } of settings) {
    const name = flag?.split(' ')[0];
    const row = documented.find((candidate) =>
      variable === undefined
        ? candidate.flag?.startsWith(`\`${name}`)
        : candidate.variable === `\`${variable}\``,
    );
    assert.ok(row, `${name ?? variable} is not documented`);
    if (name !== undefined) assert.ok(row.flag?.startsWith(`\`${name}`), `${name} has another row`);
    if (fallback !== undefined)
      assert.ok(row.fallback.endsWith(`\`${fallback}\``), `default of ${variable}`);
  }
  const known = new Set(settings.flatMap(({ variable }) => variable ?? []));
  const variables = documented.flatMap(({ variable = '' }) => namesIn(variable));
  assert.deepEqual(
    variables.filter((variable) => !known.has(variable)),
    [],
  );
});

test('every rate limit is a row of both limit tables, with its default', () => {
  const fromCore = rowsOf(core, 'core-4-1', 'core-4-2').flatMap(([bucket = '', fallback]) =>
    namesIn(bucket).map((name) => [name, fallback] as const),
  );
  const fromService = rowsOf(service, 'service-rate-limits', 'service-body-limits').flatMap(
    ([bucket = '', , fallback = '']) =>
      namesIn(bucket).map(
        (name) => [name, fallback.replace(/^(\d+) in (\d+) s$/, '$1/$2')] as const,
      ),
  );
  const buckets = new Map(fromCore);
  const limits = Object.values<OptionEntry>(GROUPS['Rate limits']);
  const defaults = Object.fromEntries(
    limits.map(({ variable = '', fallback }) => [
      variable.replace('MESH_RATE_LIMIT_', ''),
      fallback,
    ]),
  );
  for (const [bucket, fallback] of Object.entries(defaults)) {
    assert.equal(buckets.get(bucket), fallback, `core: ${bucket}`);
  }
  assert.deepEqual(Object.fromEntries(fromService), defaults);
});

test('every metric is named on both pages', () => {
  const metric = /\bmesh_na_[a-z_0-9]*[a-z0-9]/g;
  const modules = readdirSync(new URL('src/server/metrics', PROJECT));
  const sources = modules.map((name) => textOf(`src/server/metrics/${name}`));
  sources.push(textOf('src/edge/metrics.ts'));
  const kept = matches(sources.join('\n'), metric);
  assert.ok(kept.length > 15);
  assert.deepEqual(
    matches(section(service, 'service-metrics', 'service-node-endpoints'), metric),
    kept,
  );
  assert.deepEqual(matches(section(core, 'core-4-15', 'core-4-16'), metric), kept);
});

test('every audit event is a row of the event table', () => {
  const recorded = AUDIT_EVENTS.toSorted();
  assert.ok(recorded.length > 30);
  const rows = rowsOf(service, 'service-audit-events', 'service-logs');
  const documented = rows.flatMap(([event = '']) => namesIn(event));
  assert.deepEqual(documented.toSorted(), recorded);
});

function textOf(path: string): string {
  return readFileSync(new URL(path, PROJECT), 'utf8');
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

/** `<status> <code>` of the rows that begin with both. */
function codesIn(rows: readonly string[][]): string[] {
  return rows
    .filter(([status = '']) => /^\d{3}$/.test(status))
    .flatMap(([status, codes = '']) => namesIn(codes).map((code) => `${status} ${code}`));
}

function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([A-Za-z_]+)`/g)].map(([, name]) => name ?? '');
}

/** Each distinct match, in order. */
function matches(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([match]) => match))].toSorted();
}
