/** The files and functions that the tour names exist. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PROJECT } from './support/project.ts';

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
