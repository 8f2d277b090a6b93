/** A node's requests, with proof of its key [core-4-3] to [core-4-6]. */
import type { TSchema } from 'typebox';
import { jsonText } from '../base/json/write.ts';
import type {
  Acknowledgement,
  AgentRegistered,
  AgentUnregistered,
} from '../protocol/answers/enrollment.ts';
import type { AnswerOf } from '../protocol/api/define.ts';
import { API, type Api } from '../protocol/api/table.ts';
import { SESSION_HEADER } from '../protocol/heartbeat-session.ts';
import type { JoinCertificate } from '../protocol/records/join-certificate.ts';
import { AuthorityError } from './authority-error.ts';
import type { HeartbeatSessions } from './heartbeat-sessions.ts';
import { type Prepared, send } from './http.ts';
import type { SigningKey } from './keys.ts';
import type { Sent, SentObject } from './operations.ts';
import { type CallOptions, newStamp, type SigningOptions } from './options.ts';
import { audienceSource } from './public-client.ts';
import { asRead } from './received.ts';
import {
  type Agent,
  NODE_PROOF_HEADER,
  nodeProofHeader,
  signAgentDescriptor,
  signDeleteEnvelope,
  signNodeBody,
} from './signing.ts';

/** Where the proof goes: in the body, or in a header, which leaves the body unchanged. */
export type ProofForm = 'body' | 'header';

export interface NodeClientOptions extends SigningOptions {
  readonly key: SigningKey;
  readonly proof?: ProofForm;
  /** Lets heartbeats use a session, which costs both sides less than signatures; without it, each is signed. */
  readonly sessions?: HeartbeatSessions;
}

type ProvenName = 'join' | 'heartbeat' | 'renew';
/** What a node sends besides its key and its proof. */
type Proven<Name extends ProvenName> = Omit<Sent<Name>, 'node_public_key'>;
export type JoinRequest = Proven<'join'>;
export type HeartbeatRequest = Proven<'heartbeat'>;
/** `roles`, if present, must match the certificate: renewal does not change them. */
export type RenewRequest = Proven<'renew'> & { readonly roles?: readonly string[] };

export type NodeClient = ReturnType<typeof createNodeClient>;

export function createNodeClient(options: NodeClientOptions) {
  const { key, proof = 'body', now = Date.now } = options;
  const audienceOf = audienceSource(options);

  async function prove(path: string, members: SentObject): Promise<Prepared> {
    const unsigned = { node_public_key: key.publicKey, ...members };
    if (proof === 'body') {
      return { body: jsonText(await signNodeBody(asRead(unsigned), key, newStamp(options))) };
    }
    const body = jsonText(unsigned);
    const audience = await audienceOf();
    const signed = { method: 'POST', path, query: {}, audience, bodyText: body };
    const header = await nodeProofHeader({ ...signed, ...newStamp(options) }, key);
    return { body, headers: { [NODE_PROOF_HEADER]: header } };
  }

  function ask<Name extends ProvenName | 'registerAgent' | 'removeAgent'>(
    name: Name,
    call: CallOptions | undefined,
    prepare: () => Prepared | Promise<Prepared>,
  ): Promise<AnswerOf<Api[Name]>> {
    const { method, path, answer, keepsAnswer } = API[name];
    const request = {
      method,
      path: path.replace('{node_public_key}', encodeURIComponent(key.publicKey)),
      answer: answer as TSchema,
      // A second removal would find nothing.
      repeatable: !keepsAnswer && method === 'POST',
      answerIsKept: keepsAnswer,
      prepare,
    };
    return send(options, request, call) as Promise<AnswerOf<Api[Name]>>;
  }

  function post<Name extends ProvenName>(
    name: Name,
    members: Proven<Name> & SentObject,
    call: CallOptions | undefined,
  ): Promise<AnswerOf<Api[Name]>> {
    return ask(name, call, () => prove(API[name].path, members));
  }

  async function heartbeat(
    request: HeartbeatRequest,
    call: CallOptions | undefined,
    sessions: HeartbeatSessions,
  ): Promise<Acknowledgement> {
    const { cert_id: certId } = request;
    if (sessions.isOpen(certId, now())) {
      try {
        return await beatIn(sessions, request, call);
      } catch (error) {
        if (!(error instanceof AuthorityError) || error.code !== 'session_ended') throw error;
        sessions.ended(now());
      }
    }
    const sessionKey = sessions.ask(now());
    const members = sessionKey === null ? request : { ...request, session_public_key: sessionKey };
    const answer = await post('heartbeat', members, call);
    if (answer.session !== undefined) {
      const node = { nodePublicKey: key.publicKey, certId };
      sessions.begin(answer.session, node, await audienceOf(), now());
    }
    return answer;
  }

  function beatIn(
    sessions: HeartbeatSessions,
    request: HeartbeatRequest,
    call: CallOptions | undefined,
  ): Promise<Acknowledgement> {
    const body = jsonText({ node_public_key: key.publicKey, ...request });
    const prepare = () => ({
      body,
      headers: { [SESSION_HEADER]: sessions.proof(body, now()) },
    });
    return ask('heartbeat', call, prepare);
  }

  return {
    join: (request: JoinRequest, call?: CallOptions): Promise<JoinCertificate> =>
      post('join', request, call),
    heartbeat: (request: HeartbeatRequest, call?: CallOptions): Promise<Acknowledgement> =>
      options.sessions === undefined
        ? post('heartbeat', request, call)
        : heartbeat(request, call, options.sessions),
    renew: (request: RenewRequest, call?: CallOptions): Promise<JoinCertificate> =>
      post('renew', request, call),
    /** Registers this node's agent, or refreshes the registration. The descriptor carries its own proof. */
    registerAgent: (agent: Agent, call?: CallOptions): Promise<AgentRegistered> =>
      ask('registerAgent', call, async () => ({
        body: jsonText(await signAgentDescriptor(agent, key, now())),
      })),
    /** Uses the signed envelope as proof, regardless of `ProofForm`. */
    unregisterAgent: (call?: CallOptions): Promise<AgentUnregistered> =>
      ask('removeAgent', call, async () => ({
        body: jsonText(await signDeleteEnvelope(key, newStamp(options).timestamp)),
      })),
  };
}
