import { outcomeOf } from '../../src/cli/kernel/errors.ts';
import { buildProgram } from '../../src/cli/program.ts';

/**
 * Runs a command that must fail, and returns its outcome; it prints nothing to standard output. For many commands, one
 * `program` is faster.
 */
export async function endOf(args: readonly string[], program = buildProgram()) {
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    return outcomeOf(error);
  }
  throw new Error(`${args.join(' ')} has not failed`);
}
