/** A command for one operation: what it is sent, and what is shown of the answer. */
import { Argument, type Command, Option } from 'commander';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import type { SentObject } from '../../client/calls.ts';
import { pagesOf } from '../../client/list-pages.ts';
import type { Sent } from '../../client/operations.ts';
import type { AnswerOf, Operation, SentOf } from '../../protocol/api/define.ts';
import { PUBLIC_KEY_PATTERN } from '../../protocol/api/scalars.ts';
import { API, type Api, type OperationName } from '../../protocol/api/table.ts';
import { isOperatorRoute } from '../../protocol/route-description.ts';
import {
  addOutOption,
  type Description,
  deliverRecord,
  type RecordOptions,
} from '../kernel/deliver.ts';
import { readJsonFiles } from '../kernel/files.ts';
import { type ListOptions, printList } from '../kernel/list.ts';
import { collectAs, jsonObject, publicKey, wholeNumber } from '../kernel/options.ts';
import { addWideOption, type Column } from '../kernel/table.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator.ts';
import { addPublicOptions, publicClient } from './server.ts';

/** Where a command finds members: in JSON files, which come first among its arguments, or as values. */
export interface Inputs<File extends PropertyKey, Value extends PropertyKey> {
  readonly files?: { readonly [Member in File]: readonly [syntax: string, about: string] };
  readonly values?: { readonly [Member in Value]: Shown | Option };
}

/** Adds the inputs to the command; what is returned reads them. */
export function addInputs<
  Name extends OperationName,
  File extends keyof Sent<Name>,
  Value extends keyof Sent<Name>,
>(
  command: Command,
  name: Name,
  { files, values }: Inputs<File, Value>,
): () => Promise<Pick<Sent<Name>, File | Value>> {
  const paths = Object.entries<readonly [string, string]>(files ?? {}).map(
    ([member, [syntax, about]]) => {
      const place = syntax.startsWith('-')
        ? new Option(syntax, about)
        : new Argument(syntax, about);
      addPlace(command, place);
      return { member, place };
    },
  );
  const options = routeOptions<Operation, never>(API[name], values ?? {});
  options.addTo(command);
  return async () => {
    const given = paths.map(({ place }) => valueAt(command, place) as string | undefined);
    const records = await readJsonFiles(...given);
    const read = paths.map(({ member }, index) => [member, records[index]] as const);
    const named = Object.fromEntries(read.filter(([, record]) => record !== undefined));
    return { ...named, ...(options.sentIn(command) as object) } as Pick<Sent<Name>, File | Value>;
  };
}

interface RouteCommand<
  Name extends OperationName,
  File extends keyof Sent<Name>,
  Value extends keyof Sent<Name>,
  Given,
> extends Inputs<File, Value> {
  readonly about: string;
  /** What `--out` saves, if the command has it; `record` suffices. */
  readonly out?: string;
  readonly notes?: string;
  readonly examples: readonly string[];
  /** Arguments and options that are no members. */
  readonly more?: (command: Command) => unknown;
  /** Completes the members that were given; `args` are the arguments as they were typed. */
  readonly sent?: (
    given: Pick<Sent<Name>, File | Value>,
    options: Given,
    args: readonly string[],
  ) => Sent<Name> | Promise<Sent<Name>>;
  /** The answer is a record that must not get lost. */
  readonly record?: (answer: AnswerOf<Api[Name]>, sent: Sent<Name>) => Description;
  /** Shows any other answer. */
  readonly show?: (
    options: Given & RecordOptions,
    answer: AnswerOf<Api[Name]>,
    sent: Sent<Name>,
  ) => void;
}

/** Defines the command; whom it asks as whom follows from the access of the operation. */
export function routeCommand<
  Name extends OperationName,
  File extends keyof Sent<Name> = never,
  Value extends keyof Sent<Name> = never,
  Given = OperatorOptions,
>(command: Command, name: Name, form: RouteCommand<Name, File, Value, Given>): void {
  const { about, record, out = record && 'the record', notes, examples, more } = form;
  command.description(about);
  const inputs = addInputs<Name, File, Value>(command, name, form);
  more?.(command);
  if (out !== undefined) addOutOption(command, out);
  if (notes !== undefined) command.addHelpText('after', `\n${notes}`);
  command.action(async () => {
    const options = command.opts<Given & RecordOptions & OperatorOptions>();
    const given = await inputs();
    const sent = (await form.sent?.(given, options, command.args)) ?? (given as Sent<Name>);
    const answer = await operationAs(options, name)(sent as JsonObject);
    const read = answer as AnswerOf<Api[Name]>;
    if (record !== undefined) deliverRecord(options, answer, record(read, sent));
    form.show?.(options, read, sent);
  });
  addConnection(command, name, examples);
}

/** The row of a list: the members of its one list. */
type RowIn<Answer> = {
  readonly [Member in keyof Answer]-?: Answer[Member] extends readonly (infer Row)[] ? Row : never;
}[keyof Answer];

interface ListCommand<Name extends OperationName, Value extends keyof Sent<Name>>
  extends Pick<RouteCommand<Name, never, Value, never>, 'about' | 'values' | 'examples' | 'more'> {
  readonly columns: readonly Column<RowIn<AnswerOf<Api[Name]>> & object>[];
  /** The text for an empty list. */
  readonly none: string;
}

/** Defines a command that prints a list, of which it reads one page after the other. */
export function listCommand<Name extends OperationName, Value extends keyof Sent<Name> = never>(
  command: Command,
  name: Name,
  form: ListCommand<Name, Value>,
): void {
  const { about, values, more = addWideOption, columns, none, examples } = form;
  const { list }: Operation = API[name];
  const member = list?.member ?? '';
  command.description(about);
  const shown = routeOptions<Operation, never>(API[name], values ?? {});
  more(shown.addTo(command));
  command.action(async () => {
    const options = command.opts<OperatorOptions & ListOptions>();
    const filters = shown.sentIn(command) as JsonObject;
    const read = operationAs(options, name);
    const pages = pagesOf(
      (page) => read({ ...filters, ...page }),
      (answer) => answer[member] as unknown as readonly (RowIn<AnswerOf<Api[Name]>> & object)[],
    );
    await printList(options, pages, { member, columns, none });
  });
  addConnection(command, name, examples);
}

function addConnection(command: Command, name: OperationName, examples: readonly string[]): void {
  if (isOperatorRoute(API[name])) addOperatorOptions(command, examples);
  else addPublicOptions(command, examples);
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

export interface RouteOptions<Sent> {
  addTo(command: Command): Command;
  /** The members that were given to the command, in the names of the wire. */
  sentIn(command: Command): Sent;
}

/** Members as options of a command, or as arguments after those that it has already. */
export function routeOptions<Declared extends Operation, Name extends keyof SentOf<Declared>>(
  operation: Declared,
  shown: { readonly [Offered in Name]: Shown | Option },
): RouteOptions<Pick<SentOf<Declared>, Name>> {
  const members = membersOf(operation);
  const places = Object.entries<Shown | Option>(shown).map(([name, each]) => {
    if (each instanceof Option) return { name, place: each };
    const member = members.find((declared) => declared.name === name) as Member;
    return { name, place: placeOf({ ...member, schema: withoutNull(member.schema) }, each) };
  });
  return {
    addTo(command) {
      for (const { place } of places) addPlace(command, place);
      return command;
    },
    sentIn(command) {
      const sent = places.map(({ name, place }) => [name, valueAt(command, place)]);
      return Object.fromEntries(sent.filter(([, value]) => value !== undefined));
    },
  };
}

export type Place = Option | Argument;

export function addPlace(command: Command, place: Place): void {
  if (place instanceof Option) command.addOption(place);
  else command.addArgument(place);
}

export function valueAt(command: Command, place: Place): unknown {
  if (place instanceof Option) return command.opts()[place.attributeName()];
  return command.processedArgs[command.registeredArguments.indexOf(place)];
}

/** A required member is a mandatory option. */
function placeOf(member: Member, shown: Shown): Place {
  const [syntax, text = String(member.schema.description), own] = shown;
  if (syntax.startsWith('-')) {
    return optionOf(member, shown).makeOptionMandatory(member.isRequired);
  }
  return new Argument(syntax, text).argParser(own ?? parserOf(member.schema));
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
    ...(otherwise === undefined ? [] : [`default: ${shownDefault(otherwise)}`]),
  ];
  const about = text ?? String(description);
  const option = new Option(flags, notes.length === 0 ? about : `${about} (${notes.join('; ')})`);
  const choices = Array.isArray(item.enum) ? item.enum.map(String) : undefined;
  if (own === undefined && choices !== undefined) return option.choices(choices);
  if (choices !== undefined) option.argChoices = choices;
  const parse = own ?? parserOf(item);
  return isRepeatable ? option.argParser(collectAs(parse)) : option.argParser(parse);
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
function parserOf(schema: JsonObject): (text: string) => unknown {
  if (schema.pattern === PUBLIC_KEY_PATTERN) return publicKey;
  if (schema.type === 'integer') return wholeNumber();
  if (schema.type === 'object') return jsonObject;
  return (text) => text;
}

function shownDefault(value: JsonValue): string {
  if (Array.isArray(value) && value.length > 0) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
