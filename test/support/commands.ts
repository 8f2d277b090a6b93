/**
 * Runs commands of the program in the process of the test, with the same command tree, arguments and output. Starting
 * a process would take longer than most commands. Tests about the process itself call `runProgram`, and those about a
 * real terminal `openTerminal`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { reportFailure } from '../../src/cli/kernel/output.ts';
import { buildProgram } from '../../src/cli/program.ts';
import type { ChildEnvironment, Ended } from './child-server.ts';
import { withoutSettings } from './isolation.ts';

interface Run {
  readonly environment: ChildEnvironment;
  readonly build: () => Command;
  /** The width of the terminal; null if there is none. */
  readonly columns: number | null;
  /** Called with everything that is shown so far, after each write. */
  readonly onShown: (shown: string, type: (text: string) => void) => void;
}

interface Printing {
  readonly stdout: string[];
  readonly stderr: string[];
  /** Both, in their order. */
  shown: string;
  readonly onWrite: () => void;
}

const STREAMS = ['stdout', 'stderr'] as const;

/** Other output of the process, such as the results of other tests, still goes where it normally does. */
const printing = new AsyncLocalStorage<Printing>();
for (const name of STREAMS) {
  const stream = process[name];
  const write = stream.write.bind(stream);
  stream.write = (chunk: string | Uint8Array, ...rest: never[]) => {
    const printed = printing.getStore();
    if (printed === undefined) return write(chunk, ...rest);
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    printed[name].push(text);
    printed.shown += text;
    printed.onWrite();
    return true;
  };
}

/** Commands run one after another, because each one replaces the environment of the process. */
let last: Promise<unknown> = Promise.resolve();

function inTurn(args: readonly string[], given: Partial<Run>) {
  const ended = last.then(() =>
    run(args, {
      environment: {},
      build: buildProgram,
      columns: null,
      onShown: () => undefined,
      ...given,
    }),
  );
  last = ended.catch(() => undefined);
  return ended;
}

/** Runs a command of the program until it ends. */
export function runCommand(
  args: readonly string[],
  environment: ChildEnvironment = {},
  build: () => Command = buildProgram,
): Promise<Ended> {
  return inTurn(args, { environment, build });
}

export interface RunningCommand {
  /** Everything that it has printed. */
  shown(): string;
  /** Stops it as SIGTERM does. */
  stop(): Promise<Ended>;
  readonly ended: Promise<Ended>;
}

/** Starts a command that continues until it is stopped. */
export function startCommand(
  args: readonly string[],
  environment: ChildEnvironment = {},
): RunningCommand {
  const others = new Set(process.listeners('SIGTERM'));
  let printed = '';
  const onShown = (shown: string) => {
    printed = shown;
  };
  const ended = inTurn(args, { environment, onShown });
  return {
    shown: () => printed,
    stop() {
      for (const stop of process.listeners('SIGTERM')) {
        if (!others.has(stop)) stop.call(process, 'SIGTERM');
      }
      return ended;
    },
    ended,
  };
}

export interface AtTerminal {
  readonly columns?: number;
  readonly environment?: ChildEnvironment;
  /** What a person types as soon as each question is shown. */
  readonly answers?: readonly (readonly [
    question: RegExp,
    typed: string | (() => Promise<string>),
  ])[];
}

/** Runs a command as a person at a terminal would see it, including what was typed. */
export function runAtTerminal(
  args: readonly string[],
  { columns = 80, environment = {}, answers = [] }: AtTerminal = {},
): Promise<Ended & { readonly shown: string }> {
  const waiting = [...answers];
  let seen = 0;
  return inTurn(args, {
    environment: { TERM: 'xterm', ...environment },
    columns,
    onShown(shown, type) {
      const [next] = waiting;
      if (next === undefined || !next[0].test(shown.slice(seen))) return;
      waiting.shift();
      seen = shown.length;
      const [, typed] = next;
      if (typeof typed === 'string') type(typed);
      else void typed().then(type);
    },
  });
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;

async function run(args: readonly string[], { environment, build, columns, onShown }: Run) {
  const input = withTerminal(new PassThrough(), columns);
  if (columns === null) input.end();
  const type = (text: string) => void input.write(text);
  const printed: Printing = {
    ...{ stdout: [], stderr: [], shown: '' },
    onWrite: () => onShown(printed.shown, type),
  };
  const { env } = process;
  const kept = SIGNALS.map((signal) => [signal, new Set(process.listeners(signal))] as const);
  const streams = STREAMS.map((name) => [name, { ...looks(process[name]) }] as const);
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin') ?? {};
  process.env = { ...withoutSettings(env), ...environment };
  Object.defineProperty(process, 'stdin', { value: input, configurable: true });
  for (const name of STREAMS) withTerminal(process[name], columns);
  try {
    const code = await printing.run(printed, () => exitCodeOf(args, build));
    return {
      code,
      signal: null,
      stdout: printed.stdout.join(''),
      stderr: printed.stderr.join(''),
      shown: printed.shown,
    };
  } finally {
    process.env = env;
    Object.defineProperty(process, 'stdin', stdin);
    for (const [name, look] of streams) Object.assign(process[name], look);
    for (const [signal, listeners] of kept) {
      for (const each of process.listeners(signal)) {
        if (!listeners.has(each)) process.off(signal, each);
      }
    }
  }
}

interface Looks {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  rows?: number | undefined;
}

function looks({ isTTY, columns, rows }: Looks): Looks {
  return { isTTY, columns, rows };
}

function withTerminal<Stream extends object>(stream: Stream, columns: number | null): Stream {
  const look = columns === null ? looks({}) : { isTTY: true, columns, rows: 50 };
  return Object.assign(stream, look);
}

async function exitCodeOf(args: readonly string[], build: () => Command): Promise<number> {
  try {
    await build().parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    return reportFailure(error, { json: args.includes('--json') });
  }
}
