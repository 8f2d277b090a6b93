/** A command for one operation: what it is sent, and what is shown of the answer. */

import { Argument, type Command, Option } from 'commander';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { pagesOf, type Sent, type SentObject } from '../../client/operations.ts';
import type { AnswerOf, Operation, SentOf } from '../../protocol/api/define.ts';
import { PUBLIC_KEY_PATTERN } from '../../protocol/api/members.ts';
import { API, type Api, type OperationName } from '../../protocol/api/table.ts';
import { isOperatorRoute } from '../../protocol/route-description.ts';
import { type CertificateRow, isInUse } from '../../protocol/rows/certificate.ts';
import { isNodeName } from '../../protocol/rows/node-description.ts';
import {
  type Asked,
  define,
  type Form,
  type OptionsIn,
  type Place,
  WIDE,
} from '../kernel/command.ts';
import { type Delivery, deliver, type RecordOptions } from '../kernel/deliver.ts';
import { assertRecord, readJsonFiles } from '../kernel/files.ts';
import { idArgument, type Kind, onlyId } from '../kernel/ids.ts';
import { type ListOptions, listOptions, printList } from '../kernel/list.ts';
import { collectAs, hours, jsonObject, publicKey, wholeNumber } from '../kernel/options.ts';
import { type Line, printResult } from '../kernel/output.ts';
import type { Column } from '../kernel/table.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from './operator.ts';
import { ANYONE, publicClient, type Reach } from './server.ts';

/** Where a command finds members: in JSON files, which come first among its arguments, or as values. */
export interface Inputs<File extends PropertyKey, Value extends PropertyKey> {
  readonly files?: { readonly [Member in File]: readonly [syntax: string, about: string] };
  readonly values?: { readonly [Member in Value]: Offered };
}

/** A member is offered as an option or argument, or as an id of this kind, which is expanded. */
type Offered = Shown | Option | Kind;

/** The inputs of a command as its arguments and options, and how they are read. */
export function inputsOf<
  Name extends OperationName,
  File extends keyof Sent<Name>,
  Value extends keyof Sent<Name>,
>(name: Name, { files, values }: Inputs<File, Value>) {
  const paths = Object.entries<readonly [string, string]>(files ?? {}).map(
    ([member, [syntax, about]]) => {
      const place = syntax.startsWith('-')
        ? new Option(syntax, about)
        : new Argument(syntax, about);
      return { member, place };
    },
  );
  const named = routeOptions<Operation, never>(API[name], values ?? {});
  const places = [...paths.map(({ place }) => place), ...named.places];
  return {
    args: places.filter((place) => place instanceof Argument),
    options: places.filter((place) => place instanceof Option),
    async read(command: Command): Promise<Pick<Sent<Name>, File | Value>> {
      const given = paths.map(({ place }) => valueAt(command, place) as string | undefined);
      const records = await readJsonFiles(...given);
      for (const [index, { member }] of paths.entries()) {
        assertRecord(given[index] ?? '', member, records[index] ?? {});
      }
      const read = paths.map(({ member }, index) => [member, records[index]] as const);
      const members = Object.fromEntries(read.filter(([, record]) => record !== undefined));
      return { ...members, ...(named.sentIn(command) as object) } as Pick<Sent<Name>, File | Value>;
    },
  };
}

interface RouteForm<
  Name extends OperationName,
  File extends keyof Sent<Name>,
  Value extends keyof Sent<Name>,
  Own extends readonly Option[],
> extends Inputs<File, Value>,
    Form<Own, readonly Option[]> {
  /** Completes the members that were given; `args` are the arguments as they were typed. */
  readonly sent?: (
    given: Pick<Sent<Name>, File | Value>,
    options: OptionsIn<Own> & OperatorOptions,
    args: readonly string[],
  ) => Sent<Name> | Promise<Sent<Name>>;
  /** The answer is a record or document that `--out` can save. */
  readonly record?: (
    answer: AnswerOf<Api[Name]>,
    sent: Sent<Name>,
    options: OptionsIn<Own> & OperatorOptions & RecordOptions,
  ) => Delivery;
  /** Prints an answer that is neither. */
  readonly show?: (
    answer: AnswerOf<Api[Name]>,
    sent: Sent<Name>,
    options: OptionsIn<Own> & OperatorOptions & RecordOptions,
  ) => void | Promise<void>;
  /** Any other answer as text. */
  readonly text?: (
    answer: AnswerOf<Api[Name]>,
    sent: Sent<Name>,
    options: OptionsIn<Own> & OperatorOptions & RecordOptions,
  ) => readonly Line[];
}

/** Defines a command for one operation; whom it asks as whom follows from the access of the operation. */
export function routeCommand<
  Name extends OperationName,
  File extends keyof Sent<Name> = never,
  Value extends keyof Sent<Name> = never,
  const Own extends readonly Option[] = [],
>(group: Command, words: string, name: Name, form: RouteForm<Name, File, Value, Own>): void {
  const { record, out = record && 'the record', args = [], options: own = [] } = form;
  const inputs = inputsOf<Name, File, Value>(name, form);
  define(group, words, {
    ...form,
    asks: askedFor(name),
    args: [...inputs.args, ...args],
    options: [...inputs.options, ...own],
    ...(out !== undefined && { out }),
    async run(_, __, command) {
      const options = command.opts<OptionsIn<Own> & OperatorOptions & RecordOptions>();
      const given = await inputs.read(command);
      const named = (await form.sent?.(given, options, command.args)) ?? (given as Sent<Name>);
      const sent = { ...named, ...(await wholeIds(options, form.values ?? {}, named)) };
      const answer = await operationAs(options, name)(sent as JsonObject);
      const typed = answer as AnswerOf<Api[Name]>;
      if (record !== undefined) deliver(options, answer, record(typed, sent, options));
      else if (form.show !== undefined) await form.show(typed, sent, options);
      else printResult(options, answer, form.text?.(typed, sent, options) ?? []);
    },
  });
}

/** The ids among the values, each expanded. */
async function wholeIds(options: Reach, values: object, given: object): Promise<JsonObject> {
  const ids: Record<string, string> = {};
  for (const [member, offered] of Object.entries<Offered>(values as never)) {
    if (typeof offered !== 'string') continue;
    ids[member] = await resolveId(
      options,
      offered,
      (given as Record<string, string>)[member] ?? '',
    );
  }
  return ids;
}

/** The row of a list: the members of its one list. */
type RowIn<Answer> = {
  readonly [Member in keyof Answer]-?: Answer[Member] extends readonly (infer Row)[] ? Row : never;
}[keyof Answer];

interface ListForm<Name extends OperationName, Value extends keyof Sent<Name>>
  extends Pick<RouteForm<Name, never, Value, []>, 'about' | 'values' | 'examples'> {
  readonly columns: readonly Column<RowIn<AnswerOf<Api[Name]>> & object>[];
  /** The text for an empty list. */
  readonly none: string;
  /** Whether rows can be sorted and limited. */
  readonly isSorted?: boolean;
}

/** Defines a command that prints a list, of which it reads one page after the other. */
export function listCommand<Name extends OperationName, Value extends keyof Sent<Name> = never>(
  group: Command,
  words: string,
  name: Name,
  { values, columns, none, isSorted = false, ...form }: ListForm<Name, Value>,
): void {
  const { list }: Operation = API[name];
  const member = list?.member ?? '';
  const filters = routeOptions<Operation, never>(API[name], values ?? {});
  define(group, words, {
    ...form,
    asks: askedFor(name),
    options: [...filters.options, ...(isSorted ? listOptions(columns) : [WIDE])],
    async run(_, __, command) {
      const options = command.opts<OperatorOptions & ListOptions>();
      const pages = listedBy(options, name, filters.sentIn(command) as JsonObject);
      type Row = RowIn<AnswerOf<Api[Name]>> & object;
      await printList(options, pages as AsyncIterable<readonly Row[]>, { member, columns, none });
    },
  });
}

/** The pages of a list, asked as these options say. */
function listedBy(options: OperatorOptions, name: OperationName, filters: JsonObject) {
  const { list }: Operation = API[name];
  const read = operationAs(options, name);
  return pagesOf(
    (page) => read({ ...filters, ...page }),
    (answer) => answer[list?.member ?? ''] as readonly JsonObject[],
  );
}

/** Where the ids are listed that commands expand, and the filter of the list that narrows them down. */
const LISTED: {
  readonly [kind in Kind]: readonly [OperationName, id: readonly string[], filter?: string];
} = {
  certificate: ['listCertificates', ['cert_id'], 'cert_id'],
  'node key': ['listCertificates', ['node_public_key'], 'key'],
  invite: ['listInvites', ['token_fingerprint'], 'fingerprint'],
  treaty: ['listTreaties', ['treaty', 'treaty_id']],
  attestation: ['listAttestations', ['attestation', 'attestation_id']],
};

/** Returns the full id for an id, a unique prefix, or the name of a node, whose certificate is the one in use. */
export function resolveId(options: Reach, kind: Kind, given: string): Promise<string> {
  const [name, path, filter] = LISTED[kind];
  async function* idsWith(filters: JsonObject, isMeant = (_: JsonObject) => true) {
    for await (const rows of listedBy(options as OperatorOptions, name, filters)) {
      for (const row of rows.filter(isMeant)) {
        yield String(
          path.reduce<JsonValue>((at, member) => (at as JsonObject)[member] ?? null, row),
        );
      }
    }
  }
  const ids = idsWith(filter === undefined ? {} : { [filter]: given });
  if (name !== 'listCertificates' || !isNodeName(given)) return onlyId(given, kind, ids);
  // An older authority may ignore filters, and what is found may be revoked.
  const isNamed = (row: Partial<CertificateRow>) => row.name === given;
  const isUsed = (row: Partial<CertificateRow>) =>
    isNamed(row) && row.status !== undefined && isInUse(row.status);
  async function* named() {
    let count = 0;
    for await (const id of idsWith({ name: given, status: 'in_use' }, isUsed)) {
      count += 1;
      yield id;
    }
    if (kind === 'certificate') return;
    // Nothing that a revoked node has is in use, and it is what one asks about.
    if (count === 0) yield* idsWith({ name: given }, isNamed);
    const isOwned = ({ cert_id }: Partial<CertificateRow>) => cert_id?.startsWith(given) === true;
    if (CERTIFICATE_PREFIX.test(given)) {
      yield* idsWith({ cert_id: given }, isOwned);
    }
  }
  return onlyId(given, kind, ids, named());
}

/** A node is also named by the beginning of the id of its certificate. */
const CERTIFICATE_PREFIX = /^[0-9a-f]{8}[0-9a-f-]*$/;

export function askedFor(name: OperationName): Asked<readonly Option[]> {
  return isOperatorRoute(API[name]) ? OPERATOR : ANYONE;
}

type Method = (sent: SentObject) => Promise<JsonObject & { readonly next_cursor?: string }>;

/** The operation, asked as these options say. */
export function operationAs(options: OperatorOptions, name: OperationName): Method {
  return methodOf(
    isOperatorRoute(API[name]) ? operatorClient(options) : publicClient(options),
    name,
  );
}

/** Clients and verifiers have a method for each operation that answers JSON. */
export function methodOf(asked: object, name: OperationName): Method {
  return (asked as Readonly<Record<OperationName, Method>>)[name];
}

/** A member of path, query or body. */
export interface Member {
  readonly name: string;
  readonly schema: JsonObject;
  readonly isRequired: boolean;
}

/** The flag or argument, and what a command says or accepts otherwise than the declaration. */
export type Shown = readonly [
  syntax: string,
  about?: string | undefined,
  parse?: (text: string) => unknown,
];

/** Members as options of a command, or as arguments after those that it has already. */
export function routeOptions<Declared extends Operation, Name extends keyof SentOf<Declared>>(
  operation: Declared,
  shown: { readonly [Member in Name]: Offered },
) {
  const members = membersOf(operation);
  const places = Object.entries<Offered>(shown).map(([name, each]) => {
    if (each instanceof Option) return { name, place: each };
    if (typeof each === 'string') return { name, place: idArgument(each) };
    const member = members.find((declared) => declared.name === name) as Member;
    return { name, place: placeOf({ ...member, schema: withoutNull(member.schema) }, each) };
  });
  return {
    places: places.map(({ place }) => place),
    /** Those of a declaration without arguments. */
    options: places.flatMap(({ place }) => (place instanceof Option ? [place] : [])),
    /** The members that were given to the command, in the names of the wire. */
    sentIn(command: Command): Pick<SentOf<Declared>, Name> {
      const sent = places.map(({ name, place }) => [name, valueAt(command, place)]);
      return Object.fromEntries(sent.filter(([, value]) => value !== undefined));
    },
  };
}

function valueAt(command: Command, place: Place): unknown {
  if (place instanceof Option) return command.opts()[place.attributeName()];
  return command.processedArgs[command.registeredArguments.indexOf(place)];
}

/** A required member is a mandatory option. */
function placeOf(member: Member, shown: Shown): Place {
  const [syntax, text = String(member.schema.description), own] = shown;
  if (syntax.startsWith('-')) {
    return optionOf(member, shown).makeOptionMandatory(member.isRequired);
  }
  const argument = new Argument(syntax, text);
  const choices = choicesIn(member.schema);
  if (own === undefined && choices !== undefined) return argument.choices(choices);
  return argument.argParser(own ?? parserOf(member.name, member.schema));
}

export function membersOf({ path, query, body }: Operation): Member[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    schema: { type: 'string' },
    isRequired: true,
  }));
  const others = [query, body].flatMap((schema) =>
    Object.entries(schema?.properties ?? {}).map(([name, of]) => ({
      name,
      schema: of as unknown as JsonObject,
      isRequired: schema?.required?.includes(name) === true,
    })),
  );
  return [...inPath, ...others];
}

export function optionOf({ name, schema, isRequired }: Member, [flags, text, own]: Shown): Option {
  const { description = name, default: otherwise } = schema;
  const item = itemOf(schema);
  const isRepeatable = item !== schema;
  const notes = [
    ...(isRequired ? ['required'] : []),
    ...(isRepeatable ? ['repeatable'] : []),
    ...(name.endsWith('_hours') ? ['in hours, or as 7d'] : []),
    ...(otherwise === undefined ? [] : [`default: ${shownDefault(otherwise)}`]),
  ];
  const about = text ?? String(description);
  const option = new Option(flags, notes.length === 0 ? about : `${about} (${notes.join('; ')})`);
  const choices = choicesIn(item);
  if (own === undefined && choices !== undefined) return option.choices(choices);
  if (choices !== undefined) option.argChoices = choices;
  const parse = own ?? parserOf(name, item);
  return isRepeatable ? option.argParser(collectAs(parse)) : option.argParser(parse);
}

function choicesIn(schema: JsonObject): string[] | undefined {
  return Array.isArray(schema.enum) ? schema.enum.map(String) : undefined;
}

/** The schema of one value of an option: of a list, that of its items. */
export function itemOf(schema: JsonObject): JsonObject {
  return isJsonObject(schema.items) ? schema.items : schema;
}

/** Nobody gives null on a command line: the option is left out. */
function withoutNull(schema: JsonObject): JsonObject {
  const [first] = isList(schema.anyOf) ? schema.anyOf : [];
  return isJsonObject(first) ? { ...schema, ...first } : schema;
}

/** The authority judges upper bounds, which may be those of another version. */
function parserOf(name: string, schema: JsonObject): (text: string) => unknown {
  if (schema.pattern === PUBLIC_KEY_PATTERN) return publicKey;
  if (name.endsWith('_hours')) return hours();
  if (schema.type === 'integer') return wholeNumber(undefined, schema.minimum === 0 ? 0 : 1);
  if (schema.type === 'object') return jsonObject;
  return (text) => text;
}

function shownDefault(value: JsonValue): string {
  if (Array.isArray(value) && value.length > 0) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
