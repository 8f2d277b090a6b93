/**
 * The command tree, built without side effects, so that `/cli-reference` can be rendered from it. Commands consist of a
 * noun and a verb, except for the single words that set up or inspect the whole program.
 */

import { Command } from 'commander';
import { addAuthorityKeyCommands } from './authority-key/commands.ts';
import { addGenesisCommands } from './authority-key/root-key.ts';
import { addCompletionCommand } from './command-reference.ts';
import { addCallCommands } from './connection/call.ts';
import { addConnectCommand, addProfileCommands } from './connection/connect.ts';
import { OPERATOR } from './connection/operator.ts';
import { findAddress } from './connection/server.ts';
import { addDoctorCommand } from './doctor/commands.ts';
import { examples, filled, group, SHORT_HELP } from './kernel/command.ts';
import { EXIT, EXIT_CODE_HELP, failure, rememberUsed } from './kernel/errors.ts';
import { systemCode } from './kernel/files.ts';
import { ignoreEmptyVariables, refuseRepeated } from './kernel/options.ts';
import { printLines, reportFailure } from './kernel/output.ts';
import { addAgentCommands } from './node/agent.ts';
import { addCertificateVerification, addNodeCommands } from './node/commands.ts';
import { addCertificateCommands } from './nodes/certificate.ts';
import { addInviteCommands } from './nodes/invite.ts';
import { addAuditCommands } from './operators/audit.ts';
import { addConsoleCommand } from './operators/console.ts';
import { addEventsCommand } from './operators/events.ts';
import { addHistoryCommand, addHorizonCommand } from './operators/history.ts';
import { addOperatorKeyCommands } from './operators/operator-key.ts';
import { addPolicyCommands } from './operators/policy.ts';
import { addStatusCommand } from './operators/status.ts';
import { addAgreementCommands, addBoundaryCommands } from './protocol/agreement.ts';
import { addDataUsageCommands } from './protocol/data-usage.ts';
import {
  addConsensusCommands,
  addDisclosureCommands,
  addEvidenceCommands,
} from './protocol/proofs.ts';
import { addInitCommand } from './service/init.ts';
import { addConfigCommands, addServeCommand } from './service/serve.ts';
import { addSignerCommand } from './service/signer.ts';
import {
  addAttestationCommands,
  addFeedCommands,
  addRecognitionPolicyCommands,
} from './sovereigns/attestation.ts';
import { addGraphCommands } from './sovereigns/graph.ts';
import { addTreatyCommands } from './sovereigns/treaty.ts';
import { addBackupCommands } from './state/backup.ts';
import { addRestoreCommands } from './state/restore.ts';
import { addStoreCommands } from './state/store.ts';
import { packageVersion } from './version.ts';

/** A program without commands. Those below it inherit that errors are thrown, and reported in one place. */
export function newProgram(name: string): Command {
  return ready(new ProgramCommand(name))
    .configureOutput({ outputError: () => {} })
    .configureHelp(SHORT_HELP)
    .addHelpText('after', EXIT_CODE_HELP);
}

class ProgramCommand extends Command {
  constructor(name?: string) {
    super(name);
    this.hook('preSubcommand', (_, below) => void ready(below));
  }

  override createCommand(name?: string): Command {
    return new ProgramCommand(name);
  }
}

/** The command with those below it, and with the rules for every command. */
export function ready(command: Command): Command {
  filled(command);
  ignoreEmptyVariables(command);
  refuseRepeated(command);
  rememberUsed(command);
  return command;
}

/** Ends a program with the commands that show its help and version. */
export function withHelp(program: Command): Command {
  program.commandsGroup('Help:').helpCommand(false);
  program
    .command('help [command...]')
    .description('display help for a command')
    .action((path: string[]) => helpOf(program, path));
  program.command('version', { hidden: true }).action(() => printLines([program.version() ?? '']));
  return program;
}

/** Shows the help of the command at this path. */
function helpOf(program: Command, path: readonly string[]): never {
  if (path.join() === 'connection') return connectionHelp().help();
  let command = program;
  for (const name of path) {
    const below = command.commands.find((each) => [each.name(), ...each.aliases()].includes(name));
    if (below === undefined) return command.error(`unknown command '${name}'`);
    command = ready(below);
  }
  return command.help();
}

/** The options of every operator command, of which those of other commands are some. */
function connectionHelp(): Command {
  const shown = newProgram('mesh-na')
    .usage('<command> [options]')
    .description('How a command reaches an authority, and which key signs.')
    .helpOption(false);
  for (const each of OPERATOR.connection) shown.addOption(each);
  return shown;
}

export function buildProgram(): Command {
  const program = newProgram('mesh-na')
    .description('The authority of one sovereign trust network, and its operators and nodes.')
    .version(packageVersion())
    .hook('preAction', (_, command) => findAddress(command))
    .addHelpText('after', examples(['mesh-na init && mesh-na serve', 'mesh-na invite create']));
  program.commandsGroup('Setting up:');
  addInitCommand(program);
  addServeCommand(program);
  group(program, 'config', 'inspect the settings of serve', addConfigCommands);
  addDoctorCommand(program);
  addCompletionCommand(program);
  program.commandsGroup('Authorities:');
  addStatusCommand(program);
  addConnectCommand(program);
  group(
    program,
    'profile',
    'list, show and remove the authorities that mesh-na connect has saved',
    addProfileCommands,
  );
  program.commandsGroup('Nodes:');
  group(program, 'invite', 'invite nodes to the network', addInviteCommands);
  group(program, 'node', 'act as a node of the network, or list its nodes', addNodeCommands);
  group(program, 'agent', 'find agents, or register the agent of this node', addAgentCommands);
  group(program, 'certificate', 'look up and revoke certificates of nodes', (certificate) => {
    addCertificateCommands(certificate);
    addCertificateVerification(certificate);
  });
  program.commandsGroup('Operators:');
  group(
    program,
    'operator-key',
    'create, add, list and revoke operator keys',
    addOperatorKeyCommands,
  );
  group(program, 'policy', 'publish or read the policy manifest', addPolicyCommands);
  addConsoleCommand(program);
  group(program, 'audit', 'verify, show or export the audit log', addAuditCommands);
  addEventsCommand(program);
  addHistoryCommand(program);
  addHorizonCommand(program);
  program.commandsGroup('Other sovereigns:');
  group(
    program,
    'attestation',
    'attest membership, and verify attestations of others',
    addAttestationCommands,
  );
  group(
    program,
    'recognition-policy',
    'set or show whose attestations this sovereign accepts',
    addRecognitionPolicyCommands,
  );
  group(program, 'treaty', 'recognize other sovereigns', addTreatyCommands);
  group(program, 'feed', 'exchange revocations with other sovereigns', addFeedCommands);
  group(program, 'graph', 'read the recognition graph', addGraphCommands);
  program.commandsGroup('Agreements and proofs:');
  group(program, 'agreement', 'agree on capabilities with another sovereign', addAgreementCommands);
  group(
    program,
    'boundary',
    'decide whether requests stay within an agreement',
    addBoundaryCommands,
  );
  group(program, 'evidence', 'sign and verify trust decisions as evidence', addEvidenceCommands);
  group(
    program,
    'disclosure',
    'prove one capability of an agreement without revealing the others',
    addDisclosureCommands,
  );
  group(
    program,
    'consensus',
    'vote on decisions, and prove that enough validators approved',
    addConsensusCommands,
  );
  group(program, 'data-usage', 'license data, and declare access to data', addDataUsageCommands);
  program.commandsGroup('Keys and stored state:');
  group(program, 'genesis', 'renew the delegation of the root key, offline', addGenesisCommands);
  group(
    program,
    'authority-key',
    'replace the key of the authority, step by step',
    addAuthorityKeyCommands,
  );
  addSignerCommand(program);
  group(
    program,
    'backup',
    'back up the state of an authority, even while it is being served',
    addBackupCommands,
  );
  group(
    program,
    'restore',
    'restore a state from a backup, including all later revocations',
    addRestoreCommands,
  );
  group(
    program,
    'store',
    'manage the state: migrate, inspect, move or verify it',
    addStoreCommands,
  );
  program.commandsGroup('Anything else:');
  group(
    program,
    'call',
    'call any operation of the API, and print its answer as JSON',
    addCallCommands,
  );
  return withHelp(program);
}

/** Runs the command of this process's arguments, and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader may close the pipe early, as in `mesh-na node list | head`.
    if (error.code === 'EPIPE') process.exit();
    const message = `Standard output cannot be written (${systemCode(error)})`;
    process.exit(reportFailure(failure(EXIT.unusable, 'local_files', message), {}));
  });
  // There is no other place for messages, and a node on a full disk goes on.
  process.stderr.on('error', () => undefined);
  try {
    await program.parseAsync();
  } catch (error) {
    // Read from argv, because a command line that failed to parse has no options.
    process.exitCode = reportFailure(error, { json: process.argv.includes('--json') });
  }
}
