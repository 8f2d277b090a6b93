/** Node routes: join, heartbeat, renew [core-4-3] to [core-4-5]. */
import Type from 'typebox';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { jsonText } from '../../base/json/write.ts';
import { Acknowledgement } from '../../protocol/answers/enrollment.ts';
import { Filled, hours, judgedElsewhere, NodeProofMembers } from '../../protocol/api/scalars.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import { documentText, type PublishedDocument } from '../../protocol/contract/documents.ts';
import { JoinCertificate } from '../../protocol/records/join-certificate.ts';
import { HostName } from '../../protocol/rows/node-description.ts';
import { bodyReader } from '../body.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { countedFailure, withProof } from '../limited.ts';
import { answerReply, refusalReply } from '../reply.ts';
import { addressBlock } from '../request-head.ts';
import { BODY_KEY_PROOF, type RouteEntry, type RouteRequest } from '../route.ts';
import { cachedBySource } from './shared-build.ts';

type Accepted = Extract<Answer, { readonly ok: true }>;

/** Adds the published bulletin, the same text for all nodes, to the answer to a heartbeat. */
function withBulletin(answer: Accepted, { documents }: Edge): Accepted {
  const bulletin = documents.latest('bulletin');
  return bulletin === undefined ? answer : withMember(answer, memberOf(bulletin));
}

/** Adds the session that begins with a signed heartbeat; the answer is unchanged if none can begin now. */
function withSession(
  answer: Accepted,
  { sessions, metrics }: Edge,
  { now, body }: RouteRequest,
  sessionKey: string,
): Accepted {
  const { cert_id, node_public_key } = body;
  const node = { nodePublicKey: String(node_public_key), certId: String(cert_id) };
  const session = sessions.begin(node, sessionKey, now);
  metrics.session(session === null ? 'withheld' : 'begun');
  return session === null ? answer : withMember(answer, `,"session":${jsonText(session)}}`);
}

function withMember(answer: Accepted, member: string): Accepted {
  return { ...answer, json: `${answer.json.slice(0, -1)}${member}` };
}

const memberOf = cachedBySource(
  (bulletin: PublishedDocument) => `,"bulletin":${documentText(bulletin)}}`,
);

const DEFAULT_VALIDITY_HOURS = 168;
const MAX_STATUS_LENGTH = 64;

/** The refusals of requests that name a certificate, in the order of the checks. */
const CERTIFICATE_REFUSALS = [
  'missing_certificate_identity',
  'unknown_certificate',
  'certificate_key_mismatch',
  'certificate_revoked',
  'certificate_not_yet_valid',
  'certificate_expired',
  'certificate_superseded',
] as const;

const joinBody = bodyReader(
  Type.Object({
    node_public_key: Filled,
    invite_token: Filled,
    validity_hours: Type.Optional(hours()),
    hostname: Type.Optional(HostName),
    ...NodeProofMembers,
  }),
  {
    wholeNumbers: ['validity_hours'],
    codes: {
      validity_hours: 'invalid_validity_hours',
      node_public_key: 'missing_node_public_key',
      invite_token: 'missing_invite_token',
      hostname: 'invalid_hostname',
    },
  },
);

const heartbeatBody = bodyReader(
  Type.Object({
    cert_id: Filled,
    node_public_key: Filled,
    status: Type.Optional(Type.String({ maxLength: MAX_STATUS_LENGTH })),
    bulletin: Type.Optional(
      Type.Boolean({ description: 'Whether to answer the bulletin, and advice for this node' }),
    ),
    authority_keys_digest: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'Which chain of authority keys the node has followed, as in the bulletin',
      }),
    ),
    session_public_key: Type.Optional(
      Type.Refine(
        Type.String({
          pattern: '^[A-Za-z0-9+/]{43}=$',
          description: 'Base64 X25519 public key: asks for a heartbeat session',
        }),
        isPublicKey,
      ),
    ),
    ...NodeProofMembers,
  }),
  {
    codes: {
      cert_id: 'missing_certificate_identity',
      node_public_key: 'missing_certificate_identity',
    },
  },
);

const renewBody = bodyReader(
  Type.Object({
    cert_id: Filled,
    node_public_key: Filled,
    validity_hours: Type.Optional(hours()),
    roles: Type.Optional(
      judgedElsewhere(
        Type.Array(Type.String(), { description: 'Must be the roles that the certificate has' }),
      ),
    ),
    ...NodeProofMembers,
  }),
  {
    wholeNumbers: ['validity_hours'],
    codes: {
      validity_hours: 'invalid_validity_hours',
      cert_id: 'missing_certificate_identity',
      node_public_key: 'missing_certificate_identity',
    },
  },
);

const OWN_CERTIFICATE = {
  what: 'a certificate and a proof of your own',
  otherwise: 'unknown_certificate',
} as const;

export const enrollmentRoutes: readonly RouteEntry[] = [
  {
    method: 'POST',
    path: '/join',
    call: 'join',
    limit: 'JOIN',
    proof: BODY_KEY_PROOF,
    created: 'as_configured',
    summary: 'Exchange an invite and a proof of possession for a signed join certificate',
    description: 'Roles come from the invite; roles claimed in the body are ignored.',
    body: joinBody.schema,
    exampleNeeds: {
      what: 'an invite of this network and a proof of your own',
      otherwise: 'invalid_invite_token',
    },
    answer: JoinCertificate,
    refusals: [
      'invalid_validity_hours',
      'missing_node_public_key',
      'missing_invite_token',
      'invalid_hostname',
      'node_key_compromised',
      'invalid_invite_token',
      'too_many_live_certificates',
      'insufficient_storage',
    ],
    handle(request, edge) {
      const input = joinBody.read(request.body);
      if (!input.ok) return refusalReply(input.refusal, input.details);
      const { invite_token: inviteToken, hostname = null } = input.value;
      const validityHours = input.value.validity_hours ?? DEFAULT_VALIDITY_HOURS;
      return withProof(request, edge, async (node) => {
        const answer = await edge.call('join', { node, inviteToken, validityHours, hostname });
        if (answer.ok || answer.refusal !== 'invalid_invite_token') return answerReply(answer);
        const source = addressBlock(request.remoteAddr);
        return countedFailure(edge, 'JOIN_FAILURES', source, request.now, () =>
          answerReply(answer),
        );
      });
    },
  },
  {
    method: 'POST',
    path: '/heartbeat',
    call: 'heartbeat',
    limit: 'HEARTBEAT',
    proof: BODY_KEY_PROOF,
    hasSessions: true,
    summary: 'Record a heartbeat of a node',
    body: heartbeatBody.schema,
    exampleNeeds: OWN_CERTIFICATE,
    answer: Acknowledgement,
    refusals: [...CERTIFICATE_REFUSALS, 'session_ended'],
    handle(request, edge) {
      const input = heartbeatBody.read(request.body);
      if (!input.ok) return refusalReply(input.refusal, input.details);
      const { cert_id: certId, status = 'unknown', bulletin: wantsBulletin = false } = input.value;
      const authorityKeysDigest = input.value.authority_keys_digest ?? null;
      const sessionKey = input.value.session_public_key;
      return withProof(request, edge, (node) => {
        const beat = { node, certId, status, wantsBulletin, authorityKeysDigest };
        const isSigned = node.nonce !== null;
        return withAnswer(edge.call('heartbeat', beat), (answer) => {
          if (!answer.ok) {
            if (answer.refusal === 'session_ended') edge.metrics.session('ended');
            return answerReply(answer);
          }
          edge.metrics.heartbeat(isSigned);
          const informed = wantsBulletin ? withBulletin(answer, edge) : answer;
          return answerReply(
            isSigned && sessionKey !== undefined
              ? withSession(informed, edge, request, sessionKey)
              : informed,
          );
        });
      });
    },
  },
  {
    method: 'POST',
    path: '/renew',
    call: 'renew',
    limit: 'RENEW',
    proof: BODY_KEY_PROOF,
    created: 'as_configured',
    summary: 'Exchange a certificate for its successor',
    description: 'Roles are kept; the validity is capped by the original invite.',
    body: renewBody.schema,
    exampleNeeds: OWN_CERTIFICATE,
    answer: JoinCertificate,
    refusals: [
      'invalid_validity_hours',
      ...CERTIFICATE_REFUSALS,
      'renewal_role_change_forbidden',
      'too_many_live_certificates',
    ],
    handle(request, edge) {
      const input = renewBody.read(request.body);
      if (!input.ok) return refusalReply(input.refusal, input.details);
      const { cert_id: certId } = input.value;
      const validityHours = input.value.validity_hours ?? DEFAULT_VALIDITY_HOURS;
      const roles = claimedRoles(input.value.roles);
      return withProof(request, edge, async (node) =>
        answerReply(await edge.call('renew', { node, certId, validityHours, roles })),
      );
    },
  },
];

function claimedRoles(roles: unknown): readonly string[] | 'malformed' | null {
  if (roles === undefined || roles === null) return null;
  return Array.isArray(roles) && roles.every((role) => typeof role === 'string')
    ? roles
    : 'malformed';
}
