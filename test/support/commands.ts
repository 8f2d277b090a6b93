/**
 * Runs commands of the program in the process of the test, with the same command tree, arguments and output. Starting
 * a process would take longer than most commands. Tests about the process itself call `runProgram`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Command } from 'commander';
import { reportFailure } from '../../src/cli/kernel/output.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { ChildEnvironment, Ended } from './child-server.ts';
import { withoutSettings } from './isolation.ts';

interface Printed {
  readonly stdout: string[];
  readonly stderr: string[];
}

/** Other output of the process, such as the results of other tests, still goes where it normally does. */
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

/** Commands run one after another, because each one replaces the environment of the process. */
let last: Promise<unknown> = Promise.resolve();

/** Runs a command of the program until it ends. */
export function runCommand(
  args: readonly string[],
  environment: ChildEnvironment = {},
  build: () => Command = buildProgram,
): Promise<Ended> {
  const ended = last.then(() => run(args, environment, build));
  last = ended.catch(() => undefined);
  return ended;
}

async function run(
  args: readonly string[],
  environment: ChildEnvironment,
  build: () => Command,
): Promise<Ended> {
  const printed: Printed = { stdout: [], stderr: [] };
  const { env } = process;
  process.env = { ...withoutSettings(env), ...environment };
  try {
    const code = await printing.run(printed, () => exitCodeOf(args, build));
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

async function exitCodeOf(args: readonly string[], build: () => Command): Promise<number> {
  try {
    await build().parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return reportFailure(error, { json: args.includes('--json') });
  }
}
