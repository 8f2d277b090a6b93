/**
 * An operator's signed requests: [core-4-7] to [core-4-9], the roster of [core-4-15], and everything in
 * `operator-trust.ts` and `operator-protocol.ts`.
 */
import type { Static, TSchema } from 'typebox';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import {
  CertificateList,
  NodeCount,
  type OperatorKeyTier,
  Revocation,
} from '../protocol/answers/operators.ts';
import { Whole } from '../protocol/records/record.ts';
import type { RevocationReason } from '../protocol/records/revocation-list.ts';
import { Adoption } from '../protocol/rows/adoption.ts';
import { CertificateRow, type CertificateStatusFilter } from '../protocol/rows/certificate.ts';
import { Contacts } from '../protocol/rows/contacts.ts';
import { Horizon } from '../protocol/rows/horizon.ts';
import { audienceSource } from './audience.ts';
import { type Calls, pathOf, posting, queryOf, type SentObject } from './calls.ts';
import type { LoggedEvent } from './event-chain.ts';
import { type EventOptions, readEvents } from './events.ts';
import { type HttpRequest, type Query, send } from './http.ts';
import type { SigningKey } from './keys.ts';
import { type Operations, operations } from './operations.ts';
import { type OperatorProtocol, operatorProtocol } from './operator-protocol.ts';
import { type OperatorTrust, operatorTrust } from './operator-trust.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';
import type { Page } from './public-trust.ts';
import { asRead } from './received.ts';
import { operatorHeaders, type SignatureVersion } from './sign-operator.ts';

export interface OperatorClientOptions extends SigningOptions {
  readonly keyId: string;
  readonly key: SigningKey;
  readonly signatureVersion?: SignatureVersion;
}

/** Revokes one certificate, or all certificates of a node key. */
export type RevokeRequest = (
  | { readonly cert_id: string }
  | { readonly node_public_key: string }
) & { readonly reason?: RevocationReason | undefined };

/** The active nodes, keyed by certificate id. */
export type Roster = Required<NodeCount>;

export type OperatorTier = OperatorKeyTier['tier'];

/**
 * `*` in names and host names stands for any text; a label is a key, or `key=value`. Of several names one has to be
 * that of the node, and of several labels all.
 */
export type DescriptionFilters = {
  readonly name?: string | readonly string[] | undefined;
  readonly label?: string | readonly string[] | undefined;
};

export type CertificateFilters = {
  /** `in_use` stands for active and silent. */
  readonly status?: CertificateStatusFilter | undefined;
  /** Any of them. */
  readonly role?: string | readonly string[] | undefined;
  readonly expires_before?: string | undefined;
  /** A node's public key, or at least its first 8 characters. */
  readonly key?: string | undefined;
  /** The beginning of an id. */
  readonly cert_id?: string | undefined;
  readonly hostname?: string | undefined;
  /** The reported status; `unwell` stands for every one that is not healthy. */
  readonly health?: string | undefined;
  /** The beginning of the address of the last contact. */
  readonly remote_addr?: string | undefined;
  /** Only nodes with a certificate in use that have not reported since this time. */
  readonly silent_since?: string | undefined;
} & DescriptionFilters &
  Page;

/** `group` is the key of a label. */
export type ContactQuestion = { readonly group?: string } & Omit<
  CertificateFilters,
  'status' | keyof Page
>;

export interface OperatorCall {
  readonly method: 'GET' | 'POST';
  /** Percent-encoded, without query. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: SentObject;
}

export interface OperatorClient
  extends Operations<'operator' | 'operator-privileged'>,
    OperatorTrust,
    OperatorProtocol {
  revoke(request: RevokeRequest, call?: CallOptions): Promise<Revocation>;
  nodes(call?: CallOptions): Promise<Roster>;
  /** What expires, by kind and week. */
  horizon(call?: CallOptions): Promise<Horizon>;
  /** Which nodes and treaties have followed a change of the authority key. */
  adoption(call?: CallOptions): Promise<Adoption>;
  certificates(filters?: CertificateFilters, call?: CallOptions): Promise<CertificateList>;
  /** When nodes were last heard from, as counts: by the values of a label, or of those whose names begin alike. */
  contacts(question?: ContactQuestion, call?: CallOptions): Promise<Contacts>;
  certificate(certId: string, call?: CallOptions): Promise<CertificateRow>;
  /** Verified audit log entries, from any position on and as they happen. */
  events(options?: EventOptions): AsyncGenerator<LoggedEvent, void>;
  /** Any other operator route. */
  request(request: OperatorCall, call?: CallOptions): Promise<JsonObject>;
}

export function createOperatorClient(options: OperatorClientOptions): OperatorClient {
  const { keyId, key, signatureVersion = 2 } = options;
  const audienceOf = audienceSource(options);

  async function sign({ method, path, query = {}, body }: OperatorCall) {
    const audience = signatureVersion === 1 ? '' : await audienceOf();
    const read = asRead(body ?? {});
    const signed = { method, path: decodeURIComponent(path), query, body: read, audience };
    const request = { ...signed, ...newStamp(options), keyId };
    const headers = await operatorHeaders(request, key, signatureVersion);
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
  const { get } = calls;
  const to = posting(calls);

  return {
    ...operations(calls, 'operator', 'operator-privileged'),
    ...operatorTrust(calls),
    ...operatorProtocol(calls),
    revoke: to(Revocation, '/admin/revoke'),
    async nodes(call) {
      const { count, nodes = {} } = await get(NodeCount, '/nodes', {}, call);
      return { count, nodes };
    },
    horizon: (call) => get(Horizon, '/admin/horizon', {}, call),
    adoption: (call) => get(Adoption, '/admin/authority-keys/adoption', {}, call),
    certificates: (filters, call) => get(CertificateList, '/admin/certificates', filters, call),
    contacts: (question, call) => get(Contacts, '/admin/contacts', question, call),
    certificate: (certId, call) =>
      get(CertificateRow, pathOf`/admin/certificates/${certId}`, {}, call),
    events: (wanted = {}) =>
      readEvents(options, (query) => sign({ method: 'GET', path: '/events', query }), wanted),
    request: (operatorCall, call) => request(Whole, operatorCall, call),
  };
}
