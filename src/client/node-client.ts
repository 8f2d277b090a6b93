/** A node's requests with proof of its key [core-4-3] to [core-4-6]. */
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import type { JoinCertificate } from '../records/join-certificate.ts';
import { audienceSource } from './audience.ts';
import { send } from './http.ts';
import type { KeyPair } from './keys.ts';
import { newStamp, type SigningOptions } from './options.ts';
import { type Agent, signAgentDescriptor, signDeleteEnvelope } from './sign-agent.ts';
import { NODE_PROOF_HEADER, nodeProofHeader, signNodeBody } from './sign-node.ts';

/** Where the proof travels: in the body, or in a header, which leaves the body as it is. */
export type ProofForm = 'body' | 'header';

export interface NodeClientOptions extends SigningOptions {
  readonly key: KeyPair;
  readonly proof?: ProofForm;
}

export type JoinRequest = { readonly invite_token: string; readonly validity_hours?: number };

/** Without a status the authority records `unknown`. */
export type HeartbeatRequest = { readonly cert_id: string; readonly status?: string };

/** `roles`, when given, must be the certificate's own: renewal changes none. */
export type RenewRequest = {
  readonly cert_id: string;
  readonly validity_hours?: number;
  readonly roles?: readonly string[];
};

export interface Acknowledgement {
  readonly ack: boolean;
  readonly server_time: string;
}

export type AgentRegistered = { readonly status: string; readonly expires_at: string };
export type AgentUnregistered = { readonly status: string };

export interface NodeClient {
  join(request: JoinRequest): Promise<JoinCertificate>;
  heartbeat(request: HeartbeatRequest): Promise<Acknowledgement>;
  renew(request: RenewRequest): Promise<JoinCertificate>;
  /** Makes this node's agent findable, or refreshes it. The descriptor carries its own proof. */
  registerAgent(agent: Agent): Promise<AgentRegistered>;
  /** The signed envelope is the proof, whatever form the other requests use. */
  unregisterAgent(): Promise<AgentUnregistered>;
}

export function createNodeClient(options: NodeClientOptions): NodeClient {
  const { key, proof = 'body', now = Date.now } = options;
  const audienceOf = audienceSource(options);

  async function post<T>(path: string, members: JsonObject): Promise<T> {
    const unsigned = { node_public_key: key.publicKey, ...members };
    if (proof === 'body') {
      const body = jsonText(signNodeBody(unsigned, key, newStamp(options)));
      return send<T>(options, { method: 'POST', path, body });
    }
    const body = jsonText(unsigned);
    const audience = await audienceOf();
    const signed = { method: 'POST', path, query: {}, audience, bodyText: body };
    const header = await nodeProofHeader({ ...signed, ...newStamp(options) }, key);
    return send<T>(options, {
      method: 'POST',
      path,
      body,
      headers: { [NODE_PROOF_HEADER]: header },
    });
  }

  return {
    join: (request) => post<JoinCertificate>('/join', request),
    heartbeat: (request) => post<Acknowledgement>('/heartbeat', request),
    renew: (request) => post<JoinCertificate>('/renew', request),
    registerAgent(agent) {
      const body = jsonText(signAgentDescriptor(agent, key, now()));
      return send<AgentRegistered>(options, { method: 'POST', path: '/agents', body });
    },
    unregisterAgent() {
      const body = jsonText(signDeleteEnvelope(key, newStamp(options).timestamp));
      const path = `/agents/${encodeURIComponent(key.publicKey)}`;
      return send<AgentUnregistered>(options, { method: 'DELETE', path, body });
    },
  };
}
