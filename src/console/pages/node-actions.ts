/** What an operator can do about a node: name it, and revoke it. */
import { counted } from '../../base/counts.ts';
import { nameInCell } from '../../pages/ui/values.ts';
import { describeNode, revokeCertificate } from '../../protocol/api/certificates.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import type { RevocationReason } from '../../protocol/records/revocation-list.ts';
import { type CertificateRow, isAccepted } from '../../protocol/rows/certificate.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import type { Context } from '../context.ts';
import { type AskedField, textIn } from '../forms.ts';
import { FormProblem, type Plan } from '../page.ts';
import { routeAction } from '../route-action.ts';
import { agentOf, certificatesOf, nodeAddress, nodeTitle } from './node-rows.ts';

export const REASON: AskedField = {
  label: 'Reason',
  choices: {
    unspecified: 'Unspecified',
    cessation_of_operation: 'Out of service',
    superseded: 'Replaced',
    key_compromise: 'The key is compromised',
  },
};

export const REVOCATION_EVENTS = ['certificate_revoked', 'node_key_compromised'] as const;

export const REVOKE_NODE = routeAction(revokeCertificate, {
  name: 'revoke-node',
  title: 'Revoke a node',
  label: 'Revoke the node',
  isDestructive: true,
  heading: async (context, form) =>
    `Revoke ${describedTitle(await certificatesOf(context, textIn(form, 'node_public_key')))}`,
  fields: {
    node_public_key: { label: 'Node key', kind: 'hidden', isRequired: true },
    reason: REASON,
  },
  command: 'certificate revoke --key {node_public_key} --reason {reason}',
  audited: REVOCATION_EVENTS,
  async explain({ node_public_key: key, reason }, context) {
    const rows = await certificatesOf(context, key ?? '');
    return {
      sentence: `Revoke all certificates of ${describedTitle(rows)}, with the reason ${reason}.`,
      ...(await revocation(context, rows, rows, reason)),
      typed: typedNameOf(rows),
    };
  },
});

export const REVOKE_CERTIFICATE = routeAction(revokeCertificate, {
  name: 'revoke-certificate',
  title: 'Revoke a certificate',
  label: 'Revoke',
  isDestructive: true,
  fields: {
    cert_id: { label: 'Certificate', kind: 'id', isRequired: true },
    reason: REASON,
  },
  command: 'certificate revoke {cert_id} --reason {reason}',
  audited: REVOCATION_EVENTS,
  async explain({ cert_id: id, reason }, context) {
    const row = await context.client.readCertificate({ cert_id: id ?? '' });
    const rows = await certificatesOf(context, row.node_public_key);
    const ended = reason === 'key_compromise' ? rows : [row];
    return {
      sentence: `Revoke the certificate ${id} of ${describedTitle([row])}, with the reason ${reason}.`,
      ...(await revocation(context, rows, ended, reason)),
      typed: reason === 'key_compromise' ? typedNameOf(rows) : null,
    };
  },
});

function titleOf([row]: readonly CertificateRow[]): string {
  if (row === undefined) throw new FormProblem('No certificate of this key is stored.');
  return nodeTitle(row);
}

/** With its roles and labels, because names can be alike. */
function describedTitle(rows: readonly CertificateRow[]): string {
  const { roles = [], labels = {} } = rows[0] ?? {};
  const described = [...roles, ...labelTexts(labels)].map(nameInCell).join(', ');
  return `${titleOf(rows)}${described === '' ? '' : ` (${described})`}`;
}

/** Of a node without a name, the beginning of its key. */
function typedNameOf([row]: readonly CertificateRow[]): string {
  return row?.name ?? row?.node_public_key.slice(0, 8) ?? '';
}

async function revocation(
  context: Context,
  all: readonly CertificateRow[],
  ended: readonly CertificateRow[],
  reason: RevocationReason | null = 'unspecified',
): Promise<Pick<Plan, 'effects'> & { readonly back: string }> {
  const key = all[0]?.node_public_key ?? '';
  const accepted = ended.filter(({ status }) => isAccepted(status));
  const left = all.filter(({ status }) => isAccepted(status)).length - accepted.length;
  return {
    effects: effectsOf(await agentOf(context, key), accepted, left, reason),
    back: nodeAddress(key),
  };
}

/** What a revocation ends, in sentences. */
export function effectsOf(
  agent: AgentDescriptor | null,
  accepted: readonly CertificateRow[],
  left: number,
  reason: RevocationReason | null,
): string[] {
  const ids = accepted.map(({ cert_id: id }) => id).join(', ');
  return [
    ...(accepted.length === 0
      ? ['It has no certificate that is still accepted.']
      : [
          `${counted(accepted.length, 'certificate is', 'certificates are')} no longer accepted (${ids}). The next revocation list names ${accepted.length === 1 ? 'it' : 'them'}.`,
          left === 0
            ? 'The node has no other certificate, and has to be invited again to return.'
            : `${counted(left, 'other certificate')} of the key still accepted.`,
        ]),
    agent === null
      ? 'No agent is registered with this key.'
      : `1 agent is evicted: ${nameInCell(agent.agent_id)}.`,
    ...(reason === 'key_compromise'
      ? ['The key counts as compromised for good: it can never join again.']
      : []),
  ];
}

export const DESCRIBE_NODE = routeAction(describeNode, {
  name: 'describe-node',
  title: 'Name a node',
  label: 'Set name and labels',
  fields: {
    node_public_key: { label: 'Node key', kind: 'hidden' },
    name: {
      label: 'Name',
      hint: 'Only operators see it.',
      problem: 'A name is 1 to 64 printable characters.',
    },
    labels: { label: 'Labels', hint: 'One key=value on each line.' },
  },
  command: 'node set {node_public_key}',
  audited: ['node_described'],
  async explain({ node_public_key: key, name: given, labels: wanted }, context) {
    const rows = await certificatesOf(context, key);
    const title = titleOf(rows);
    const name = given ?? '';
    const labels = wanted ?? {};
    const old = rows[0]?.labels ?? {};
    const gone = Object.keys(old).filter((each) => !Object.hasOwn(labels, each));
    const added = Object.entries(labels).filter(([each, value]) => old[each] !== value);
    const isRenamed = name !== (rows[0]?.name ?? '');
    const changes = Object.fromEntries([...gone.map((each) => [each, null] as const), ...added]);
    const isRelabeled = gone.length + added.length > 0;
    if (!isRenamed && !isRelabeled) {
      throw new FormProblem('Neither the name nor the labels have changed.');
    }
    return {
      sentence: `Set the name and labels of ${title}.`,
      bodies: [{ ...(isRenamed && { name }), ...(isRelabeled && { labels: changes }) }],
      effects: [
        ...(isRenamed ? [`The name becomes ${name === '' ? 'empty' : name}.`] : []),
        ...(added.length > 0
          ? [
              `Labels set: ${added
                .map((each) => each.join('='))
                .toSorted()
                .join(', ')}.`,
            ]
          : []),
        ...(gone.length > 0 ? [`Labels removed: ${gone.join(', ')}.`] : []),
        'No certificate and no decision changes.',
      ],
      command: [
        ...['node', 'set', key],
        ...(isRenamed ? (name === '' ? ['--no-name'] : ['--name', name]) : []),
        ...added.flatMap((each) => ['--label', each.join('=')]),
        ...gone.flatMap((each) => ['--remove-label', each]),
      ],
      back: nodeAddress(key),
    };
  },
});
