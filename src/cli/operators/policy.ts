/** `mesh-na policy`: publishes and shows the policy of the network. */

import type { Command } from 'commander';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { Sent } from '../../client/operations.ts';
import type { PolicyHistory } from '../../protocol/answers/recognition.ts';
import { publishPolicy } from '../../protocol/api/policies.ts';
import { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { routeCommand, routeOptions } from '../connection/route-command.ts';
import { publicClient } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import {
  type Delivery,
  deliver,
  documentOf,
  type RecordOptions,
  shown,
} from '../kernel/deliver.ts';
import { usageFailure } from '../kernel/errors.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { HIGHEST_PORT, wholeNumber } from '../kernel/options.ts';
import { asJson, type Line, printResult } from '../kernel/output.ts';
import { type Column, column, type TableOptions, tableOf, timeColumn } from '../kernel/table.ts';
import { assertConfirmed } from '../kernel/terminal.ts';

const PUBLISH = [
  option('--dry-run', 'show what would change without publishing anything'),
  option('--yes', 'publish without asking; required when not on a terminal'),
] as const;

const FILE = option('--file <file>', 'JSON with the members to change, - for standard input');

type PublishOptions = OptionsIn<[...typeof PUBLISH, typeof FILE]> & OperatorOptions & RecordOptions;

export function addPolicyCommands(policy: Command): void {
  const changes = routeOptions(publishPolicy, {
    policy_id: [
      '--policy-id <id>',
      'id of the policy; replaces an earlier policy with this id (default: a new id)',
    ],
    min_client_version: ['--min-client-version <version>', 'oldest client admitted'],
    // What an option leaves out stays as it is, whereas the operation has defaults.
    allowed_ports: option('--port <n>', 'allowed port, instead of the present ones (repeatable)', {
      parse: wholeNumber(HIGHEST_PORT),
      many: true,
    }),
    allowed_services: option(
      '--service <name>',
      'allowed service, instead of the present ones (repeatable)',
      { many: true },
    ),
  });
  define(policy, 'publish', {
    about: 'change the active policy, signed by the authority (privileged)',
    asks: OPERATOR,
    options: [FILE, ...changes.options, ...PUBLISH],
    out: 'the signed policy',
    notes: 'What neither an option nor the file names stays as it is. Options override the file.',
    examples: [
      'mesh-na policy publish --policy-id spring --port 443 --service llm --service search',
      'mesh-na policy publish --file policy.json --dry-run',
      'mesh-na policy publish --file policy.json --yes',
    ],
    run: (_, __, command) =>
      runPublish(asJson(changes.sentIn(command)), command.opts<PublishOptions>()),
  });

  routeCommand(policy, 'rollback', 'rollBackPolicy', {
    about: 'make an earlier policy active again (privileged)',
    values: { policy_id: ['<policy-id>', 'policy to return to'] },
    out: 'the signed policy',
    examples: ['mesh-na policy rollback spring'],
    record: activePolicy,
  });

  routeCommand(policy, 'list', 'readPolicyHistory', {
    about: 'list all policies, newest first',
    options: [WIDE],
    examples: ['mesh-na policy list'],
    text: (history, _, options) => listText(history, options),
  });

  routeCommand(policy, 'show', 'readPolicy', {
    about: 'show the active policy',
    out: 'the policy',
    examples: ['mesh-na policy show', 'mesh-na policy show --out policy.json'],
    record: (active, _, options) =>
      documentOf(options, `Policy ${active.policy_id}`, policyText(active)),
  });
}

async function runPublish(changed: JsonObject, options: PublishOptions): Promise<void> {
  const { file, yes = false, dryRun = false } = options;
  if (file === undefined && Object.keys(changed).length === 0) {
    throw usageFailure(
      'Give a --file, or what to change of the active policy: see mesh-na policy publish --help',
    );
  }
  const given = { ...(file !== undefined && (await policyIn(file))), ...changed };
  const active = await publicClient(options).readPolicy();
  const request = withChanges(active, given);
  const changes = changesBetween(active, request);
  if (dryRun) {
    const json = { dry_run: true, active_policy_id: active.policy_id, policy: request };
    return printResult(options, json, [...changes, 'Nothing was published.']);
  }
  if (!yes) await assertConfirmed(changes, CONFIRMATION);
  // The authority validates the members of the file.
  const policy = request as Sent<'publishPolicy'>;
  const published = await operatorClient(options).publishPolicy(policy);
  deliver(options, published, activePolicy(published));
}

/** The authority ignores members that it does not know, so that a misspelled one would change nothing. */
async function policyIn(file: string): Promise<JsonObject> {
  const given = await readJsonFile(file);
  const unknown = Object.keys(given).find(
    (name) => !Object.hasOwn(PolicyManifest.properties, name),
  );
  if (unknown === undefined) return given;
  throw notHolding(file, `a policy: none has a member ${unknown}`);
}

const CONFIRMATION = {
  question: 'Publish this policy?',
  otherwise: 'Add --yes to publish this policy, or --dry-run to see what would change',
  declined: 'Not confirmed, so nothing was published',
};

/** The members of the active policy, and those that are given instead. */
function withChanges(active: PolicyManifest, given: JsonObject): JsonObject {
  const { min_client_version, allowed_ports, allowed_services, routing } = active;
  return {
    min_client_version,
    allowed_ports,
    allowed_services,
    ...given,
    routing: isJsonObject(given.routing)
      ? { ...routing, ...given.routing }
      : (given.routing ?? routing),
  };
}

/** Each member that is different, as it is and as it would be. */
function changesBetween(active: PolicyManifest, request: JsonObject): string[] {
  const changed = Object.entries(withChanges(active, {})).filter(
    ([name, value]) => canonicalJson(value) !== canonicalJson(request[name] ?? null),
  );
  return [
    `Changes to the active policy, ${active.policy_id}:`,
    ...(changed.length === 0 ? ['  none: it is published again as it is'] : []),
    ...changed.flatMap(([name, value]) => [
      `  - ${name}  ${canonicalJson(value)}`,
      `  + ${name}  ${canonicalJson(request[name] ?? null)}`,
    ]),
  ];
}

function activePolicy(policy: PolicyManifest): Delivery {
  return shown(`Policy ${policy.policy_id} is active`, ['', ...policyText(policy)]);
}

const COLUMNS: readonly Column<PolicyHistory['versions'][number]>[] = [
  column('POLICY', ({ policy_id }) => policy_id),
  column('', ({ active }) => (active ? 'active' : '')),
  timeColumn('PUBLISHED', ({ created_at }) => created_at),
  column('MIN CLIENT', ({ policy }) => policy.min_client_version),
  column('PORTS', ({ policy }) => policy.allowed_ports.join(',')),
  column('SERVICES', ({ policy }) => policy.allowed_services.join(',')),
];

function listText({ versions }: PolicyHistory, options: TableOptions): Line[] {
  if (versions.length === 0) {
    return [
      'None was published: the first policy of the network is active, see mesh-na policy show.',
    ];
  }
  return tableOf(COLUMNS, versions, options);
}

function policyText(policy: PolicyManifest): string[] {
  const { preferred_transports, max_hops } = policy.routing;
  return [
    `policy      ${policy.policy_id}`,
    `issued      ${policy.issued_at}`,
    `min client  ${policy.min_client_version}`,
    `ports       ${policy.allowed_ports.join(', ') || 'none'}`,
    `services    ${policy.allowed_services.join(', ') || 'none'}`,
    `routing     ${preferred_transports.join(', ') || 'none'}; at most ${max_hops} hops`,
  ];
}
