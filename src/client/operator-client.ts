/** An operator's signed requests: the operations of the API and the events. */
import type { Static, TSchema } from 'typebox';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import type { OperatorKeyTier } from '../protocol/answers/operators.ts';
import { Whole } from '../protocol/records/record.ts';
import { type EventOptions, type LoggedEvent, readEvents } from './events.ts';
import { type HttpRequest, type Query, send } from './http.ts';
import type { SigningKey } from './keys.ts';
import { type Calls, type Operations, operations, queryOf, type SentObject } from './operations.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';
import { audienceSource } from './public-client.ts';
import { asRead } from './received.ts';
import { operatorHeaders } from './signing.ts';

export interface OperatorClientOptions extends SigningOptions {
  readonly keyId: string;
  readonly key: SigningKey;
}

export type OperatorTier = OperatorKeyTier['tier'];

export interface OperatorCall {
  readonly method: 'GET' | 'POST';
  /** Percent-encoded, without query. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: SentObject;
}

type OperatorAccess = 'operator' | 'operator-privileged' | 'public-or-operator';

export interface OperatorClient extends Operations<OperatorAccess> {
  /** Verified audit log entries, from any position on and as they happen. */
  events(options?: EventOptions): AsyncGenerator<LoggedEvent, void>;
  /** Any other operator route. */
  request(request: OperatorCall, call?: CallOptions): Promise<JsonObject>;
}

export function createOperatorClient(options: OperatorClientOptions): OperatorClient {
  const { keyId, key } = options;
  const audienceOf = audienceSource(options);

  async function sign({ method, path, query = {}, body }: OperatorCall) {
    const audience = await audienceOf();
    const read = asRead(body ?? {});
    const signed = { method, path: decodeURIComponent(path), query, body: read, audience };
    const request = { ...signed, ...newStamp(options), keyId };
    const headers = await operatorHeaders(request, key);
    return { headers, ...(body !== undefined && { body: jsonText(body) }) };
  }

  function request<Answer extends TSchema>(
    answer: Answer,
    operatorCall: OperatorCall,
    call?: CallOptions,
  ): Promise<Static<Answer>> {
    const { method, path, query = {} } = operatorCall;
    const http: HttpRequest<Answer> = {
      method,
      path,
      query,
      answer,
      repeatable: method === 'GET',
      answerIsKept: method === 'POST',
      prepare: () => sign(operatorCall),
    };
    return send(options, http, call);
  }

  const calls: Calls = {
    get: (answer, path, parameters = {}, call) =>
      request(answer, { method: 'GET', path, query: queryOf(parameters) }, call),
    post: (answer, path, body, call) => request(answer, { method: 'POST', path, body }, call),
  };

  return {
    ...operations<OperatorAccess>(calls, 'operator', 'operator-privileged', 'public-or-operator'),
    events: (wanted = {}) =>
      readEvents(options, (query) => sign({ method: 'GET', path: '/events', query }), wanted),
    request: (operatorCall, call) => request(Whole, operatorCall, call),
  };
}
