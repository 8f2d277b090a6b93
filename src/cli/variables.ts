import type { Command } from 'commander';

/** The variables that any command of the tree reads. */
export function variablesOf(command: Command): string[] {
  const own = command.options.flatMap(({ envVar }) => envVar ?? []);
  return [...own, ...command.commands.flatMap(variablesOf)];
}
