/** `mesh-na authority-key`: replaces the key of the authority in the same network. */
import type { Command } from 'commander';
import { addPrepareCommand } from './authority-key-prepare.ts';
import { addSignCommand } from './authority-key-sign.ts';
import { addStatusCommand } from './authority-key-status.ts';
import { addStepCommands } from './authority-key-steps.ts';

export function addAuthorityKeyCommands(program: Command): void {
  const authorityKey = program
    .command('authority-key')
    .description('replace the key of the authority, step by step');
  addPrepareCommand(authorityKey);
  addSignCommand(authorityKey);
  addStepCommands(authorityKey);
  addStatusCommand(authorityKey);
}
