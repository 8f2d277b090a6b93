/** `/attestation`: one membership attestation as this authority issued it [core-4-11]. */

import { instantOf } from '../../protocol/records/record.ts';
import type { AttestationRow } from '../../protocol/rows/recognition.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html } from '../ui/html.ts';
import { badge, facts, section } from '../ui/parts.ts';
import {
  freeForm,
  idValue,
  type KeyInForce,
  nameInCell,
  nameInFull,
  shortList,
  signer,
  sovereignLink,
  timeText,
} from '../ui/values.ts';

export function attestationPage(
  row: AttestationRow,
  { now, networkName }: { readonly now: number; readonly networkName: string },
  key: KeyInForce,
): HtmlPage {
  const { attestation } = row;
  const { attestation_id: id, subject_public_key: subjectKey } = attestation;
  return renderPage({
    title: `Attestation ${nameInCell(id)}`,
    heading: 'Attestation',
    path: '/attestation',
    networkName,
    status: html`<p class="lede">${sovereignLink(attestation.issuer_sovereign_id)} attests that <bdi>${nameInCell(attestation.subject_id)}</bdi> is a member. ${badge(attestationState(row, now))}</p>`,
    body: html`${section(
      'attestation',
      'Contents',
      facts([
        ['Id', idValue(id)],
        ['Issuer', sovereignLink(attestation.issuer_sovereign_id)],
        ['Subject', html`<bdi>${nameInFull(attestation.subject_id)}</bdi>`],
        [
          'Subject key',
          subjectKey === null ? html`<span class="muted">none</span>` : idValue(subjectKey),
        ],
        ['Roles', shortList(attestation.roles, (role) => html`<bdi>${nameInCell(role)}</bdi>`)],
        ['Signed status', attestation.status],
        ['Valid from', timeText(attestation.valid_from)],
        ['Until', timeText(attestation.expires_at)],
        ['Signed with', signer(attestation, key)],
        ['Claims', freeForm(attestation.claims)],
      ]),
    )}${section('history', 'History', history(row, now))}<p class="small muted">Raw data: <a href="./attestations/${encodeURIComponent(id)}">the attestation with its signatures</a>. Revocations are published in this authority's <a href="./sovereign-revocation-feed">feed</a>.</p>`,
  });
}

/** An attestation that was not revoked can have expired, or never have been signed as active. */
export function attestationState({ status, attestation }: AttestationRow, now: number) {
  if (status === 'revoked') return { word: 'revoked', tone: 'danger' };
  if (instantOf(attestation.expires_at) <= now) return { word: 'expired', tone: 'neutral' };
  return attestation.status === 'active'
    ? { word: 'active', tone: 'ok' }
    : { word: attestation.status, tone: 'warn' };
}

function history(
  { attestation, revoked_at, revocation_reason: reason }: AttestationRow,
  now: number,
): Html {
  const isOver = instantOf(attestation.expires_at) <= now;
  return html`<ol class="history">
<li>Issued at ${timeText(attestation.issued_at)}</li>
${
  revoked_at === null
    ? html`<li>${isOver ? 'Expired' : 'Expires'} at ${timeText(attestation.expires_at)}</li>`
    : html`<li>Revoked at ${timeText(revoked_at)}${reason === null ? '; no reason given' : html`: <bdi>${nameInFull(reason)}</bdi>`}</li>`
}</ol>`;
}
