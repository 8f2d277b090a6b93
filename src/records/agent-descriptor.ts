/** AgentDescriptor: where an agent is and what it can do, signed by its node (wire rules 5.6). */
import Type, { type Static } from 'typebox';
import { Datetime, FreeForm, instantOf, recordReader, Signatures } from './record.ts';

export const AgentDescriptor = Type.Object({
  agent_id: Type.String(),
  node_public_key: Type.String(),
  network_name: Type.String(),
  capabilities: Type.Array(Type.String(), { default: [] }),
  endpoint: Type.Object({
    host: Type.String(),
    port: Type.Integer({ minimum: 1, maximum: 65_535 }),
    scheme: Type.String({ default: 'ws' }),
  }),
  registered_at: Datetime,
  expires_at: Datetime,
  metadata: FreeForm,
  signatures: Signatures,
});

export type AgentDescriptor = Static<typeof AgentDescriptor>;

export const readAgentDescriptor = recordReader(
  AgentDescriptor,
  ({ registered_at, expires_at }) => instantOf(expires_at) > instantOf(registered_at),
);
