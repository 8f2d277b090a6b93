/**
 * The command tree, built without side effects, so that `/cli-reference` can be rendered from it. Commands consist of a
 * noun and a verb, except for the single words that set up or inspect the whole program.
 */
import { Command } from 'commander';
import { addAgentCommands } from './agent.ts';
import { addAgreementCommands } from './agreement.ts';
import { addAttestationCommands } from './attestation.ts';
import { addAuditCommands } from './audit.ts';
import { addAuthorityKeyCommands } from './authority-key.ts';
import { addBackupCommands } from './backup.ts';
import { addBoundaryCommands } from './boundary.ts';
import { addCallCommands } from './call.ts';
import { addCertificateCommands } from './certificate.ts';
import { addCompletionCommand } from './completion.ts';
import { addConfigCommands } from './config.ts';
import { addConnectCommand } from './connect.ts';
import { addConsensusCommands } from './consensus.ts';
import { addConsoleCommand } from './console.ts';
import { addDataUsageCommands } from './data-usage.ts';
import { addDisclosureCommands } from './disclosure.ts';
import { addDoctorCommand } from './doctor.ts';
import { addEventsCommand } from './events.ts';
import { addEvidenceCommands } from './evidence.ts';
import { EXIT_CODE_HELP } from './exit-codes.ts';
import { addFeedCommands } from './feed.ts';
import { addGenesisCommands } from './genesis.ts';
import { addGraphCommands } from './graph.ts';
import { addHistoryCommand } from './history.ts';
import { addHorizonCommand } from './horizon.ts';
import { addInitCommand } from './init.ts';
import { addInviteCommands } from './invite.ts';
import { addNodeCommands } from './node.ts';
import { addOperatorKeyCommands } from './operator-key.ts';
import { examples, ignoreEmptyVariables, refuseRepeated } from './options.ts';
import { reportFailure } from './output.ts';
import { addPolicyCommands } from './policy.ts';
import { addRecognitionPolicyCommands } from './recognition-policy.ts';
import { addRestoreCommands } from './restore.ts';
import { addServeCommand } from './serve.ts';
import { addSignerCommand } from './signer.ts';
import { addStoreCommands } from './store.ts';
import { addTreatyCommands } from './treaty.ts';
import { packageVersion } from './version.ts';

/** A program without commands. Those below it inherit that errors are thrown, and reported in one place. */
export function newProgram(name: string): Command {
  return new Command(name)
    .exitOverride()
    .configureOutput({ outputError: () => {} })
    .addHelpText('after', EXIT_CODE_HELP);
}

/** The program with all its commands, and the rules that hold for each of them. */
export function finished(program: Command): Command {
  program.commandsGroup('Help:').helpCommand(true);
  ignoreEmptyVariables(program);
  refuseRepeated(program);
  return program;
}

export function buildProgram(): Command {
  const program = newProgram('mesh-na')
    .description('The authority of one sovereign trust network, and its operators and nodes.')
    .version(packageVersion())
    .addHelpText('after', examples(['mesh-na init && mesh-na serve', 'mesh-na invite create']));
  program.commandsGroup('Setting up:');
  addInitCommand(program);
  addServeCommand(program);
  addConfigCommands(program);
  addConnectCommand(program);
  addDoctorCommand(program);
  addCompletionCommand(program);
  program.commandsGroup('Nodes:');
  addInviteCommands(program);
  addNodeCommands(program);
  addAgentCommands(program);
  addCertificateCommands(program);
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
