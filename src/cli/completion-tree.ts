/** The words and options that can follow each command on a command line. */
import type { Command } from 'commander';
import { listedBelow } from './command-reference.ts';

export interface CompletionWord {
  readonly word: string;
  readonly description: string;
}

export interface CompletionOption extends CompletionWord {
  readonly takesValue: boolean;
  /** The accepted values, if they are known. */
  readonly choices: readonly string[];
}

export interface Completions {
  /** The words of the command after the name of the program; empty for the program itself. */
  readonly path: string;
  /** Its subcommands, or the known values of its arguments. */
  readonly words: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
}

/** The program itself, and every command that its help lists. */
export function completionsOf(command: Command, path = ''): Completions[] {
  const below = listedBelow(command);
  const help = command.createHelp();
  const options = help.visibleOptions(command).map((option) => ({
    word: option.long ?? option.short ?? '',
    description: option.description,
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
  }));
  const words = [
    ...below.map((each) => ({ word: each.name(), description: each.description() })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, description })),
    ),
  ];
  const deeper = below.flatMap((each) =>
    completionsOf(each, path === '' ? each.name() : `${path} ${each.name()}`),
  );
  return [{ path, words, options }, ...deeper];
}

/** Quotes text as one word for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The name of a shell function for the program. */
export function functionName(program: string): string {
  return `_${program.replaceAll('-', '_')}`;
}

/** Returns the pattern of a `case` that recognizes the words of a command one by one. */
export function pathPattern(completions: readonly Completions[]): string {
  return completions.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join('|');
}

/** The options with known values, each with its command. */
export function valueCases(
  completions: readonly Completions[],
): { readonly at: string; readonly choices: readonly string[] }[] {
  return completions.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ word, choices }) => ({ at: `${path} ${word}`, choices })),
  );
}
