/** Words that read as foreign: the number of their uses may only decrease. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_PATH } from './support/project.ts';

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

const texts = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...below('src', /\.[jt]s$/),
  ...below('machines', /\.ts$/),
  ...below('docs', /\.md$/),
  ...below('bench', /\.ts$/),
  ...below('test', /\.ts$/).filter((path) => !path.endsWith('words.test.ts')),
].map((path) => readFileSync(join(PROJECT_PATH, path), 'utf8'));

function below(folder: string, name: RegExp): string[] {
  const names = readdirSync(join(PROJECT_PATH, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((each) => name.test(each)).map((each) => join(folder, each));
}

for (const [word, left] of Object.entries(LEFT)) {
  test(`"${word}" is in no further sentence`, () => {
    const found = texts.flatMap((text) => text.match(new RegExp(`\\b${word}\\b`, 'gi')) ?? []);
    assert.equal(found.length, left, 'it became less: lower the number; more: write it otherwise');
  });
}
