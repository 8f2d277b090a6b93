/** Access is declared once, with the calls: routes and the authority both use it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { HANDLERS } from '../src/authority/commands.ts';
import { admitCalls, type Handlers } from '../src/authority/engine/admission.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { CALLS, type CallName } from '../src/protocol/contract/calls.ts';
import { PROJECT_PATH } from './support/project.ts';

const EDGE_FILES = join(PROJECT_PATH, 'src/edge');

test('a handler whose call declares no access prevents the start', () => {
  const unstated = { ...HANDLERS, unstated: () => null } as unknown as Handlers;
  assert.throws(() => admitCalls(unstated), /unstated states no access/);
});

test('every call has a handler, and every handler a call', () => {
  assert.deepEqual(Object.keys(HANDLERS).sort(), Object.keys(CALLS).sort());
});

test('a route has the access of the call it makes', () => {
  for (const route of ROUTES) {
    if (route.call === null) assert.match(route.access, /^(public|internal)$/, route.path);
    else if (route.path === '/nodes') assert.equal(route.access, 'public-or-operator');
    else assert.equal(route.access, CALLS[route.call].access, route.path);
  }
});

test('every call of a node or an operator has one route', () => {
  const guarded = (Object.keys(CALLS) as CallName[]).filter(
    (name) => !['public', 'internal'].includes(CALLS[name].access),
  );
  const reached = ROUTES.map(({ call }) => call).filter((call) => call !== null);
  for (const name of guarded) {
    if (name === 'openRoster') continue; // GET /nodes makes this call instead of `countNodes`.
    assert.equal(reached.filter((call) => call === name).length, 1, name);
  }
});

/** Calls that follow one that authenticated the operator; `openRoster` is the one that authenticates. */
const BEHIND_AN_ADMITTED_CALL: ReadonlySet<string> = new Set([
  'openRoster',
  'readRoster',
  'closeRoster',
]);

test('no route makes a guarded call other than its own', () => {
  const sources = readdirSync(EDGE_FILES, { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(EDGE_FILES, file), 'utf8'));
  const calls = sources.flatMap((text) => [...text.matchAll(/edge\.call\('(\w+)'/g)]);
  const names = new Set(calls.map(([, name = '']) => name as CallName));
  const stood = new Set(ROUTES.map(({ call }) => call));
  for (const name of names) {
    const { access } = CALLS[name];
    const isOpen = access === 'public' || BEHIND_AN_ADMITTED_CALL.has(name);
    assert.ok(isOpen || stood.has(name), `${name} has no route of its own`);
  }
});
