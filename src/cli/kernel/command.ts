/**
 * A command is data: what it is about, its arguments and options, whom it asks, and what runs. What runs gets the options
 * in the types that their definitions imply.
 */
import { Argument, type Command, Help, Option } from 'commander';
import { assertOut, type RecordOptions } from './deliver.ts';
import { usedAs } from './errors.ts';
import { collectAs } from './options.ts';

type Camel<Text extends string> = Text extends `${infer Start}-${infer Rest}`
  ? `${Start}${Capitalize<Camel<Rest>>}`
  : Text;

/** The member of the options that a flag such as `--data-dir <folder>` sets. */
type NameIn<Flags extends string> = Flags extends `--${infer Name} ${string}`
  ? Camel<Name>
  : Flags extends `--${infer Name}`
    ? Camel<Name>
    : never;

/** What is not said is a text, or whether the flag is given if it takes no value. */
interface Rules {
  readonly parse?: (text: string, earlier: never) => unknown;
  readonly choices?: readonly string[];
  /** Repeatable. */
  readonly many?: true;
  readonly required?: true;
  readonly fallback?: unknown;
  /** How help describes the fallback. */
  readonly shown?: string;
  /** The variable that it comes from, too. */
  readonly env?: string;
  readonly conflicts?: string | string[];
}

type ValueOf<Flags extends string, Given extends Rules> = Given extends {
  readonly parse: (text: string, earlier: never) => infer Value;
}
  ? Value
  : Given extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Flags extends `${string}<${string}`
      ? string
      : boolean;

type MemberOf<Flags extends string, Given extends Rules> = {
  readonly [Name in NameIn<Flags>]: Given extends { readonly many: true }
    ? readonly ValueOf<Flags, Given>[]
    : ValueOf<Flags, Given>;
};

/** An option that sets these members. */
export type Typed<Members> = Option & { readonly members?: Members };

/** The members that these options set. */
export type OptionsIn<List extends readonly Option[]> = List extends readonly [
  Typed<infer Members>,
  ...infer Others extends readonly Option[],
]
  ? Members & OptionsIn<Others>
  : unknown;

export function option<const Flags extends string, const Given extends Rules = Rules>(
  flags: Flags,
  about: string,
  given?: Given,
): Typed<
  Given extends { readonly required: true } | { readonly fallback: unknown }
    ? MemberOf<Flags, Given>
    : Partial<MemberOf<Flags, Given>>
> {
  const { parse, choices, many, required, fallback, shown, env, conflicts } =
    given ?? ({} as Rules);
  const made = new Option(flags, about);
  if (choices !== undefined) made.choices(choices);
  const one = (parse ?? made.parseArg) as
    | ((text: string, earlier?: unknown) => unknown)
    | undefined;
  if (many) made.argParser(collectAs((text) => one?.(text, undefined) ?? text));
  else if (parse !== undefined) made.argParser(parse as (text: string) => unknown);
  if (fallback !== undefined || shown !== undefined) made.default(fallback, shown);
  if (env !== undefined) made.env(env);
  if (conflicts !== undefined) made.conflicts(conflicts);
  return made.makeOptionMandatory(required === true) as never;
}

/** Whom a command asks, which comes with options. */
export interface Asked<List extends readonly Option[]> {
  readonly options: List;
  /** Those that say how the authority is reached. */
  readonly connection?: readonly Option[];
  readonly before?: (command: Command) => Promise<void>;
}

export const JSON_OPTION = option('--json', 'print exactly one JSON object');

export const DATA_DIR = option('--data-dir <folder>', "the authority's data folder", {
  env: 'MESH_DATA_DIR',
  fallback: './mesh-data',
});

export const WIDE = option('--wide', 'on a terminal: all columns, with full ids and timestamps');

/** A command that needs no authority. */
export const NOBODY = { options: [JSON_OPTION] } as const;

export type Place = Option | Argument;

export interface Form<Own extends readonly Option[], Asks extends readonly Option[]> {
  readonly about: string;
  readonly asks?: Asked<Asks>;
  readonly args?: readonly (readonly [syntax: string, about: string] | Argument)[];
  readonly options?: Own;
  /** What `--out` saves, if the command has it. */
  readonly out?: string;
  readonly notes?: string;
  readonly examples: readonly string[];
}

export type Run<Own extends readonly Option[], Asks extends readonly Option[]> = (
  options: OptionsIn<Own> & OptionsIn<Asks> & RecordOptions,
  args: readonly string[],
  command: Command,
) => unknown;

/** What adds their commands to groups that nobody has used or shown yet. */
const EMPTY = new WeakMap<Command, (group: Command) => void>();

/**
 * Adds a group of commands about one noun, which gets its commands when it is used or shown: a process runs one command,
 * and to define all of them takes longer than most of them run.
 */
export function group(
  program: Command,
  noun: string,
  about: string,
  fill: (group: Command) => void,
): void {
  EMPTY.set(program.command(noun).description(about), fill);
}

/** The command; if it is a group, with its commands. */
export function filled(command: Command): Command {
  const fill = EMPTY.get(command);
  EMPTY.delete(command);
  fill?.(command);
  return command;
}

/** Adds the command to a group of commands. */
export function define<
  const Own extends readonly Option[] = [],
  const Asks extends readonly Option[] = typeof NOBODY.options,
>(group: Command, name: string, form: Form<Own, Asks> & { readonly run: Run<Own, Asks> }): Command {
  const { about, asks = NOBODY, args = [], options = [], out, notes, examples: lines, run } = form;
  const command = group.command(name).description(about);
  if (name === 'list') command.alias('ls');
  for (const each of args)
    command.addArgument(each instanceof Argument ? each : new Argument(...each));
  for (const each of options) command.addOption(each);
  if (out !== undefined) {
    command
      .option('--out <file>', `save ${out} to this file, - for standard output`)
      .option('--force', 'overwrite the file')
      .hook('preAction', () => assertOut(command.opts()));
  }
  if (notes !== undefined) command.addHelpText('after', `\n${notes}`);
  return asking(command, asks, lines).action(async () => {
    await usedAs(command, () => run(command.opts(), command.processedArgs, command));
  });
}

/** Ends the definition of a command with whom it asks, and its examples. */
export function asking(
  command: Command,
  { options, connection, before }: Asked<readonly Option[]>,
  lines: readonly string[],
): Command {
  for (const each of options) command.addOption(each);
  if (connection !== undefined) CONNECTIONS.set(command, new Set(connection));
  if (before !== undefined) command.hook('preAction', () => before(command));
  return command.addHelpText('after', examples(lines));
}

/** The examples that end a command's help. */
export function examples(lines: readonly string[]): string {
  return ['', 'Examples:', ...lines.map((line) => `  $ ${line}`)].join('\n');
}

/** The options of each command that `mesh-na help connection` describes. */
const CONNECTIONS = new WeakMap<Command, ReadonlySet<Option>>();

/** More choices than this are left to the completion of the shell. */
const MOST_CHOICES = 12;

/** Help leaves out how a command reaches an authority, which is described once, and long lists of choices. */
export const SHORT_HELP: Partial<Help> = {
  visibleCommands: (command) => new Help().visibleCommands(command).map(filled),
  visibleOptions(command) {
    const described = CONNECTIONS.get(command);
    const visible = new Help().visibleOptions(command);
    return visible.filter((option) => described?.has(option) !== true);
  },
  optionDescription(option) {
    const described = new Help().optionDescription(option);
    const { argChoices = [] } = option;
    if (argChoices.length <= MOST_CHOICES) return described;
    return described.replace(/\(choices: [^)]*\)/, '(the shell completes it)');
  },
  formatHelp(command, helper) {
    const text = new Help().formatHelp(command, helper);
    const line = 'Connection options: mesh-na help connection\n';
    return CONNECTIONS.has(command) ? `${text}\n${line}` : text;
  },
};
