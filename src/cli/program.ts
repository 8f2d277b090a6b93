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
import { examples, SHORT_HELP } from './kernel/command.ts';
import { EXIT_CODE_HELP, rememberUsed } from './kernel/errors.ts';
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
  return new Command(name)
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .configureHelp(SHORT_HELP)
    .addHelpText('after', EXIT_CODE_HELP);
}

/** The program with all its commands, and the rules that hold for each of them. */
export function finished(program: Command): Command {
  program.commandsGroup('Help:').helpCommand(false);
  program
    .command('help [command...]')
    .description('display help for a command')
    .action((path: string[]) => helpOf(program, path));
  program.command('version', { hidden: true }).action(() => printLines([program.version() ?? '']));
  ignoreEmptyVariables(program);
  refuseRepeated(program);
  rememberUsed(program);
  return program;
}

/** Shows the help of the command at this path. */
function helpOf(program: Command, path: readonly string[]): never {
  if (path.join() === 'connection') return connectionHelp().help();
  let command = program;
  for (const name of path) {
    const below = command.commands.find((each) => [each.name(), ...each.aliases()].includes(name));
    if (below === undefined) return command.error(`unknown command '${name}'`);
    command = below;
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
  addConfigCommands(program);
  addDoctorCommand(program);
  addCompletionCommand(program);
  program.commandsGroup('Authorities:');
  addStatusCommand(program);
  addConnectCommand(program);
  addProfileCommands(program);
  program.commandsGroup('Nodes:');
  addInviteCommands(program);
  addNodeCommands(program);
  addAgentCommands(program);
  addCertificateVerification(addCertificateCommands(program));
  program.commandsGroup('Operators:');
  addOperatorKeyCommands(program);
  addPolicyCommands(program);
  addConsoleCommand(program);
  addAuditCommands(program);
  addEventsCommand(program);
  addHistoryCommand(program);
  addHorizonCommand(program);
  program.commandsGroup('Other sovereigns:');
  addAttestationCommands(program);
  addRecognitionPolicyCommands(program);
  addTreatyCommands(program);
  addFeedCommands(program);
  addGraphCommands(program);
  program.commandsGroup('Agreements and proofs:');
  addAgreementCommands(program);
  addBoundaryCommands(program);
  addEvidenceCommands(program);
  addDisclosureCommands(program);
  addConsensusCommands(program);
  addDataUsageCommands(program);
  program.commandsGroup('Keys and stored state:');
  addGenesisCommands(program);
  addAuthorityKeyCommands(program);
  addSignerCommand(program);
  addBackupCommands(program);
  addRestoreCommands(program);
  addStoreCommands(program);
  program.commandsGroup('Anything else:');
  addCallCommands(program);
  return finished(program);
}

/** Runs the command of this process's arguments, and sets the exit code. */
export async function runProgram(program: Command): Promise<void> {
  // A reader may close the pipe early, as in `mesh-na node list | head`.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  try {
    await program.parseAsync();
  } catch (error) {
    // Read from argv, because a command line that failed to parse has no options.
    process.exitCode = reportFailure(error, { json: process.argv.includes('--json') });
  }
}
