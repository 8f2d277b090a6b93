/** PolicyManifest: the network's active rules, stamped and signed by the NA [core-5-4]. */
import Type, { type Static } from 'typebox';
import { Datetime, recordReader, Signatures } from './record.ts';

export const PolicyManifest = Type.Object({
  policy_id: Type.String(),
  issued_at: Datetime,
  issued_by: Type.String(),
  min_client_version: Type.String(),
  allowed_ports: Type.Array(Type.Integer(), { default: [443, 8443] }),
  allowed_services: Type.Array(Type.String(), { default: [] }),
  routing: Type.Object(
    {
      preferred_transports: Type.Array(Type.String(), { default: ['quic', 'wireguard'] }),
      max_hops: Type.Integer({ default: 6 }),
    },
    { default: {} },
  ),
  signatures: Signatures,
});

export type PolicyManifest = Static<typeof PolicyManifest>;

export const readPolicyManifest = recordReader(PolicyManifest);
