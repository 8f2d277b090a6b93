/** AgentDescriptor: the address and capabilities of an agent, signed by its node [core-5-6]. */
import Type, { type Static } from 'typebox';
import { canonicalJson } from '../../base/json/write.ts';
import {
  Datetime,
  FreeForm,
  instantOf,
  MAX_DESCRIPTOR_LENGTH,
  MAX_TAGS,
  MAX_TEXT_LENGTH,
  recordReader,
  Signatures,
} from './record.ts';

const Text = Type.String({ maxLength: MAX_TEXT_LENGTH });

export const AgentDescriptor = Type.Object({
  agent_id: Text,
  node_public_key: Type.String(),
  network_name: Type.String(),
  capabilities: Type.Array(Text, { default: [] }),
  endpoint: Type.Object({
    host: Text,
    port: Type.Integer({ minimum: 1, maximum: 65_535 }),
    scheme: Type.String({ default: 'ws', maxLength: MAX_TEXT_LENGTH }),
  }),
  registered_at: Datetime,
  expires_at: Datetime,
  metadata: FreeForm,
  signatures: Signatures,
});

export type AgentDescriptor = Static<typeof AgentDescriptor>;

export const readAgentDescriptor = recordReader(
  AgentDescriptor,
  (descriptor) =>
    instantOf(descriptor.expires_at) > instantOf(descriptor.registered_at) &&
    descriptor.capabilities.length <= MAX_TAGS &&
    canonicalJson(descriptor).length <= MAX_DESCRIPTOR_LENGTH,
);
