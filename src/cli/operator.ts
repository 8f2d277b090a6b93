/** The operator's commands for nodes and keys: each is one signed request. */
import { type Command, Option } from 'commander';
import type { Invite } from '../answers/operators.ts';
import type { Roster } from '../client/operator-client.ts';
import { jsonText } from '../json/write.ts';
import { REVOCATION_REASONS, type RevocationReason } from '../records/revocation-list.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { collect, wholeNumber } from './options.ts';
import { alignedTable, asJson, printLines, printNote, printResult } from './output.ts';
import { addOutOption, type OutOptions, saveText } from './record-output.ts';

interface InviteOptions extends OperatorOptions, OutOptions {
  readonly role?: readonly string[];
  readonly maxValidityHours?: number;
  readonly tokenExpiryHours?: number;
  readonly count?: number;
  readonly recipient?: string;
}

export function addOperatorCommands(program: Command): void {
  const invite = program
    .command('invite')
    .description('make a single-use invite token; it is printed once and shown nowhere else')
    .option('--role <role>', 'role of the node (repeatable; default: role:client)', collect)
    .option('--max-validity-hours <n>', 'longest certificate (default: 168)', wholeNumber())
    .option('--token-expiry-hours <n>', 'lifetime of the token (default: 24)', wholeNumber())
    .option('--count <n>', 'make this many tokens in one request', wholeNumber())
    .option('--recipient <public-key>', 'bind the invite to this node key')
    .action(runInvite);
  addOperatorOptions(addOutOption(invite, 'the tokens, one a line,'), [
    'mesh-na invite --role role:client --out token',
    'mesh-na invite --role role:anchor --role role:bridge --max-validity-hours 72 --json',
  ]);

  const revoke = program
    .command('revoke')
    .description('revoke a node certificate and publish a new revocation list (privileged)')
    .argument('<cert-id>', 'certificate to revoke')
    .addOption(new Option('--reason <reason>', 'why').choices(REVOCATION_REASONS))
    .action(runRevoke);
  addOperatorOptions(revoke, [
    'mesh-na revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason key_compromise',
  ]);

  const revokeKey = program
    .command('revoke-operator-key')
    .description('revoke an operator key for good (privileged)')
    .argument('<key-id>', 'operator key to revoke')
    .option('--reason <text>', 'why')
    .action(runRevokeOperatorKey);
  addOperatorOptions(revokeKey, ['mesh-na revoke-operator-key ops-standard --reason rotated']);

  const nodes = program.command('nodes').description('list the active nodes').action(runNodes);
  addOperatorOptions(nodes, ['mesh-na nodes', 'mesh-na nodes --json | jq .count']);
}

async function runInvite(options: InviteOptions): Promise<void> {
  const { role, maxValidityHours, tokenExpiryHours, count, recipient } = options;
  const invite = await operatorClient(options).invite({
    ...(role && { roles: role }),
    ...(maxValidityHours && { max_validity_hours: maxValidityHours }),
    ...(tokenExpiryHours && { token_expiry_hours: tokenExpiryHours }),
    ...(count && { count }),
    ...(recipient !== undefined && { recipient_public_key: recipient }),
  });
  deliverTokens(options, invite);
}

/** Tokens are secrets: they go where they are wanted and nowhere else, and words about them to stderr. */
function deliverTokens(options: InviteOptions, invite: Invite): void {
  const { tokens = [invite], expires_at } = invite;
  const lines = tokens.map(({ token_id }) => token_id);
  const isSaved = saveText(options, `${lines.join('\n')}\n`, {
    made: 'The invite is made',
    isSecret: true,
    ...(options.json && { fallback: jsonText(asJson(invite)) }),
  });
  if (options.json) {
    printResult(options, asJson(invite), []);
    return;
  }
  if (!isSaved) printLines(lines);
  printNote(`Each token admits one node until ${expires_at} and is not shown again.`);
  const file = isSaved ? options.out : '<file with the token>';
  printNote(`On the node: mesh-na node join --root-key <root key> --token-file ${file}`);
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

async function runRevokeOperatorKey(
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

async function runNodes(options: OperatorOptions): Promise<void> {
  const roster = await operatorClient(options).nodes();
  printResult(options, asJson(roster), rosterText(roster));
}

function rosterText({ count, nodes }: Roster): string[] {
  if (count === 0) return ['No node is active.'];
  const header = ['CERTIFICATE', 'KEY', 'ROLES', 'STATUS', 'LAST HEARTBEAT', 'EXPIRES'];
  const rows = Object.entries(nodes).map(([certId, node]) => [
    certId,
    node.node_public_key,
    node.roles.join(','),
    node.status,
    node.last_heartbeat,
    node.expires_at,
  ]);
  return alignedTable([header, ...rows]);
}
