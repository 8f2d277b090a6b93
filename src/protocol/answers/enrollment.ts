/** Answers to nodes and to clients that look for agents [core-4-4], [core-4-6]; certificates are records. */
import Type, { type Static } from 'typebox';
import { AgentDescriptor } from '../records/agent-descriptor.ts';
import { Bulletin } from '../records/bulletin.ts';
import { Datetime } from '../records/record.ts';
import { NextCursor } from './scalars.ts';

const OF_BULLETIN = 'With `bulletin` in the request';

/** A heartbeat session that begins [core-3-4]. */
export const SessionOffer = Type.Object(
  {
    key_box: Type.String({ description: 'Base64 of the session key, in a `crypto_box` of NaCl' }),
    nonce: Type.String({ description: 'Base64 of the nonce of the box' }),
    public_key: Type.String({ description: 'Base64 X25519 public key of the authority' }),
    expires_at: Datetime,
    signature: Type.String({ description: 'Base64 signature of the authority on `public_key`' }),
  },
  { description: 'With `session_public_key` in the request, if a session can begin' },
);

export const Acknowledgement = Type.Object({
  ack: Type.Boolean(),
  server_time: Datetime,
  next_heartbeat_seconds: Type.Optional(Type.Integer({ minimum: 1, description: OF_BULLETIN })),
  renew_after: Type.Optional(Datetime),
  notices: Type.Optional(Type.Array(Type.String(), { description: OF_BULLETIN })),
  bulletin: Type.Optional(Bulletin),
  session: Type.Optional(SessionOffer),
});

export const AgentRegistered = Type.Object({
  status: Type.Literal('registered'),
  expires_at: Datetime,
});

export const AgentUnregistered = Type.Object({ status: Type.Literal('deregistered') });

/** Without a capability in the query, the authority returns only the count. */
export const AgentList = Type.Object({
  count: Type.Integer(),
  capability: Type.Union([Type.String(), Type.Null()]),
  agents: Type.Optional(Type.Array(AgentDescriptor)),
  next_cursor: NextCursor,
});

export type SessionOffer = Static<typeof SessionOffer>;
export type Acknowledgement = Static<typeof Acknowledgement>;
export type AgentRegistered = Static<typeof AgentRegistered>;
export type AgentUnregistered = Static<typeof AgentUnregistered>;
export type AgentList = Static<typeof AgentList>;
