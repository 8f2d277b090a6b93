/** `mesh-na operator-key`: the keys of operators. */
import type { Command } from 'commander';
import { defineRenamed } from './earlier-name.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { asJson, printResult } from './output.ts';

export function addOperatorKeyCommands(program: Command): void {
  const operatorKey = program.command('operator-key').description('revoke keys of operators');
  const earlier = { parent: program, name: 'revoke-operator-key' };
  defineRenamed(operatorKey.command('revoke'), earlier, defineRevoke);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an operator key for good (privileged)')
    .argument('<key-id>', 'operator key to revoke')
    .option('--reason <text>', 'why')
    .action(runRevoke);
  addOperatorOptions(revoke, ['mesh-na operator-key revoke ops-standard --reason rotated']);
}

async function runRevoke(
  keyId: string,
  options: OperatorOptions & { readonly reason?: string },
): Promise<void> {
  const { reason } = options;
  const request = reason === undefined ? {} : { reason };
  const revoked = await operatorClient(options).revokeOperatorKey(keyId, request);
  const text = revoked.already_revoked
    ? `Operator key ${keyId} was revoked before.`
    : `Operator key ${keyId} is revoked; ${revoked.remaining_active_keys} remain usable.`;
  printResult(options, asJson(revoked), [text]);
}
