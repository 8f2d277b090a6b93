#!/usr/bin/env -S node --no-allocation-site-pretenuring
import { reportFailure } from './output.ts';
import { buildProgram } from './program.ts';

// A reader that closes the pipe early (`mesh-na node list | head`) is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // Read from argv, since a command line that cannot be parsed has no options yet.
  process.exitCode = reportFailure(error, { json: process.argv.includes('--json') });
}
