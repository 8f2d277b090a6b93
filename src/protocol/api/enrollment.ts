/** Nodes: join, heartbeat, renew [core-4-3] to [core-4-5], and how many are active [core-4-15]. */
import Type from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { Acknowledgement } from '../answers/enrollment.ts';
import { NodeCount } from '../answers/operators.ts';
import { JoinCertificate } from '../records/join-certificate.ts';
import { HostName } from '../rows/node-description.ts';
import { nodeCommand, openQuery } from './define.ts';
import { Filled, hours, judgedElsewhere, optional, required } from './members.ts';

const DEFAULT_VALIDITY_HOURS = 168;
const MAX_STATUS_LENGTH = 64;

const ValidityHours = optional(hours(), DEFAULT_VALIDITY_HOURS, 'invalid_validity_hours', {
  isLenient: true,
});

const CERTIFICATE = {
  cert_id: required(Filled, 'missing_certificate_identity'),
  node_public_key: required(Filled, 'missing_certificate_identity'),
};

/** The refusals of requests that name a certificate, in the order of the checks. */
const CERTIFICATE_REFUSALS = [
  'unknown_certificate',
  'certificate_key_mismatch',
  'certificate_revoked',
  'certificate_not_yet_valid',
  'certificate_expired',
  'certificate_superseded',
] as const;

const OWN_CERTIFICATE = {
  what: 'a certificate and a proof of your own',
  otherwise: 'unknown_certificate',
} as const;

export const join = nodeCommand('POST /join', {
  limit: 'JOIN',
  created: 'as_configured',
  keepsAnswer: true,
  summary: 'Exchange an invite and a proof of possession for a signed join certificate',
  description: 'Roles come from the invite; roles claimed in the body are ignored.',
  body: {
    validity_hours: ValidityHours,
    node_public_key: required(Filled, 'missing_node_public_key'),
    invite_token: required(Filled, 'missing_invite_token'),
    hostname: optional(HostName, null, 'invalid_hostname'),
  },
  exampleNeeds: {
    what: 'an invite of this network and a proof of your own',
    otherwise: 'invalid_invite_token',
  },
  answer: JoinCertificate,
  refusals: [
    'node_key_compromised',
    'invalid_invite_token',
    'too_many_live_certificates',
    'insufficient_storage',
  ],
});

export const heartbeat = nodeCommand('POST /heartbeat', {
  limit: 'HEARTBEAT',
  hasSessions: true,
  summary: 'Record a heartbeat of a node',
  body: {
    ...CERTIFICATE,
    status: optional(Type.String({ maxLength: MAX_STATUS_LENGTH }), 'unknown'),
    bulletin: optional(
      Type.Boolean({ description: 'Whether to answer the bulletin, and advice for this node' }),
      false,
    ),
    authority_keys_digest: optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'Which chain of authority keys the node has followed, as in the bulletin',
      }),
      null,
    ),
    session_public_key: optional(
      Type.Refine(
        Type.String({
          pattern: '^[A-Za-z0-9+/]{43}=$',
          description: 'Base64 X25519 public key: asks for a heartbeat session',
        }),
        isPublicKey,
      ),
      null,
    ),
  },
  exampleNeeds: OWN_CERTIFICATE,
  answer: Acknowledgement,
  refusals: [...CERTIFICATE_REFUSALS, 'session_ended'],
});

export const renew = nodeCommand('POST /renew', {
  limit: 'RENEW',
  created: 'as_configured',
  keepsAnswer: true,
  summary: 'Exchange a certificate for its successor',
  description: 'Roles are kept; the validity is capped by the original invite.',
  body: {
    validity_hours: ValidityHours,
    ...CERTIFICATE,
    roles: optional(
      judgedElsewhere(
        Type.Array(Type.String(), { description: 'Must be the roles that the certificate has' }),
      ),
      null,
    ),
  },
  exampleNeeds: OWN_CERTIFICATE,
  answer: JoinCertificate,
  refusals: [
    ...CERTIFICATE_REFUSALS,
    'renewal_role_change_forbidden',
    'too_many_live_certificates',
  ],
});

export const countNodes = openQuery('GET /nodes', {
  growsWithNetwork: true,
  summary: 'Count of active nodes; with operator headers, their roster',
  description:
    'Operator headers that fail verification give 401, never the public form. A long roster is sent while it is read.',
  answer: NodeCount,
});
