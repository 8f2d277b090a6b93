/** `mesh-na authority-key`: replaces the key of the authority in the same network. */
import type { Command } from 'commander';
import { addPrepareCommand } from './authority-key-prepare.ts';
import { addSignCommand } from './authority-key-sign.ts';
import { addStatusCommand } from './authority-key-status.ts';

export function addAuthorityKeyCommands(program: Command): void {
  const authorityKey = program
    .command('authority-key')
    .description(
      'prepare and sign the replacement of the authority’s key, which no authority applies yet',
    );
  addPrepareCommand(authorityKey);
  addSignCommand(authorityKey);
  addStatusCommand(authorityKey);
}
