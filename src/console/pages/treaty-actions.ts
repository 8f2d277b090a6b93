/** What an operator can do about treaties: recognize a sovereign, follow its key, and end the recognition. */
import { followTreaty, issueTreaty, revokeTreaty } from '../../protocol/api/treaties.ts';
import { type Action, FormProblem } from '../action.ts';
import type { Context } from '../context.ts';
import { linesIn, textIn, wholeIn } from '../fields.ts';
import { type MemberField, PUBLIC_REASON, routeAction } from '../route-action.ts';

const TREATY: MemberField = { name: 'treaty_id', label: 'Treaty', kind: 'id' };

export const ISSUE_TREATY: Action = {
  name: 'issue-treaty',
  title: 'Recognize a sovereign',
  label: 'Recognize',
  tier: 'privileged',
  fields: [
    { name: 'subject', label: 'Sovereign', kind: 'text', isRequired: true },
    { name: 'hours', label: 'Valid for (hours)', kind: 'number', hint: 'Empty for 168.' },
    {
      name: 'keys',
      label: 'Its public keys',
      kind: 'pasted',
      isRequired: true,
      hint: 'One on each line. Get them from its operators, not only from its address.',
    },
    { name: 'roles', label: 'Roles it may attest', kind: 'lines', hint: 'Empty for any.' },
  ],
  plan(_, form) {
    const subject = textIn(form, 'subject');
    const keys = linesIn(form, 'keys');
    const roles = linesIn(form, 'roles');
    const hours = wholeIn(form, 'hours', 'The hours');
    if (subject === '' || keys.length === 0) {
      throw new FormProblem('Name the sovereign and at least one of its keys.');
    }
    return Promise.resolve({
      sentence: `Sign a treaty that recognizes ${subject} for ${hours ?? 168} hours.`,
      requests: [
        {
          path: issueTreaty.path,
          body: {
            subject_sovereign_id: subject,
            subject_public_keys: keys,
            ...(roles.length > 0 && { scope: { allowed_roles: roles } }),
            ...(hours !== null && { validity_hours: hours }),
          },
        },
      ],
      effects: [
        `Attestations that these keys sign are accepted here: ${keys.join(', ')}.`,
        roles.length === 0 ? 'They may attest any role.' : `Only for ${roles.join(', ')}.`,
        'So are revocation feeds that they sign. The treaty is public.',
      ],
      typedNumber: null,
      command: [
        ...['treaty', 'issue', subject],
        ...keys.flatMap((key) => ['--key', key]),
        ...(roles.length === 0 ? ['--any-role'] : roles.flatMap((role) => ['--role', role])),
        ...(hours === null ? [] : ['--validity-hours', String(hours)]),
      ],
      audited: ['recognition_treaty_issued'],
      back: './treaties',
    });
  },
};

export const REVOKE_TREATY = routeAction(revokeTreaty, {
  name: 'revoke-treaty',
  title: 'Revoke a treaty',
  label: 'Revoke',
  isDestructive: true,
  fields: [TREATY, PUBLIC_REASON],
  command: 'treaty revoke {treaty_id} {reason}',
  audited: ['recognition_treaty_revoked'],
  back: './treaties',
  async explain({ treaty_id }, context) {
    const { treaty, lifecycle } = await context.publicClient.readTreaty({ treaty_id });
    const { subject_sovereign_id: subject, issuer_sovereign_id: issuer } = treaty;
    return {
      sentence: `Revoke the treaty ${treaty_id}, which recognizes ${subject}.`,
      effects:
        lifecycle.state === 'expired'
          ? ['It has expired, and is not accepted any more. It no longer counts as expired.']
          : await cutBy(context, treaty_id, issuer, subject),
    };
  },
});

/** What is lost without the treaty, as far as this authority knows. */
async function cutBy(
  { publicClient }: Context,
  id: string,
  issuer: string,
  subject: string,
): Promise<string[]> {
  const { recognition_treaties: others } = await publicClient.listTreaties({
    issuer_sovereign_id: issuer,
    subject_sovereign_id: subject,
    status: 'active',
  });
  const left = others.filter(
    ({ treaty, lifecycle }) => treaty.treaty_id !== id && lifecycle.state !== 'expired',
  ).length;
  return [
    'Treaties cut: 1. It stays listed, as revoked.',
    left === 0
      ? `Attestations of ${subject} are no longer accepted.`
      : `Other treaties that recognize ${subject}: ${left}. Its attestations stay accepted under them.`,
  ];
}

export const FOLLOW_TREATY = routeAction(followTreaty, {
  name: 'follow-treaty',
  title: 'Follow a sovereign to its new key',
  label: 'Follow',
  fields: [
    TREATY,
    {
      name: 'root',
      member: 'root_public_key',
      flag: '--root-key',
      label: 'Its root key',
      kind: 'id',
      hint: 'Only after a theft, unless the treaty names it.',
    },
    {
      name: 'chain',
      member: 'authority_keys',
      label: 'Its authority keys',
      kind: 'pasted',
      hint: 'What it serves at /authority-keys.',
    },
  ],
  command: 'treaty follow {treaty_id} --keys authority-keys.json {root}',
  audited: ['recognition_treaty_followed'],
  back: './treaties',
  async explain({ treaty_id }, { publicClient }) {
    const { treaty } = await publicClient.readTreaty({ treaty_id });
    return {
      sentence: `Follow ${treaty.subject_sovereign_id} from the keys of the treaty ${treaty_id} to its current one.`,
      effects: [
        'The authority verifies the chain first, and refuses one that does not begin with a key it trusts.',
        'A new treaty with the same scope and end replaces this one.',
      ],
    };
  },
});
