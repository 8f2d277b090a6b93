/** Options of commands, and what they send, derived from the declaration of an operation. */
import { Argument, type Command, Option } from 'commander';
import { isJsonObject, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import type { Operation, SentOf } from '../../protocol/api/define.ts';
import { PUBLIC_KEY_PATTERN } from '../../protocol/api/scalars.ts';
import { collectAs, jsonObject, publicKey, wholeNumber } from '../kernel/options.ts';

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
