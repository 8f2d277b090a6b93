import type { Command } from 'commander';
import { reportFailure } from './output.ts';

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
