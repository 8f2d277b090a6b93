/** The command tree as plain data. */

import type { EventEmitter } from 'node:events';
import { type Command, Help } from 'commander';
import type { CommandEntry, CommandReference, Term } from '../pages/reference/command-reference.ts';

export function commandReference(program: Command): CommandReference {
  return {
    name: program.name(),
    description: program.description(),
    version: program.version() ?? '',
    options: optionTerms(program),
    notes: notesOf(program),
    commands: listedBelow(program).flatMap((command) => entriesOf(command, '')),
  };
}

/** Lists runnable commands only: a command that merely groups others has no entry. */
function entriesOf(command: Command, above: string): CommandEntry[] {
  const path = `${above}${command.name()}`;
  if (command.commands.length > 0) {
    return listedBelow(command).flatMap((below) => entriesOf(below, `${path} `));
  }
  const entry = {
    path,
    description: command.description(),
    usage: command.createHelp().commandUsage(command),
    arguments: argumentTerms(command),
    options: optionTerms(command),
    notes: notesOf(command),
  };
  return [entry];
}

/** The subcommands, without `help`. */
export function listedBelow(command: Command): Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.filter((below) => below.name() !== 'help');
}

function argumentTerms(command: Command): Term[] {
  const help = command.createHelp();
  return command.registeredArguments.map((argument) => ({
    term: help.argumentTerm(argument),
    description: help.argumentDescription(argument),
  }));
}

function optionTerms(command: Command): Term[] {
  const help = new Help();
  return help.visibleOptions(command).map((option) => ({
    term: help.optionTerm(option),
    description: help.optionDescription(option),
  }));
}

/** Collects the texts of `addHelpText` in the way that the help itself does. */
function notesOf(command: Command): string {
  const pieces: string[] = [];
  const write = (text: string) => pieces.push(text);
  // Commands are event emitters, which their type declarations omit.
  (command as unknown as EventEmitter).emit('afterHelp', { error: false, command, write });
  return pieces.join('').trim();
}

/** The variables that any command of the tree reads. */
export function variablesOf(command: Command): string[] {
  const own = command.options.flatMap(({ envVar }) => envVar ?? []);
  return [...own, ...command.commands.flatMap(variablesOf)];
}
