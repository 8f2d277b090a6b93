/** The verdict on this authority: its posture in words, and for each finding what shows it and the command about it. */

import { counted } from '../../base/counts.ts';
import type { Posture } from '../../protocol/rows/dashboard.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { commandText, WHEN_LOST } from '../ui/parts.ts';
import { timeText, withTimes } from '../ui/values.ts';

const VERDICTS = {
  ok: { tone: 'ok', word: 'All is well' },
  attention: { tone: 'warn', word: 'Needs attention' },
  action: { tone: 'danger', word: 'Needs action now' },
} as const;

const SO_FAR = { tone: 'ok', word: 'All is well, as far as known' } as const;

const FLEET = './dashboard#fleet-heading';
const LAPSES = './dashboard#week-heading';
const READY = './readyz';

/** For each rule, where to see more, and what to run. */
export const FINDING_CURES: { readonly [rule: string]: readonly [href: string, command: string] } =
  {
    store: [READY, 'doctor'],
    clock: [READY, 'doctor'],
    restored: [READY, 'doctor'],
    signer: [READY, 'doctor'],
    disk: ['./history.json?series=disk_free', 'doctor'],
    backup: ['./cli-reference#backup-create', 'backup create'],
    webhooks: ['./dashboard#changes-heading', 'doctor'],
    partners: ['./connectome#treaties-heading', 'treaty list'],
    nodes_silent: [FLEET, 'node list'],
    nodes_unwell: [FLEET, 'node list --health unwell'],
    certificates_lapsing: [FLEET, 'node list --expires-before 3d --sort expires'],
    certificates_lapsed: [FLEET, 'certificate list --status expired'],
    delegation: ['./genesis', 'genesis renew'],
    succession_due: ['./authority-keys', 'authority-key activate'],
    succession_laggards: ['./authority-keys', 'authority-key status'],
    tls: [LAPSES, 'horizon'],
    documents_late: ['./crl', 'doctor'],
    operator_keys: ['./cli-reference#operator-key-list', 'operator-key list'],
    authentication: [
      './dashboard#history-heading',
      'events --type admin_auth_failed --type node_auth_failed --since 1h',
    ],
    treaties_expired: ['./connectome?state=expired#treaties-heading', 'treaty list'],
    treaties_expiring: ['./connectome?state=expiring_soon#treaties-heading', 'treaty list'],
    treaties_behind: ['./connectome#treaties-heading', 'treaty follow'],
    feeds_stale: ['./dashboard#feeds-heading', 'feed import'],
    trust_cycle: ['./dashboard#figures-heading', 'events --type trust_cycle_completed'],
  };

export function verdictOf({ status, unknown }: Posture) {
  return status === 'ok' && unknown.length > 0 ? SO_FAR : VERDICTS[status];
}

/** `pageOf` leads to what shows more of a finding. */
export function postureSection(
  posture: Posture,
  below = NO_HTML,
  pageOf = (rule: string) => FINDING_CURES[rule]?.[0],
): Html {
  const { findings, unknown } = posture;
  const { tone, word } = verdictOf(posture);
  return html`<section class="posture ${tone}" id="posture" aria-labelledby="posture-word">
<h2 id="posture-word">${WHEN_LOST}${word}</h2>
${below}${
  findings.length + unknown.length === 0
    ? NO_HTML
    : html`<ul id="warnings">
${findings.map((found) => finding(found, pageOf(found.rule)))}${unknown.map(
  ({ sentence }) => html`<li>${withTimes(sentence)}</li>`,
)}</ul>`
}</section>`;
}

function finding(
  { rule, sentence, since }: Posture['findings'][number],
  href: string | undefined,
): Html {
  const command = FINDING_CURES[rule]?.[1];
  const what = withTimes(sentence);
  return html`<li>${href === undefined ? what : html`<a href="${href}">${what}</a>`}${
    command === undefined ? NO_HTML : html` ${commandText(command)}`
  }${since === undefined ? NO_HTML : html` <span class="small muted">since ${timeText(since)}</span>`}</li>`;
}

/** The verdict in one line, with the gravest of its findings. */
export function verdictLine(posture: Posture, href: string): Html {
  const { tone, word } = verdictOf(posture);
  const [gravest, ...others] = posture.findings;
  const more = others.length === 0 ? '' : ` And ${counted(others.length, 'other finding')}.`;
  return html`<p class="verdict ${tone}"><a href="${href}">${word}</a>${
    gravest === undefined ? NO_HTML : html` <span>${withTimes(gravest.sentence)}${more}</span>`
  }</p>`;
}
