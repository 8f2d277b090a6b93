/**
 * Replaces places in the compiled tests by those in their sources. Only the runner does this, for what it prints: with
 * `--enable-source-maps`, every process would read the maps of all modules that it loads.
 */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, resolve } from 'node:path';
import { PROJECT_PATH } from './project.ts';

interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const COMPILED = /(?:file:\/\/)?((?:\/[^\s():]*)?\bbuild\/[^\s():]+\.js):(\d+):(\d+)/g;

const maps = new Map<string, SourceMap | null>();

/** Null if the place has no known source. Lines and columns count from 1. */
export function sourcePlace(file: string, line: number, column: number): Place | null {
  const origin = mapOf(file)?.findOrigin(line, column);
  if (origin === undefined || !('fileName' in origin)) return null;
  return {
    file: resolve(dirname(file), origin.fileName),
    line: origin.lineNumber,
    column: origin.columnNumber,
  };
}

export async function* withSourcePlaces(output: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const text of output) {
    yield String(text).replace(COMPILED, (shown, path: string, line: string, column: string) => {
      const place = sourcePlace(resolve(PROJECT_PATH, path), Number(line), Number(column));
      return place === null ? shown : `${place.file}:${place.line}:${place.column}`;
    });
  }
}

function mapOf(file: string): SourceMap | null {
  const known = maps.get(file);
  if (known !== undefined) return known;
  const path = `${file}.map`;
  const map = existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null;
  maps.set(file, map);
  return map;
}
