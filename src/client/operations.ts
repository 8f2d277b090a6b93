/** The methods of clients: one for each operation of the API and each verification, with its name. */
import type { AnswerOf, SentOf } from '../protocol/api/define.ts';
import { API, type Api, type OperationName } from '../protocol/api/table.ts';
import * as verifications from '../protocol/api/verifications.ts';
import type { Access, RouteDescription } from '../protocol/route-description.ts';
import type { Calls, Parameters, SentObject } from './calls.ts';
import type { CallOptions } from './options.ts';

const METHODS = { ...API, ...verifications };
type Methods = typeof METHODS;

/** What is sent has the members of path, query and body in one object. */
type Method<Declared> =
  Partial<SentOf<Declared>> extends SentOf<Declared>
    ? (sent?: SentOf<Declared>, call?: CallOptions) => Promise<AnswerOf<Declared>>
    : (sent: SentOf<Declared>, call?: CallOptions) => Promise<AnswerOf<Declared>>;

/** The operations of some access classes. */
export type Operations<Allowed extends Access> = {
  readonly [Name in keyof Methods as Methods[Name]['access'] extends Allowed
    ? Name
    : never]: Method<Methods[Name]>;
};

/** What the operation with this name is sent. */
export type Sent<Name extends OperationName> = SentOf<Api[Name]>;

export function operations<Allowed extends Access>(
  calls: Calls,
  ...accesses: readonly Allowed[]
): Operations<Allowed> {
  const included = Object.entries(METHODS).filter(([, { access }]) =>
    accesses.some((allowed) => allowed === access),
  );
  return Object.fromEntries(
    included.map(([name, operation]) => [name, methodOf(operation, calls)]),
  ) as unknown as Operations<Allowed>;
}

function methodOf({ method, path, answer }: RouteDescription, { get, post }: Calls) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  return (sent: { readonly [member: string]: unknown } = {}, call?: CallOptions) => {
    if ('contentType' in answer) throw new Error(`${path} does not answer JSON`);
    const where = names.reduce(
      (filled, name) => filled.replace(`{${name}}`, encodeURIComponent(String(sent[name]))),
      path,
    );
    const others = Object.entries(sent).filter(([name]) => !names.includes(name));
    return method === 'GET'
      ? get(answer, where, Object.fromEntries(others) as Parameters, call)
      : post(answer, where, Object.fromEntries(others) as SentObject, call);
  };
}
