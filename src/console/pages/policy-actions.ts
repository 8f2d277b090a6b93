/** What an operator can do about the policy: publish one, and return to an earlier one. */

import { rollBackPolicy } from '../../protocol/api/policies.ts';
import type { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { type Action, FormProblem } from '../action.ts';
import { linesIn, textIn, wholeIn } from '../fields.ts';
import { routeAction } from '../route-action.ts';

const HIGHEST_PORT = 65_535;

/** The form that publishes the policy again as it is. */
export function formOf(policy: PolicyManifest): URLSearchParams {
  const { min_client_version, allowed_ports, allowed_services, routing } = policy;
  return new URLSearchParams({
    version: min_client_version,
    ports: allowed_ports.join('\n'),
    services: allowed_services.join('\n'),
    transports: routing.preferred_transports.join('\n'),
    hops: String(routing.max_hops),
  });
}

export const PUBLISH_POLICY: Action = {
  name: 'publish-policy',
  title: 'Publish a policy',
  label: 'Publish',
  tier: 'privileged',
  fields: [
    {
      name: 'policy_id',
      label: 'Id',
      kind: 'text',
      hint: 'Empty for a new one. An id in use is replaced.',
    },
    { name: 'version', label: 'Oldest client', kind: 'text', isRequired: true },
    { name: 'hops', label: 'Maximum hops', kind: 'number', isRequired: true },
    { name: 'ports', label: 'Ports', kind: 'lines', hint: 'One on each line.' },
    { name: 'services', label: 'Services', kind: 'lines', hint: 'One on each line.' },
    { name: 'transports', label: 'Transports', kind: 'lines', hint: 'The preferred one first.' },
  ],
  async plan({ publicClient }, form) {
    const id = textIn(form, 'policy_id');
    const ports = linesIn(form, 'ports').map((port) => {
      if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > HIGHEST_PORT) {
        throw new FormProblem(`${port} is not a port: a number from 1 to ${HIGHEST_PORT}.`);
      }
      return Number(port);
    });
    const before = await publicClient.readPolicy();
    const members = {
      min_client_version: textIn(form, 'version'),
      allowed_ports: ports,
      allowed_services: linesIn(form, 'services'),
      routing: {
        preferred_transports: linesIn(form, 'transports'),
        max_hops: wholeIn(form, 'hops', 'The number of hops') ?? 1,
      },
    };
    return {
      sentence: `Publish a policy${id === '' ? '' : ` with the id ${id}`}, and make it active.`,
      requests: [
        { path: '/admin/policy', body: { ...(id !== '' && { policy_id: id }), ...members } },
      ],
      effects: [
        `It takes the place of ${before.policy_id}, which stays in the list of versions${id === before.policy_id ? ', replaced' : ''}.`,
        'Nodes apply it the next time they read it.',
      ],
      typedNumber: null,
      command: ['policy', 'publish', '--file', 'policy.json'],
      audited: ['policy_published'],
      back: './policy',
    };
  },
};

export const ROLL_BACK_POLICY = routeAction(rollBackPolicy, {
  name: 'roll-back-policy',
  title: 'Return to an earlier policy',
  label: 'Activate again',
  fields: [{ name: 'policy_id', label: 'Id', kind: 'text' }],
  command: 'policy rollback {policy_id}',
  audited: ['policy_rolled_back'],
  back: './policy',
  async explain({ policy_id }, { publicClient }) {
    const before = await publicClient.readPolicy();
    return {
      sentence: `Make the policy ${policy_id} active again.`,
      effects: [
        `${before.policy_id} is no longer active.`,
        'Nodes apply it the next time they read it.',
      ],
    };
  },
});
