/** How client methods call routes: with the schema of the answer, the path, and the parameters or body. */
import type { Static, TSchema } from 'typebox';
import type { JsonValue } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import { type Query, send } from './http.ts';
import type { CallOptions, ServerOptions } from './options.ts';

export interface Parameters {
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
