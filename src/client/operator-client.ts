/**
 * An operator's signed requests: [core-4-7] to [core-4-9], the roster of [core-4-15], and all of
 * `operator-trust.ts` and `operator-protocol.ts`.
 */
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import type { RevocationReason } from '../records/revocation-list.ts';
import { asRead } from './as-read.ts';
import { audienceSource } from './audience.ts';
import { type HttpRequest, send } from './http.ts';
import type { KeyPair } from './keys.ts';
import { type OperatorProtocol, operatorProtocol } from './operator-protocol.ts';
import { type OperatorTrust, operatorTrust } from './operator-trust.ts';
import { newStamp, type SigningOptions } from './options.ts';
import { operatorHeaders, type SignatureVersion } from './sign-operator.ts';

export interface OperatorClientOptions extends SigningOptions {
  readonly keyId: string;
  readonly key: KeyPair;
  readonly signatureVersion?: SignatureVersion;
}

/** Absent members take the authority's defaults: one client role, 168 and 24 hours, one token. */
export type InviteRequest = {
  readonly roles?: readonly string[];
  readonly max_validity_hours?: number;
  readonly token_expiry_hours?: number;
  readonly recipient_public_key?: string;
  readonly count?: number;
};

export interface InviteToken {
  readonly token_id: string;
  readonly expires_at: string;
}

/** `tokens` is there when a count was asked for; its first element is repeated at the top. */
export interface Invite extends InviteToken {
  readonly tokens?: readonly InviteToken[];
}

export type RevokeRequest = { readonly cert_id: string; readonly reason?: RevocationReason };

export interface Revocation {
  readonly crl_sequence: number;
  readonly revoked_count: number;
  /** All certificates that this request ended, when it ended others than the one it names. */
  readonly revoked_cert_ids?: readonly string[];
  /** Certificates of the same node key that still live, if any. */
  readonly live_certificates_of_key?: number;
}

/** The last three members are absent when the key was revoked before. */
export interface OperatorKeyRevocation {
  readonly key_id: string;
  readonly revoked: true;
  readonly already_revoked: boolean;
  readonly revoked_at?: string;
  readonly reason?: string;
  readonly remaining_active_keys?: number;
}

export interface RosterNode {
  readonly node_public_key: string;
  readonly roles: readonly string[];
  readonly status: string;
  readonly last_heartbeat: string;
  readonly remote_addr: string;
  readonly expires_at: string;
}

export interface Roster {
  readonly count: number;
  readonly nodes: { readonly [certId: string]: RosterNode };
}

export type OperatorCall = Pick<HttpRequest, 'method' | 'path' | 'query'> & {
  readonly body?: JsonObject;
};

export interface OperatorClient extends OperatorTrust, OperatorProtocol {
  invite(request?: InviteRequest): Promise<Invite>;
  revoke(request: RevokeRequest): Promise<Revocation>;
  revokeOperatorKey(keyId: string, request?: { reason?: string }): Promise<OperatorKeyRevocation>;
  nodes(): Promise<Roster>;
  /** Any other operator route; `path` is percent-encoded. */
  request<T>(call: OperatorCall): Promise<T>;
}

export function createOperatorClient(options: OperatorClientOptions): OperatorClient {
  const { keyId, key, signatureVersion = 2 } = options;
  const audienceOf = audienceSource(options);

  async function request<T>({ method, path, query = {}, body }: OperatorCall): Promise<T> {
    const audience = signatureVersion === 1 ? '' : await audienceOf();
    const read = asRead(body ?? {});
    const signed = { method, path: decodeURIComponent(path), query, body: read, audience };
    const headers = operatorHeaders(
      { ...signed, ...newStamp(options), keyId },
      key,
      signatureVersion,
    );
    const sent = body === undefined ? {} : { body: jsonText(body) };
    return send<T>(options, { method, path, query, headers, ...sent });
  }

  function post<T>(path: string, body: JsonObject): Promise<T> {
    return request<T>({ method: 'POST', path, body });
  }

  function get<T>(path: string): Promise<T> {
    return request<T>({ method: 'GET', path });
  }

  return {
    ...operatorTrust({ get, post }),
    ...operatorProtocol(post),
    invite: (invite = {}) => post<Invite>('/admin/invite', invite),
    revoke: (revocation) => post<Revocation>('/admin/revoke', revocation),
    revokeOperatorKey: (id, revocation = {}) =>
      post(`/admin/operator-keys/${encodeURIComponent(id)}/revoke`, revocation),
    nodes: () => get<Roster>('/nodes'),
    request,
  };
}
