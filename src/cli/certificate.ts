/** `mesh-na certificate`: the certificates of nodes. */
import { type Command, Option } from 'commander';
import { REVOCATION_REASONS, type RevocationReason } from '../records/revocation-list.ts';
import { defineRenamed } from './earlier-name.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { asJson, printResult } from './output.ts';

export function addCertificateCommands(program: Command): void {
  const certificate = program.command('certificate').description('revoke certificates of nodes');
  defineRenamed(certificate.command('revoke'), { parent: program, name: 'revoke' }, defineRevoke);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke a node certificate and publish a new revocation list (privileged)')
    .argument('<cert-id>', 'certificate to revoke')
    .addOption(new Option('--reason <reason>', 'why').choices(REVOCATION_REASONS))
    .action(runRevoke);
  addOperatorOptions(revoke, [
    'mesh-na certificate revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason key_compromise',
  ]);
}

async function runRevoke(
  certId: string,
  options: OperatorOptions & { readonly reason?: RevocationReason },
): Promise<void> {
  const { reason } = options;
  const revoked = await operatorClient(options).revoke({
    cert_id: certId,
    ...(reason && { reason }),
  });
  printResult(options, asJson(revoked), [
    `Certificate ${certId} is revoked.`,
    `The revocation list has sequence ${revoked.crl_sequence} and ${revoked.revoked_count} entries.`,
    ...(revoked.live_certificates_of_key !== undefined
      ? [
          `Live certificates of the same key: ${revoked.live_certificates_of_key}; --reason key_compromise revokes all of them.`,
        ]
      : []),
  ]);
}
