/** *Attestations*: who was attested to be a member, with which roles. */
import { CLOCK_TOLERANCE_MS } from '../../client/offline.ts';
import { attestationState } from '../../pages/trust/attestation.ts';
import { type Html, html, NO_HTML } from '../../pages/ui/html.ts';
import { badge } from '../../pages/ui/parts.ts';
import { idText, nameInCell, timeText } from '../../pages/ui/values.ts';
import { issueAttestation, revokeAttestation } from '../../protocol/api/attestations.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { AttestationRow } from '../../protocol/rows/recognition.ts';
import { actionColumn, actionLink, renewal } from '../forms.ts';
import { listPage, twoLines } from '../list-page.ts';
import { routeAction } from '../route-action.ts';

const TO_ATTEST = 'attestation issue SUBJECT --role ROLE';

const ISSUE = routeAction(issueAttestation, {
  name: 'issue-attestation',
  title: 'Attest a membership',
  label: 'Attest',
  fields: {
    subject_id: { label: 'Subject' },
    subject_public_key: { label: 'Its public key', kind: 'id', hint: 'Empty for none.' },
    validity_hours: { label: 'Valid for (hours)' },
    roles: { label: 'Roles', hint: 'One on each line.' },
  },
  missing: 'Name the subject and at least one role.',
  command:
    'attestation issue {subject_id} --role {roles} --subject-key {subject_public_key} --validity-hours {validity_hours}',
  audited: ['membership_attestation_issued'],
  explain: ({ subject_id: subject, roles, validity_hours: hours }) => ({
    sentence: `Sign that ${nameInCell(subject)} is a member with ${roles.join(', ')}.`,
    effects: [
      `Sovereigns that recognize this network accept it for ${hours ?? 168} hours, unless it is revoked.`,
    ],
  }),
});

const REVOKE = routeAction(revokeAttestation, {
  name: 'revoke-attestation',
  title: 'Revoke an attestation',
  label: 'Revoke',
  isDestructive: true,
  fields: {
    attestation_id: { label: 'Attestation', kind: 'id' },
    reason: { label: 'Reason', hint: 'Everybody can read it.' },
  },
  command: 'attestation revoke {attestation_id} --reason {reason}',
  audited: ['membership_attestation_revoked'],
  async explain({ attestation_id }, { publicClient }) {
    const { attestation } = await publicClient.readAttestation({ attestation_id });
    return {
      sentence: `Revoke the attestation ${attestation_id} of ${nameInCell(attestation.subject_id)}.`,
      effects: [
        'The next revocation feed has it: partners refuse it as soon as they have imported that.',
      ],
    };
  },
});

export const ATTESTATIONS = listPage<AttestationRow>({
  path: '/attestations',
  title: 'Attestations',
  search: ['subject', 'Subject'],
  adding: ISSUE,
  empty: ['There are no attestations. Attest a membership here, or run', TO_ATTEST],
  noMatch: 'No attestation matches.',
  async read({ publicClient }, { searched, page }) {
    const list = await publicClient.listAttestations({ subject_id: searched, ...page });
    return { ...list, rows: list.attestations };
  },
  caption: () => 'Oldest first',
  keyOf: ({ attestation }) => attestation.attestation_id,
  columns: (context) => [
    {
      head: 'Attestation',
      kind: 'id',
      isHead: true,
      cell: ({ attestation }) => idText(attestation.attestation_id),
    },
    {
      head: 'Subject',
      kind: 'name',
      cell: ({ attestation }) => nameInCell(attestation.subject_id),
    },
    { head: 'Roles', kind: 'words', cell: ({ attestation }) => attestation.roles.join(', ') },
    {
      head: 'Status',
      kind: 'state',
      cell: (row) =>
        twoLines(
          badge(attestationState(row, context.now())),
          row.revocation_reason ? nameInCell(row.revocation_reason) : '',
        ),
    },
    { head: 'Expires', cell: ({ attestation }) => timeText(attestation.expires_at) },
    ...actionColumn(REVOKE, context, (row: AttestationRow): Html => {
      const { attestation, status } = row;
      const { attestation_id } = attestation;
      const again =
        status === 'active' ? renewal(ISSUE, termsOf(attestation), attestation, context) : NO_HTML;
      const revoke = mayStillBeAccepted(row, context.now())
        ? actionLink(REVOKE, { attestation_id })
        : NO_HTML;
      return html`<span class="actions">${again}${revoke}</span>`;
    }),
  ],
  actions: [ISSUE, REVOKE],
});

/** As the form of an attestation has them. */
function termsOf({ subject_id, subject_public_key: key, roles }: AttestationRow['attestation']) {
  return { subject_id, subject_public_key: key ?? '', roles: roles.join('\n') };
}

/** Partners whose clocks are behind accept it a little longer. */
function mayStillBeAccepted({ attestation, status }: AttestationRow, now: number): boolean {
  return status === 'active' && instantOf(attestation.expires_at) + CLOCK_TOLERANCE_MS > now;
}
