/** `mesh-na authority-key`: another key for the authority, while the network stays the same. */
import type { Command } from 'commander';
import { addPrepareCommand } from './authority-key-prepare.ts';
import { addSignCommand } from './authority-key-sign.ts';

export function addAuthorityKeyCommands(program: Command): void {
  const authorityKey = program
    .command('authority-key')
    .description('prepare and sign the replacement of the key of the authority');
  addPrepareCommand(authorityKey);
  addSignCommand(authorityKey);
}
