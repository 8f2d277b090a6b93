import type { Command } from 'commander';

/** The name that a command had before commands were named by a noun and a verb. */
export interface EarlierName {
  readonly parent: Command;
  readonly name: string;
}

/** Defines a command that also works under its earlier name, with the same options; no list of commands has that. */
export function defineRenamed(
  command: Command,
  { parent, name }: EarlierName,
  define: (command: Command) => void,
): void {
  const earlier = parent.command(name, { hidden: true });
  for (const each of [command, earlier]) define(each);
  earlier.addHelpText('beforeAll', `This command is now called ${pathOf(command)}.\n`);
}

function pathOf(command: Command): string {
  const above = command.parent === null ? '' : `${pathOf(command.parent)} `;
  return `${above}${command.name()}`;
}
