/** `mesh-na data-usage`: licenses data, and declares access under a license. */

import type { Command } from 'commander';
import type { JsonValue } from '../../base/json/value.ts';
import type { DataLicensePolicy } from '../../protocol/records/data-usage.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { routeCommand } from '../connection/route-command.ts';
import { publicClient } from '../connection/server.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { deliver, type RecordOptions } from '../kernel/deliver.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { readJsonList } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import { windowOf, windowOptions } from './agreement.ts';
import { signerKeyOption, verifyCommand } from './verification.ts';

/** The options that set the content of a new license. */
const LICENSE = [
  option('--licensee <name>', 'sovereign that may use the data'),
  option('--source <id>', 'source that the licensee may use (repeatable; default: none)', {
    many: true,
  }),
  option('--access <type>', 'allowed type of access (repeatable; default: read)', { many: true }),
  option('--max-volume <bytes>', 'maximum bytes per session (default: unlimited)', {
    parse: wholeNumber(undefined, 0),
  }),
  option('--prohibit <tag>', 'tag of prohibited sources (repeatable)', { many: true }),
] as const;

const LICENSE_OPTIONS = [
  ...LICENSE,
  option('--show', 'show the license in force; exit code 4 when there is none', {
    conflicts: [...LICENSE, ...windowOptions()].map((each) => each.attributeName()),
  }),
  ...windowOptions(),
] as const;

type LicenseOptions = OptionsIn<typeof LICENSE_OPTIONS> & OperatorOptions & RecordOptions;

export function addDataUsageCommands(dataUsage: Command): void {
  define(dataUsage, 'license', {
    about: 'license data to a sovereign, or show the license in force (standard)',
    asks: OPERATOR,
    options: LICENSE_OPTIONS,
    out: 'the record',
    notes: 'A new license replaces the one in force. The authority forgets it when it stops.',
    examples: [
      'mesh-na data-usage license --licensee beta --source src-1 --access read --max-volume 1000000',
      'mesh-na data-usage license --show --out policy.json',
    ],
    run: runLicense,
  });

  routeCommand(dataUsage, 'declare', 'declareIntent', {
    about: 'sign a declaration of access to data as this sovereign (standard)',
    values: {
      access_types: ['--access <type>', 'intended type of access'],
      decision_id: [
        '--decision-id <id>',
        'id of the boundary decision that allows the access (default: a new id)',
      ],
      estimated_volume_bytes: ['--volume <bytes>', 'intended volume in bytes'],
    },
    args: [['<sources>', 'JSON list of the sources, - for standard input']],
    notes: 'A source has source_id, source_type and owner_sovereign_id.',
    examples: [
      'mesh-na data-usage declare sources.json --access read --volume 5000 --out intent.json',
    ],
    // The authority validates the members of a source.
    sent: async (given, _, [file = '']) => ({ ...given, sources: await readJsonList(file) }),
    record(intent, { access_types }) {
      const { intent_id, agent_sovereign_id, declared_sources, expires_at } = intent;
      const sources = declared_sources.map(({ source_id }) => source_id).join(', ');
      return {
        made: `Intent ${intent_id} is declared`,
        about: `${agent_sovereign_id} declares ${access_types.join(', ')} on ${sources}. Valid until ${expires_at}.`,
      };
    },
  });

  verifyCommand(dataUsage, 'verifyIntent', {
    about: 'verify an intent against a license; exit code 4 if it is rejected',
    files: {
      intent: ['<intent>', 'the access intent, - for standard input'],
      policy: ['<policy>', 'the license, - for standard input'],
    },
    values: { agent_public_keys: signerKeyOption('--agent-key', 'the intent') },
    notes: "This checks neither the license's own signature nor its licensee.",
    examples: ['mesh-na data-usage verify intent.json policy.json'],
    finding: ({ violation_reason, violations }, { intent, policy }) => ({
      what: `${named('intent', intent.intent_id)} under ${named('license', policy.policy_id)}`,
      reason: violation_reason ?? '',
      more: violations.map(({ violation_type, detail }) => `${violation_type}: ${detail}`),
    }),
  });
}

async function runLicense(options: LicenseOptions): Promise<void> {
  const policy = options.show ? await policyInForce(options) : await newPolicy(options);
  const { policy_id, licensor_sovereign_id, licensee_sovereign_id, valid_until } = policy;
  deliver(options, policy, {
    made: `Data license ${policy_id} is in force`,
    about: `${licensor_sovereign_id} licenses ${policy.allowed_source_ids.join(', ') || 'nothing'} to ${licensee_sovereign_id} until ${valid_until}.`,
  });
}

async function policyInForce(options: LicenseOptions): Promise<DataLicensePolicy> {
  const policy = await publicClient(options).licensePolicy();
  if (policy !== null) return policy;
  throw failure(EXIT.refused, 'no_policy', 'The authority has no data license in force');
}

async function newPolicy(options: LicenseOptions): Promise<DataLicensePolicy> {
  const { licensee, source = [], access = [], maxVolume, prohibit } = options;
  if (licensee === undefined) {
    throw usageFailure('Use --licensee to license data, or --show to read the license');
  }
  return operatorClient(options).createLicensePolicy({
    licensee_sovereign_id: licensee,
    allowed_source_ids: source,
    allowed_access_types: access,
    max_volume_bytes_per_session: maxVolume,
    prohibited_classification_tags: prohibit,
    ...windowOf(options),
  });
}

function named(kind: string, id: JsonValue | undefined): string {
  return typeof id === 'string' ? `${kind} ${id}` : `${kind} without id`;
}
