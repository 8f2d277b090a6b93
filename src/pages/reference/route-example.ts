/** Example requests and answers of a route: the only source of examples that are shown or sent. */

import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import { exampleOf } from './example.ts';
import { inFull } from './openapi-schemas.ts';

/** A path or query parameter with its example. */
export type NamedExample = readonly [name: string, value: string];

/** The `{names}` of a path template in their order. */
export function pathExamples({ path }: RouteDescription): NamedExample[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, textExample({}, name)]);
}

/** The required query parameters, and those with an example. */
export function queryExamples({ query }: RouteDescription): NamedExample[] {
  const required = new Set(query?.required ?? []);
  return Object.entries(query?.properties ?? {}).flatMap(([name, member]): NamedExample[] => {
    const { example, ...schema } = inFull(member, 'sent');
    if (example !== undefined) return [[name, String(example)]];
    return required.has(name) ? [[name, textExample(schema, name)]] : [];
  });
}

function textExample(schema: JsonObject, name: string): string {
  return String(exampleOf({ type: 'string', ...schema }, name));
}

/** Undefined when the route takes no body. */
export function bodyExample(
  { body, example = {} }: RouteDescription,
  networkName: string,
): JsonObject | undefined {
  if (body === undefined) return undefined;
  const made = exampleOf(inFull(body, 'sent'), '', networkName) as JsonObject;
  return { ...made, ...example };
}

/** Undefined when the answer is a page or plain text. */
export function answerExample(
  { answer }: RouteDescription,
  networkName: string,
): JsonValue | undefined {
  if ('contentType' in answer) return undefined;
  return exampleOf(inFull(answer, 'answered'), '', networkName);
}
