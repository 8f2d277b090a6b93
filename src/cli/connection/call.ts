/**
 * `mesh-na call`: every operation of the API, with options derived from its declaration. It is for operations and members
 * that no other command offers, and for programs.
 */

import { type Command, InvalidArgumentError, type Option } from 'commander';
import { Value } from 'typebox/value';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { parsed } from '../../client/received.ts';
import type { Operation } from '../../protocol/api/define.ts';
import { API, type OperationName } from '../../protocol/api/table.ts';
import { maxBodyBytes } from '../../protocol/route-description.ts';
import { define, option } from '../kernel/command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { readJsonFile } from '../kernel/files.ts';
import { printResult } from '../kernel/output.ts';
import type { OperatorOptions } from './operator.ts';
import {
  askedFor,
  itemOf,
  type Member,
  membersOf,
  operationAs,
  optionOf,
} from './route-command.ts';

/** Options that say who asks whom; members with these names become `--target-…`. */
const TAKEN = new Set([
  'key-id',
  'key-file',
  'agent',
  'agent-key',
  'url',
  'profile',
  'body',
  'json',
]);

export function addCallCommands(call: Command): void {
  for (const [name, operation] of Object.entries<Operation>(API)) {
    if (isCallable(operation)) callCommand(call, name as OperationName, operation);
  }
}

/**
 * Pages and streams are no JSON, a WebSocket is no request, and nodes have commands of their own, which keep their key
 * and certificate.
 */
function isCallable({ access, answer, refusals }: Operation): boolean {
  const isUpgrade = refusals?.includes('upgrade_required') === true;
  return access !== 'node' && access !== 'internal' && !('contentType' in answer) && !isUpgrade;
}

function callCommand(call: Command, name: OperationName, operation: Operation): void {
  const { access, body, summary } = operation;
  const options = membersOf(operation).map((member) => [member, optionIn(member)] as const);
  const needed = options.filter(
    ([{ name: member, isRequired }]) => isRequired && body?.properties?.[member] === undefined,
  );
  const example = [
    `mesh-na call ${name}`,
    ...needed.map(([member, { long }]) => `${long} ${member.name.toUpperCase()}`),
    ...(body?.required === undefined ? [] : ['--body request.json']),
  ].join(' ');
  define(call, name, {
    about: access === 'operator-privileged' ? `${summary} (privileged)` : summary,
    asks: askedFor(name),
    options: [...options.map(([, each]) => each), ...(body === undefined ? [] : [BODY])],
    examples: [example],
    async run(_, __, command) {
      const given = command.opts<OperatorOptions & { readonly [option: string]: unknown }>();
      const file = typeof given.body === 'string' ? await readBody(given.body, operation) : {};
      const sent: Record<string, JsonValue> = { ...file };
      for (const [{ name: member, isRequired }, each] of options) {
        const value = given[each.attributeName()] as JsonValue | undefined;
        if (value !== undefined) sent[member] = value;
        if (isRequired && sent[member] === undefined) {
          throw usageFailure(`${each.long} is missing`);
        }
      }
      printResult({ json: true }, await operationAs(given, name)(sent), []);
    },
  });
}

const BODY = option('--body <file>', 'JSON object with further members, - for standard input');

function readBody(path: string, operation: Operation): Promise<JsonObject> {
  return readJsonFile(path, maxBodyBytes(operation));
}

function optionIn(member: Member): Option {
  const kebab = member.name.replaceAll('_', '-');
  const flags = `--${TAKEN.has(kebab) ? 'target-' : ''}${kebab} <value>`;
  return optionOf(member, [flags, undefined, (text) => readValue(text, itemOf(member.schema))]);
}

/** A text where the schema accepts one, otherwise JSON: numbers, booleans and objects. */
function readValue(text: string, schema: JsonObject): JsonValue {
  const value = Value.Check(schema, text) ? text : parsed(text);
  if (Value.Check(schema, value)) return value as JsonValue;
  const { description: _, default: __, ...bounds } = schema;
  throw new InvalidArgumentError(`It must fit ${JSON.stringify(bounds)}.`);
}
