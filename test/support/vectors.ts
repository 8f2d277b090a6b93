/** The vectors that other implementations can test against; see `test/vectors/README.md`. */
import { readFileSync } from 'node:fs';
import { parseJson } from '../../src/base/json/parse.ts';
import { PROJECT } from './project.ts';

/** Numbers keep their kind. */
export function readVectors<Vectors>(file: string): Vectors {
  const text = readFileSync(new URL(`test/vectors/${file}`, PROJECT), 'utf8');
  return (parseJson(text) as { vectors: unknown }).vectors as Vectors;
}
