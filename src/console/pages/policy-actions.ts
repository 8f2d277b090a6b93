/** What an operator can do about the policy: publish one, and return to an earlier one. */
import { publishPolicy, rollBackPolicy } from '../../protocol/api/policies.ts';
import type { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { routeAction } from '../route-action.ts';

const HIGHEST_PORT = 65_535;

/** The form that publishes the policy again as it is. */
export function formOf(policy: PolicyManifest): URLSearchParams {
  const { min_client_version, allowed_ports, allowed_services, routing } = policy;
  return new URLSearchParams({
    min_client_version,
    allowed_ports: allowed_ports.join('\n'),
    allowed_services: allowed_services.join('\n'),
    'routing.preferred_transports': routing.preferred_transports.join('\n'),
    'routing.max_hops': String(routing.max_hops),
  });
}

export const PUBLISH_POLICY = routeAction(publishPolicy, {
  name: 'publish-policy',
  title: 'Publish a policy',
  label: 'Publish',
  fields: {
    policy_id: { label: 'Id', hint: 'Empty for a new one. An id in use is replaced.' },
    min_client_version: { label: 'Oldest client', isRequired: true },
    'routing.max_hops': { label: 'Maximum hops', what: 'hops', isRequired: true },
    allowed_ports: { label: 'Ports', hint: 'One on each line.', what: 'port', most: HIGHEST_PORT },
    allowed_services: { label: 'Services', hint: 'One on each line.' },
    'routing.preferred_transports': { label: 'Transports', hint: 'The preferred one first.' },
  },
  command: 'policy publish --file policy.json',
  audited: ['policy_published'],
  back: './policy',
  async explain({ policy_id: id }, { publicClient }) {
    const before = await publicClient.readPolicy();
    return {
      sentence: `Publish a policy${id ? ` with the id ${id}` : ''}, and make it active.`,
      effects: [
        `It takes the place of ${before.policy_id}, which stays in the list of versions${id === before.policy_id ? ', replaced' : ''}.`,
        'Nodes apply it the next time they read it.',
      ],
    };
  },
});

export const ROLL_BACK_POLICY = routeAction(rollBackPolicy, {
  name: 'roll-back-policy',
  title: 'Return to an earlier policy',
  label: 'Activate again',
  fields: { policy_id: { label: 'Id' } },
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
