/**
 * Commands of the program in the process of the test: the same tree, arguments and output, without the start of a process,
 * which takes longer than most commands. What is about the process itself calls `runProgram`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { reportFailure } from '../../src/cli/output.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { ChildEnvironment, Ended } from './child-server.ts';
import { withoutSettings } from './isolation.ts';

interface Printed {
  readonly stdout: string[];
  readonly stderr: string[];
}

/** What else the process prints meanwhile, such as the results of other tests, goes where it always does. */
const printing = new AsyncLocalStorage<Printed>();
for (const name of ['stdout', 'stderr'] as const) {
  const stream = process[name];
  const write = stream.write.bind(stream);
  stream.write = (chunk: string | Uint8Array, ...rest: never[]) => {
    const printed = printing.getStore();
    if (printed === undefined) return write(chunk, ...rest);
    printed[name].push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString());
    return true;
  };
}

/** One after the other, since each has the environment of the process for itself. */
let last: Promise<unknown> = Promise.resolve();

/** Runs one command of the program to its end. */
export function runCommand(
  args: readonly string[],
  environment: ChildEnvironment = {},
): Promise<Ended> {
  const ended = last.then(() => run(args, environment));
  last = ended.catch(() => undefined);
  return ended;
}

async function run(args: readonly string[], environment: ChildEnvironment): Promise<Ended> {
  const printed: Printed = { stdout: [], stderr: [] };
  const { env } = process;
  process.env = { ...withoutSettings(env), ...environment };
  try {
    const code = await printing.run(printed, () => exitCodeOf(args));
    return {
      code,
      signal: null,
      stdout: printed.stdout.join(''),
      stderr: printed.stderr.join(''),
    };
  } finally {
    process.env = env;
  }
}

async function exitCodeOf(args: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return reportFailure(error, { json: args.includes('--json') });
  }
}
