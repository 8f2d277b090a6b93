/**
 * An operator's signed requests: [core-4-7] to [core-4-9], the roster of [core-4-15], and everything in
 * `operator-trust.ts` and `operator-protocol.ts`.
 */
import type { Static, TSchema } from 'typebox';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import {
  AuthorityKeyStep,
  CertificateList,
  DescribedNode,
  Invite,
  InviteBatchWithdrawal,
  InviteList,
  InviteWithdrawal,
  NodeCount,
  OperatorKeyAdded,
  OperatorKeyList,
  OperatorKeyRevocation,
  OperatorKeyTier,
  Revocation,
} from '../protocol/answers/operators.ts';
import { Whole } from '../protocol/records/record.ts';
import type { RevocationReason } from '../protocol/records/revocation-list.ts';
import type { SignedSuccession } from '../protocol/records/succession-request.ts';
import { Adoption } from '../protocol/rows/adoption.ts';
import { CertificateRow, type CertificateStatusFilter } from '../protocol/rows/certificate.ts';
import { Contacts } from '../protocol/rows/contacts.ts';
import { Horizon } from '../protocol/rows/horizon.ts';
import type { InviteStatus } from '../protocol/rows/invite.ts';
import type { LabelChanges, NodeLabels } from '../protocol/rows/node-description.ts';
import { audienceSource } from './audience.ts';
import { type Calls, pathOf, posting, queryOf, type SentObject } from './calls.ts';
import type { LoggedEvent } from './event-chain.ts';
import { type EventOptions, readEvents } from './events.ts';
import { type HttpRequest, type Query, send } from './http.ts';
import type { SigningKey } from './keys.ts';
import { type OperatorProtocol, operatorProtocol } from './operator-protocol.ts';
import { type OperatorTrust, operatorTrust, type RevokeReason } from './operator-trust.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';
import type { Page } from './public-trust.ts';
import { asRead } from './received.ts';
import { operatorHeaders, type SignatureVersion } from './sign-operator.ts';

export interface OperatorClientOptions extends SigningOptions {
  readonly keyId: string;
  readonly key: SigningKey;
  readonly signatureVersion?: SignatureVersion;
}

/** Absent members get the authority's defaults: one client role, 168 and 24 hours, one token. */
export type InviteRequest = {
  readonly roles?: readonly string[] | undefined;
  readonly max_validity_hours?: number | undefined;
  readonly token_expiry_hours?: number | undefined;
  readonly recipient_public_key?: string | undefined;
  readonly count?: number | undefined;
  /** A label for listing and withdrawing invites; several requests may share it. */
  readonly batch?: string | undefined;
  /** Names the nodes; `{n}` stands for the number of the token. */
  readonly name?: string | undefined;
  readonly labels?: NodeLabels | undefined;
};

/** Revokes one certificate, or all certificates of a node key. */
export type RevokeRequest = (
  | { readonly cert_id: string }
  | { readonly node_public_key: string }
) & { readonly reason?: RevocationReason | undefined };

/** The active nodes, keyed by certificate id. */
export type Roster = Required<NodeCount>;

export type OperatorTier = OperatorKeyTier['tier'];

export type AddOperatorKeyRequest = {
  readonly key_id: string;
  /** Base64 of 32 bytes. */
  readonly public_key: string;
  readonly tier: OperatorTier;
};

/** Absent members are unchanged. */
export type DescribeNodeRequest = {
  /** Empty removes the name. */
  readonly name?: string | undefined;
  /** The labels to set; null removes one, and all others are kept. */
  readonly labels?: LabelChanges | undefined;
};

/**
 * `*` in names and host names stands for any text; a label is a key, or `key=value`. Of several names one has to be
 * that of the node, and of several labels all.
 */
export type DescriptionFilters = {
  readonly name?: string | readonly string[] | undefined;
  readonly label?: string | readonly string[] | undefined;
};

export type InviteFilters = {
  readonly status?: InviteStatus | undefined;
  readonly batch?: string | undefined;
  /** The beginning of a fingerprint. */
  readonly fingerprint?: string | undefined;
} & DescriptionFilters &
  Page;

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

export interface OperatorClient extends OperatorTrust, OperatorProtocol {
  invite(request?: InviteRequest, call?: CallOptions): Promise<Invite>;
  invites(filters?: InviteFilters, call?: CallOptions): Promise<InviteList>;
  withdrawInvite(fingerprint: string, call?: CallOptions): Promise<InviteWithdrawal>;
  /** Withdraws up to 1,000 unused invites of the batch: call it again while `remaining` is not zero. */
  withdrawInviteBatch(batch: string, call?: CallOptions): Promise<InviteBatchWithdrawal>;
  /** Sets the name and labels of a node. */
  describeNode(
    nodePublicKey: string,
    request: DescribeNodeRequest,
    call?: CallOptions,
  ): Promise<DescribedNode>;
  revoke(request: RevokeRequest, call?: CallOptions): Promise<Revocation>;
  revokeOperatorKey(
    keyId: string,
    request?: RevokeReason & { readonly unless_last_privileged?: boolean | undefined },
    call?: CallOptions,
  ): Promise<OperatorKeyRevocation>;
  operatorKeys(call?: CallOptions): Promise<OperatorKeyList>;
  addOperatorKey(request: AddOperatorKeyRequest, call?: CallOptions): Promise<OperatorKeyAdded>;
  setOperatorKeyTier(
    keyId: string,
    tier: OperatorTier,
    call?: CallOptions,
  ): Promise<OperatorKeyTier>;
  /** Publishes the succession to the next key of the authority, as signed by the root key. */
  stageSuccession(succession: SignedSuccession, call?: CallOptions): Promise<AuthorityKeyStep>;
  cancelSuccession(call?: CallOptions): Promise<AuthorityKeyStep>;
  activateSuccession(call?: CallOptions): Promise<AuthorityKeyStep>;
  /** Returns to the key before, within the overlap of a planned succession. */
  rollBackAuthorityKey(call?: CallOptions): Promise<AuthorityKeyStep>;
  /** Ends the overlap; `despite` is the exact number of nodes that have not followed. */
  finishSuccession(
    request?: { despite?: number | undefined },
    call?: CallOptions,
  ): Promise<AuthorityKeyStep>;
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
  const { get, post } = calls;
  const to = posting(calls);

  return {
    ...operatorTrust(calls),
    ...operatorProtocol(calls),
    invite: to(Invite, '/admin/invite'),
    invites: (filters, call) => get(InviteList, '/admin/invites', filters, call),
    withdrawInvite: (fingerprint, call) =>
      post(InviteWithdrawal, pathOf`/admin/invites/${fingerprint}/withdraw`, {}, call),
    withdrawInviteBatch: (batch, call) =>
      post(InviteBatchWithdrawal, '/admin/invites/withdraw', { batch }, call),
    describeNode: (nodePublicKey, description, call) =>
      post(DescribedNode, pathOf`/admin/nodes/${nodePublicKey}`, description, call),
    revoke: to(Revocation, '/admin/revoke'),
    revokeOperatorKey: (id, revocation = {}, call) =>
      post(OperatorKeyRevocation, pathOf`/admin/operator-keys/${id}/revoke`, revocation, call),
    operatorKeys: (call) => get(OperatorKeyList, '/admin/operator-keys', {}, call),
    addOperatorKey: to(OperatorKeyAdded, '/admin/operator-keys'),
    setOperatorKeyTier: (id, tier, call) =>
      post(OperatorKeyTier, pathOf`/admin/operator-keys/${id}/tier`, { tier }, call),
    stageSuccession: to(AuthorityKeyStep, '/admin/authority-keys'),
    cancelSuccession: (call) => post(AuthorityKeyStep, '/admin/authority-keys/cancel', {}, call),
    activateSuccession: (call) =>
      post(AuthorityKeyStep, '/admin/authority-keys/activate', {}, call),
    rollBackAuthorityKey: (call) =>
      post(AuthorityKeyStep, '/admin/authority-keys/roll-back', {}, call),
    finishSuccession: to(AuthorityKeyStep, '/admin/authority-keys/finish'),
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
