/** Membership attestations: issue, revoke and read them [core-4-11]. */
import Type from 'typebox';
import { AttestationList, AttestationRevocation } from '../answers/recognition.ts';
import { MembershipAttestation, RECORD_STATUSES } from '../records/recognition.ts';
import { FreeForm } from '../records/record.ts';
import { AttestationRow } from '../rows/recognition.ts';
import { privilegedCommand, publicList, publicQuery } from './define.ts';
import {
  allowedRoles,
  FilledText,
  hours,
  MAX_VALIDITY_HOURS,
  optional,
  required,
  someItems,
  Text,
} from './members.ts';
import { text, word } from './parameters.ts';

const NEEDS_ID = {
  what: 'the id of an attestation issued here',
  otherwise: 'attestation_not_found',
} as const;

export const issueAttestation = privilegedCommand('POST /admin/attestations', {
  created: 'as_configured',
  summary: 'Issue portable membership evidence',
  body: {
    subject_id: required(FilledText, 'missing_attestation_subject'),
    roles: required(Type.Array(Type.String(), { minItems: 1 }), 'invalid_role', {
      before: [someItems('missing_attestation_subject', ({ roles }) => roles)],
      after: [allowedRoles(({ roles }) => roles)],
    }),
    validity_hours: optional(hours(MAX_VALIDITY_HOURS), 168, 'invalid_validity_hours', {
      isLenient: true,
    }),
    subject_public_key: optional(Type.Union([Text, Type.Null()]), null),
    claims: optional(FreeForm, {}),
    issuer_sovereign_id: optional(FilledText, null),
  },
  answer: MembershipAttestation,
  refusals: ['private_key_given', 'attestation_issuer_mismatch'],
});

export const revokeAttestation = privilegedCommand(
  'POST /admin/attestations/{attestation_id}/revoke',
  {
    summary: 'Revoke an attestation and publish the next revocation feed',
    body: { reason: optional(Text, 'unspecified') },
    exampleNeeds: NEEDS_ID,
    answer: AttestationRevocation,
    refusals: ['attestation_not_found'],
  },
);

export const listAttestations = publicList('GET /attestations', {
  limit: 'SEARCH',
  list: { member: 'attestations', isCounted: true },
  summary: 'Issued attestations, oldest first',
  query: {
    issuer_sovereign_id: text('Only of this issuer'),
    subject_id: text('Only about this subject'),
    status: word(RECORD_STATUSES, 'Only with this status'),
  },
  answer: AttestationList,
});

export const readAttestation = publicQuery('GET /attestations/{attestation_id}', {
  summary: 'One attestation',
  answer: AttestationRow,
  exampleNeeds: NEEDS_ID,
  refusals: ['attestation_not_found'],
});
