/** Membership attestations: issue, revoke, list, and verify in public [core-4-11]. */
import Type from 'typebox';
import { AttestationList, AttestationRevocation } from '../../protocol/answers/recognition.ts';
import { mapped } from '../../protocol/api/input.ts';
import {
  areAllowedRoles,
  FilledText,
  hasItems,
  hours,
  MAX_VALIDITY_HOURS,
  Text,
} from '../../protocol/api/scalars.ts';
import {
  MembershipAttestation,
  RECORD_STATUSES,
} from '../../protocol/records/membership-attestation.ts';
import { FreeForm } from '../../protocol/records/record.ts';
import { AttestationRow } from '../../protocol/rows/attestation.ts';
import { bodyReader } from '../body.ts';
import { firstValue } from '../query.ts';
import { answerReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { filter, listReply, openPage, PAGE_QUERY, PAGE_REFUSALS } from './listing.ts';
import { operatorRoute, reasonBody } from './operator-route.ts';

const issueBody = bodyReader(
  Type.Object({
    subject_id: FilledText,
    roles: Type.Array(Type.String(), { minItems: 1 }),
    validity_hours: Type.Optional(hours(MAX_VALIDITY_HOURS)),
    subject_public_key: Type.Optional(Type.Union([Text, Type.Null()])),
    claims: Type.Optional(FreeForm),
    issuer_sovereign_id: Type.Optional(FilledText),
  }),
  {
    codes: {
      subject_id: 'missing_attestation_subject',
      any_roles: 'missing_attestation_subject',
      roles: 'invalid_role',
      allowed_roles: 'invalid_role',
      validity_hours: 'invalid_validity_hours',
    },
    tests: {
      any_roles: ({ roles }) => hasItems(roles),
      allowed_roles: ({ roles }, isAllowed) => areAllowedRoles(roles, isAllowed),
    },
    wholeNumbers: ['validity_hours'],
  },
);

const NEEDS_ID = {
  what: 'the id of an attestation issued here',
  otherwise: 'attestation_not_found',
} as const;

export const attestationRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'POST',
    path: '/admin/attestations',
    call: 'issueAttestation',
    limit: 'ADMIN',
    created: 'as_configured',
    summary: 'Issue portable membership evidence',
    body: issueBody.schema,
    answer: MembershipAttestation,
    refusals: [
      'missing_attestation_subject',
      'invalid_role',
      'invalid_validity_hours',
      'private_key_given',
      'attestation_issuer_mismatch',
    ],
    input(request, edge) {
      const read = issueBody.read(request.body, edge.settings.isAllowedRole);
      return mapped(read, (body) => ({
        subjectId: body.subject_id,
        roles: body.roles,
        validityHours: body.validity_hours ?? 168,
        subjectPublicKey: body.subject_public_key ?? null,
        claims: body.claims ?? {},
        issuer: body.issuer_sovereign_id ?? null,
      }));
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/attestations/{attestation_id}/revoke',
    call: 'revokeAttestation',
    limit: 'ADMIN',
    summary: 'Revoke an attestation and publish the next revocation feed',
    body: reasonBody.schema,
    exampleNeeds: NEEDS_ID,
    answer: AttestationRevocation,
    refusals: ['attestation_not_found'],
    input(request) {
      const attestationId = request.params.attestation_id ?? '';
      return mapped(reasonBody.read(request.body), ({ reason }) => ({
        attestationId,
        reason,
      }));
    },
  }),
  {
    method: 'GET',
    path: '/attestations',
    call: 'listAttestations',
    limit: 'SEARCH',
    query: Type.Object({
      issuer_sovereign_id: filter('Only of this issuer'),
      subject_id: filter('Only about this subject'),
      status: Type.Optional(
        Type.Enum([...RECORD_STATUSES], { description: 'Only with this status' }),
      ),
      ...PAGE_QUERY,
    }),
    summary: 'Issued attestations, oldest first',
    answer: AttestationList,
    refusals: PAGE_REFUSALS,
    handle(request, edge) {
      const { query } = request;
      const chosen = {
        issuer: firstValue(query, 'issuer_sovereign_id'),
        subject: firstValue(query, 'subject_id'),
        status: firstValue(query, 'status'),
      };
      const page = openPage((asked) => edge.call('listAttestations', { filter: chosen, ...asked }));
      return listReply({ member: 'attestations', isCounted: true, page }, request);
    },
  },
  {
    method: 'GET',
    path: '/attestations/{attestation_id}',
    call: 'readAttestation',
    limit: 'none',
    summary: 'One attestation',
    answer: AttestationRow,
    exampleNeeds: NEEDS_ID,
    refusals: ['attestation_not_found'],
    handle: async ({ params }, edge) =>
      answerReply(
        await edge.call('readAttestation', { attestationId: params.attestation_id ?? '' }),
      ),
  },
];
