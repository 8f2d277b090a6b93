/** The pages of `docs/wire` name every existing route, error, limit, metric and event, and no others. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { ROUTES } from '../src/edge/routes/table.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { AUDIT_EVENTS } from '../src/protocol/rows/audit-event.ts';
import { SERIES } from '../src/protocol/rows/history.ts';
import { GROUPS, type OptionEntry } from '../src/server/config/options.ts';
import { readDocument } from './support/documents.ts';
import { PROJECT } from './support/project.ts';

const service = readDocument('docs/wire/service.md');
const core = readDocument('docs/wire/core.md');

test('every route is a row of the endpoint tables', () => {
  const rows = rowsOf(service, 'service-endpoints', 'service-events');
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
    ([, status, codes = '']) => namesIn(codes).map((code) => `${status} ${code}`),
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
    namesIn(bucket).map((name) => [name, fallback] as const),
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
  const documented = rows.flatMap(([event = '']) => namesIn(event));
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

function namesIn(cell: string): string[] {
  return [...cell.matchAll(/`([A-Za-z_]+)`/g)].map(([, name]) => name ?? '');
}

/** Each distinct match, in order. */
function matches(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([match]) => match))].toSorted();
}
