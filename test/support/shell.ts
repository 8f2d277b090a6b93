/** A shell that runs one command after another, as a reader of the documents would type them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import './isolation.ts';

export interface Shell {
  /** Runs a command until it ends; `output` is what it prints to both streams, without the last line break. */
  run(command: string): Promise<{ output: string; code: number }>;
  /** Starts a command that keeps running; resolves with its output up to the line that matches. */
  serve(command: string, lastLine: RegExp): Promise<string>;
  /** Stops the command that was started last, as a service manager would. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ShellOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Every process here leads a group, so that the processes it has started end with it. */
const running = new Set<ChildProcess>();
const killRunning = () => {
  for (const child of running) killGroup(child, 'SIGKILL');
};
after(killRunning);
process.on('exit', killRunning);

const END = '<end of the command>';

export function openShell(options: ShellOptions): Shell {
  const shell = start('bash', ['--norc'], options);
  const lines = createInterface({ input: outputOf(shell) })[Symbol.asyncIterator]();
  const servers: ChildProcess[] = [];

  async function run(command: string) {
    // Preserves the status of the command for the next one.
    const ended = `__code=$?; printf '\\n%s %s\\n' '${END}' "$__code"; (exit "$__code")`;
    shell.stdin?.write(`{ ${command}\n} </dev/null 2>&1\n${ended}\n`);
    const printed: string[] = [];
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`The shell ended in: ${command}`);
      if (value.startsWith(END)) {
        return { output: printed.join('\n').trimEnd(), code: Number(value.slice(END.length)) };
      }
      printed.push(value);
    }
  }

  async function serve(command: string, lastLine: RegExp): Promise<string> {
    const server = start('bash', ['--norc', '-c', `exec ${command} 2>&1`], options);
    servers.push(server);
    const printed: string[] = [];
    for await (const line of createInterface({ input: outputOf(server) })) {
      printed.push(line);
      if (lastLine.test(line)) break;
    }
    server.stdout?.resume();
    return printed.join('\n').trim();
  }

  async function stop(): Promise<void> {
    const server = servers.pop();
    if (server === undefined) throw new Error('No command goes on');
    await end(server, 'SIGTERM');
  }

  return {
    run,
    serve,
    stop,
    async [Symbol.asyncDispose]() {
      for (const child of [...servers, shell]) await end(child, 'SIGKILL');
    },
  };
}

function start(program: string, args: readonly string[], { cwd, env }: ShellOptions): ChildProcess {
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

function outputOf({ stdout }: ChildProcess) {
  if (stdout === null) throw new Error('The process has no standard output');
  return stdout.setEncoding('utf8');
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!running.has(child)) return;
  const ended = once(child, 'exit');
  killGroup(child, signal);
  await ended;
}

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has already ended.
  }
}
