/** The documents of the project, as a reader finds them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { PROJECT_PATH as root } from './project.ts';

/** Paths from the top of the project, sorted; of hidden and of generated folders none. */
export function markdownFiles(): string[] {
  const entries = readdirSync(root, { withFileTypes: true });
  const places = entries.filter(
    ({ name }) => !/^(?:\.|node_modules$|build$|dist$|mesh-)/.test(name),
  );
  return places
    .flatMap((place) => (place.isDirectory() ? below(place.name) : [place.name]))
    .filter((path) => path.endsWith('.md'))
    .sort();
}

function below(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.map((name) => posix.join(folder, name));
}

/** The text of a document, by its path from the top of the project. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
