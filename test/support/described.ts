/** The published description [core-4-15] as tests read it. */
import type { TestAuthority } from './authority.ts';
import { get } from './requests.ts';

export interface Operation {
  readonly method: string;
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads members of a description it then asserts on
  readonly described: any;
}

export async function readDescription(na: TestAuthority) {
  const { body: document, text } = await get(na, '/swagger.json');
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, described]): Operation => ({ method: method.toUpperCase(), path, described }),
    ),
  );
  return { document, text, operations };
}
