/** The generated pages of `docs/` match the code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PAGES } from '../tools/reference/pages.ts';
import { PROJECT, PROJECT_PATH } from './support/project.ts';

for (const [name, page] of Object.entries(PAGES)) {
  test(`docs/${name} matches the code: if not, run npm run docs`, () => {
    assert.equal(readFileSync(new URL(`docs/${name}`, PROJECT), 'utf8'), page(PROJECT_PATH));
  });
}
