/** What an operator can do about treaties: recognize a sovereign, follow its key, and end the recognition. */
import { type Action, type Field, FormProblem } from '../action.ts';
import type { Context } from '../context.ts';
import { linesIn, pastedObject, textIn, wholeIn } from '../fields.ts';

const TREATIES = '/admin/recognition-treaties';
const TREATY: Field = { name: 'treaty_id', label: 'Treaty', kind: 'id', isRequired: true };

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
          path: TREATIES,
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

export const REVOKE_TREATY: Action = {
  name: 'revoke-treaty',
  title: 'Revoke a treaty',
  label: 'Revoke',
  tier: 'privileged',
  isDestructive: true,
  fields: [
    TREATY,
    { name: 'reason', label: 'Reason', kind: 'text', hint: 'Everybody can read it.' },
  ],
  async plan(context, form) {
    const id = textIn(form, 'treaty_id');
    const reason = textIn(form, 'reason');
    const { treaty, lifecycle } = await context.publicClient.readTreaty({ treaty_id: id });
    const subject = treaty.subject_sovereign_id;
    return {
      sentence: `Revoke the treaty ${id}, which recognizes ${subject}.`,
      requests: [
        {
          path: `${TREATIES}/${encodeURIComponent(id)}/revoke`,
          body: reason === '' ? {} : { reason },
        },
      ],
      effects:
        lifecycle.state === 'expired'
          ? ['It has expired, and is not accepted any more. It no longer counts as expired.']
          : await cutBy(context, id, treaty.issuer_sovereign_id, subject),
      typedNumber: null,
      command: ['treaty', 'revoke', id, ...(reason === '' ? [] : ['--reason', reason])],
      audited: ['recognition_treaty_revoked'],
      back: './treaties',
    };
  },
};

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

export const FOLLOW_TREATY: Action = {
  name: 'follow-treaty',
  title: 'Follow a sovereign to its new key',
  label: 'Follow',
  tier: 'privileged',
  fields: [
    TREATY,
    {
      name: 'root',
      label: 'Its root key',
      kind: 'id',
      hint: 'Only after a theft, unless the treaty names it.',
    },
    {
      name: 'chain',
      label: 'Its authority keys',
      kind: 'pasted',
      isRequired: true,
      hint: 'What it serves at /authority-keys.',
    },
  ],
  async plan({ publicClient }, form) {
    const id = textIn(form, 'treaty_id');
    const root = textIn(form, 'root');
    const chain = pastedObject(form, 'chain', 'its authority keys');
    const { treaty } = await publicClient.readTreaty({ treaty_id: id });
    return {
      sentence: `Follow ${treaty.subject_sovereign_id} from the keys of the treaty ${id} to its current one.`,
      requests: [
        {
          path: `${TREATIES}/${encodeURIComponent(id)}/follow`,
          body: { authority_keys: chain, ...(root !== '' && { root_public_key: root }) },
        },
      ],
      effects: [
        'The authority verifies the chain first, and refuses one that does not begin with a key it trusts.',
        'A new treaty with the same scope and end replaces this one.',
      ],
      typedNumber: null,
      command: [
        ...['treaty', 'follow', id, '--keys', 'authority-keys.json'],
        ...(root === '' ? [] : ['--root-key', root]),
      ],
      audited: ['recognition_treaty_followed'],
      back: './treaties',
    };
  },
};
