/** The documents of the project, as a reader finds them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { PROJECT_PATH as root } from './project.ts';

/** Paths relative to the project's folder, sorted, without hidden and generated folders. */
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

/** The text of a document, by its path relative to the project's folder. */
export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
