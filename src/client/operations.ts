/** The methods of clients: one for each operation of the API that answers JSON, with its name; and long lists, page by page. */
import type { Static, TSchema } from 'typebox';
import type { JsonValue } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import { type AnswerOf, MOST_ROWS, type SentOf } from '../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../protocol/api/table.ts';
import type { Access, RouteDescription } from '../protocol/route-description.ts';
import { AuthorityError } from './authority-error.ts';
import { type Query, send } from './http.ts';
import type { CallOptions, ServerOptions } from './options.ts';

/** What is sent has the members of path, query and body in one object; without members, there is no such object. */
type Method<Declared> = [keyof SentOf<Declared>] extends [never]
  ? (call?: CallOptions) => Promise<AnswerOf<Declared>>
  : Partial<SentOf<Declared>> extends SentOf<Declared>
    ? (sent?: SentOf<Declared>, call?: CallOptions) => Promise<AnswerOf<Declared>>
    : (sent: SentOf<Declared>, call?: CallOptions) => Promise<AnswerOf<Declared>>;

/** The operations of some access classes. */
export type Operations<Allowed extends Access> = {
  readonly [Name in OperationName as Api[Name]['access'] extends Allowed
    ? [AnswerOf<Api[Name]>] extends [never]
      ? never
      : Name
    : never]: Method<Api[Name]>;
};

/** What the operation with this name is sent. */
export type Sent<Name extends OperationName> = SentOf<Api[Name]>;

export function operations<Allowed extends Access>(
  calls: Calls,
  ...accesses: readonly Allowed[]
): Operations<Allowed> {
  const included = Object.entries<RouteDescription>(API).filter(
    ([, { access, answer }]) =>
      !('contentType' in answer) && accesses.some((allowed) => allowed === access),
  );
  return Object.fromEntries(
    included.map(([name, operation]) => [name, methodOf(operation, calls)]),
  ) as unknown as Operations<Allowed>;
}

function methodOf(
  { method, path, query, body, answer: form }: RouteDescription,
  { get, post }: Calls,
) {
  const answer = form as TSchema;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const request = (sent: { readonly [member: string]: unknown } = {}, call?: CallOptions) => {
    const where = names.reduce(
      (filled, name) => filled.replace(`{${name}}`, encodeURIComponent(String(sent[name]))),
      path,
    );
    const others = Object.entries(sent).filter(([name]) => !names.includes(name));
    return method === 'GET'
      ? get(answer, where, Object.fromEntries(others) as Parameters, call)
      : post(answer, where, Object.fromEntries(others) as SentObject, call);
  };
  const hasMembers = names.length > 0 || query !== undefined || body !== undefined;
  return hasMembers ? request : (call?: CallOptions) => request({}, call);
}

interface Parameters {
  /** A list is sent as a repeated parameter. */
  readonly [name: string]: string | number | readonly string[] | undefined;
}

/** A body as callers give it; members that are undefined are not sent, like parameters. */
export interface SentObject {
  readonly [name: string]: JsonValue | undefined;
}

/** The calls of one client; `get` only reads. */
export interface Calls {
  get<Answer extends TSchema>(
    answer: Answer,
    path: string,
    parameters?: Parameters,
    call?: CallOptions,
  ): Promise<Static<Answer>>;
  post<Answer extends TSchema>(
    answer: Answer,
    path: string,
    body: SentObject,
    call?: CallOptions,
  ): Promise<Static<Answer>>;
}

/** Unauthenticated calls. They change nothing, so each may be retried. */
export function publicCalls(server: ServerOptions): Calls {
  return {
    get(answer, path, parameters = {}, call) {
      const query = queryOf(parameters);
      return send(server, { method: 'GET', path, query, answer, repeatable: true }, call);
    },
    post(answer, path, body, call) {
      const prepare = () => ({ body: jsonText(body) });
      return send(server, { method: 'POST', path, answer, repeatable: true, prepare }, call);
    },
  };
}

export function queryOf(parameters: Parameters): Query {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name, Array.isArray(value) ? value : [String(value)]]),
  );
}

interface PageQuery {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** Yields the rows of a list page by page; `read` requests one page. Throws when a cursor comes again. */
export async function* pagesOf<Page extends { readonly next_cursor?: string }, Row>(
  read: (query: PageQuery) => Promise<Page>,
  rowsIn: (page: Page) => readonly Row[],
): AsyncGenerator<readonly Row[], void> {
  const followed = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const page = await read({ limit: MOST_ROWS, cursor });
    yield rowsIn(page);
    cursor = page.next_cursor;
    if (cursor === undefined) return;
    if (followed.has(cursor)) throw endless(cursor);
    followed.add(cursor);
  }
}

const LONGEST_SHOWN = 100;

function endless(cursor: string): AuthorityError {
  const message = `The list has no end: its next_cursor ${cursor.slice(0, LONGEST_SHOWN)} came before`;
  return new AuthorityError(message, { status: 200, code: 'unreadable_answer' });
}
