/** What an operator can do about a node: name it, and revoke it. */
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import type { RevocationReason } from '../../protocol/records/revocation-list.ts';
import { REVOCATION_REASONS } from '../../protocol/records/revocation-list.ts';
import { type CertificateRow, isAccepted } from '../../protocol/rows/certificate.ts';
import {
  isLabel,
  isNodeName,
  type LabelChanges,
  labelTexts,
} from '../../protocol/rows/node-description.ts';
import { type Action, type Field, FormProblem, type Plan } from '../action.ts';
import type { Context } from '../context.ts';
import { linesIn, textIn } from '../fields.ts';
import { agentOf, certificatesOf } from './node-facts.ts';
import { nodeAddress, nodeTitle } from './node-rows.ts';

export const REASON: Field = {
  name: 'reason',
  label: 'Reason',
  kind: 'select',
  choices: [
    ['unspecified', 'Unspecified'],
    ['cessation_of_operation', 'Out of service'],
    ['superseded', 'Replaced'],
    ['key_compromise', 'The key is compromised'],
  ],
};

export function reasonIn(form: URLSearchParams): RevocationReason {
  const reason = REVOCATION_REASONS.find((each) => each === form.get('reason'));
  if (reason === undefined) throw new FormProblem('Choose a reason.');
  return reason;
}

const KEY: Field = { name: 'key', label: 'Node key', kind: 'id', isRequired: true };

export const REVOKE_NODE: Action = {
  name: 'revoke-node',
  title: 'Revoke a node',
  label: 'Revoke',
  tier: 'privileged',
  isDestructive: true,
  fields: [KEY, REASON],
  async plan(context, form) {
    const key = form.get('key') ?? '';
    const reason = reasonIn(form);
    const rows = await certificatesOf(context, key);
    return {
      sentence: `Revoke all certificates of ${titleOf(rows)}, with the reason ${reason}.`,
      requests: [{ path: '/admin/revoke', body: { node_public_key: key, reason } }],
      command: ['certificate', 'revoke', '--key', key, '--reason', reason],
      ...(await revocation(context, rows, rows, reason)),
    };
  },
};

export const REVOKE_CERTIFICATE: Action = {
  name: 'revoke-certificate',
  title: 'Revoke a certificate',
  label: 'Revoke',
  tier: 'privileged',
  isDestructive: true,
  fields: [{ name: 'cert_id', label: 'Certificate', kind: 'id', isRequired: true }, REASON],
  async plan(context, form) {
    const id = form.get('cert_id') ?? '';
    const reason = reasonIn(form);
    const row = await context.client.readCertificate({ cert_id: id });
    const rows = await certificatesOf(context, row.node_public_key);
    const ended = reason === 'key_compromise' ? rows : [row];
    return {
      sentence: `Revoke the certificate ${id} of ${titleOf([row])}, with the reason ${reason}.`,
      requests: [{ path: '/admin/revoke', body: { cert_id: id, reason } }],
      command: ['certificate', 'revoke', id, '--reason', reason],
      ...(await revocation(context, rows, ended, reason)),
    };
  },
};

function titleOf([row]: readonly CertificateRow[]): string {
  if (row === undefined) throw new FormProblem('No certificate of this key is stored.');
  return nodeTitle(row);
}

type Consequences = Pick<Plan, 'effects' | 'typedNumber' | 'audited' | 'back'>;

async function revocation(
  context: Context,
  all: readonly CertificateRow[],
  ended: readonly CertificateRow[],
  reason: RevocationReason,
): Promise<Consequences> {
  const key = all[0]?.node_public_key ?? '';
  const accepted = ended.filter(({ status }) => isAccepted(status));
  const left = all.filter(({ status }) => isAccepted(status)).length - accepted.length;
  return {
    effects: effectsOf(await agentOf(context, key), accepted, left, reason),
    typedNumber: reason === 'key_compromise' ? accepted.length : null,
    audited: ['certificate_revoked', 'node_key_compromised'],
    back: nodeAddress(key),
  };
}

/** What a revocation ends, in sentences. */
export function effectsOf(
  agent: AgentDescriptor | null,
  accepted: readonly CertificateRow[],
  left: number,
  reason: RevocationReason,
): string[] {
  const ids = accepted.map(({ cert_id: id }) => id).join(', ');
  return [
    ...(accepted.length === 0
      ? ['It has no certificate that is still accepted.']
      : [
          `Certificates that are no longer accepted: ${accepted.length} (${ids}). The next revocation list names ${accepted.length === 1 ? 'it' : 'them'}.`,
          left === 0
            ? 'The node has no other certificate, and has to be invited again to return.'
            : `Certificates of the same key that stay accepted: ${left}.`,
        ]),
    agent === null
      ? 'No agent is registered with this key.'
      : `Agents evicted: 1 (${agent.agent_id}).`,
    ...(reason === 'key_compromise'
      ? ['The key counts as compromised for good: it can never join again.']
      : []),
  ];
}

export const DESCRIBE_NODE: Action = {
  name: 'describe-node',
  title: 'Name a node',
  label: 'Set name and labels',
  tier: 'standard',
  fields: [
    { ...KEY, kind: 'hidden' },
    { name: 'name', label: 'Name', kind: 'text', hint: 'Only operators see it.' },
    { name: 'labels', label: 'Labels', kind: 'lines', hint: 'One key=value on each line.' },
  ],
  async plan(context, form) {
    const key = form.get('key') ?? '';
    const rows = await certificatesOf(context, key);
    const [before] = rows;
    const title = titleOf(rows);
    const name = textIn(form, 'name');
    if (name !== '' && !isNodeName(name)) {
      throw new FormProblem('A name is 1 to 64 printable characters.');
    }
    const old = before?.labels ?? {};
    const labels = labelsIn(form, 'labels');
    const gone = Object.keys(old).filter((each) => !Object.hasOwn(labels, each));
    const added = Object.entries(labels).filter(([each, value]) => old[each] !== value);
    const isRenamed = name !== (before?.name ?? '');
    const changes: LabelChanges = {
      ...Object.fromEntries(gone.map((each) => [each, null])),
      ...Object.fromEntries(added),
    };
    if (!isRenamed && Object.keys(changes).length === 0) {
      throw new FormProblem('Neither the name nor the labels have changed.');
    }
    return {
      sentence: `Set the name and labels of ${title}.`,
      requests: [
        {
          path: `/admin/nodes/${encodeURIComponent(key)}`,
          body: {
            ...(isRenamed && { name }),
            ...(Object.keys(changes).length > 0 && { labels: changes }),
          },
        },
      ],
      effects: [
        ...(isRenamed ? [`The name becomes ${name === '' ? 'empty' : name}.`] : []),
        ...(added.length > 0
          ? [`Labels set: ${labelTexts(Object.fromEntries(added)).join(', ')}.`]
          : []),
        ...(gone.length > 0 ? [`Labels removed: ${gone.join(', ')}.`] : []),
        'No certificate and no decision changes.',
      ],
      typedNumber: null,
      command: [
        ...['node', 'set', key],
        ...(isRenamed ? (name === '' ? ['--no-name'] : ['--name', name]) : []),
        ...added.flatMap(([each, value]) => ['--label', `${each}=${value}`]),
        ...gone.flatMap((each) => ['--remove-label', each]),
      ],
      audited: ['node_described'],
      back: nodeAddress(key),
    };
  },
};

/** Labels from lines of `key=value`. */
export function labelsIn(form: URLSearchParams, name: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    linesIn(form, name).map((line) => {
      const mark = line.indexOf('=');
      if (mark < 1 || !isLabel(line)) {
        throw new FormProblem(
          `“${line}” is not a label: write key=value, with 1 to 63 of a-z 0-9 . _ / - in the key.`,
        );
      }
      return [line.slice(0, mark), line.slice(mark + 1)];
    }),
  );
}
