/** JoinCertificate: the certificate that a node shows to its peers [core-5-2]. */
import Type, { type Static } from 'typebox';
import { Datetime, recordReader, Signatures } from './record.ts';

export const JoinCertificate = Type.Object({
  cert_id: Type.String(),
  node_public_key: Type.String(),
  network_name: Type.String(),
  roles: Type.Array(Type.String(), { default: [] }),
  issued_at: Datetime,
  expires_at: Datetime,
  issued_by: Type.String(),
  signatures: Signatures,
});

export type JoinCertificate = Static<typeof JoinCertificate>;

export const readJoinCertificate = recordReader(JoinCertificate);
