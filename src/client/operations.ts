/** The methods of clients: one for each operation of the API that answers JSON, with its name. */
import type { TSchema } from 'typebox';
import type { AnswerOf, SentOf } from '../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../protocol/api/table.ts';
import type { Access, RouteDescription } from '../protocol/route-description.ts';
import type { Calls, Parameters, SentObject } from './calls.ts';
import type { CallOptions } from './options.ts';

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
