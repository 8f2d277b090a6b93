#!/usr/bin/env -S node --no-allocation-site-pretenuring
import { reportFailure } from './output.ts';
import { buildProgram } from './program.ts';

// A reader may close the pipe early, as in `mesh-na node list | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // Read from argv, because a command line that failed to parse has no options.
  process.exitCode = reportFailure(error, { json: process.argv.includes('--json') });
}
