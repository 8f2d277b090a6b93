/** Runs a command on a pseudo-terminal, as a person would see it; `script` of util-linux provides it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after } from 'node:test';
import { withoutSettings } from './isolation.ts';
import { PROGRAM } from './project.ts';

export interface Terminal {
  /** Everything shown so far, including what was typed. */
  shown(): string;
  type(text: string): void;
  /** Resolves with the first match in what was shown since the previous match. */
  until(pattern: RegExp): Promise<string>;
  /** The exit code of the command. */
  readonly ended: Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TerminalOptions {
  readonly columns?: number;
  readonly environment?: NodeJS.ProcessEnv;
}

/** A busy machine starts programs slowly. */
const PATIENCE_MS = 120_000;

const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** Quotes the words of a command line. */
export function shellLine(words: readonly string[]): string {
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
}

/** The line that runs a command of the program. */
export function programLine(args: readonly string[]): string {
  return shellLine([process.execPath, ...PROGRAM, ...args]);
}

export function openTerminal(
  command: string,
  { columns = 80, environment = {} }: TerminalOptions = {},
): Terminal {
  const line = `stty cols ${columns} rows 50; exec ${command}`;
  const args = ['--quiet', '--flush', '--return', '--command', line, '/dev/null'];
  const child = spawn('script', args, {
    env: { ...withoutSettings(process.env), TERM: 'xterm', SHELL: '/bin/sh', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  let shown = '';
  let seen = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    shown: () => shown,
    type: (text) => void child.stdin.write(text),
    async until(pattern) {
      const deadline = AbortSignal.timeout(PATIENCE_MS);
      for (;;) {
        const found = pattern.exec(shown.slice(seen));
        if (found !== null) {
          seen += found.index + found[0].length;
          return found[0];
        }
        if (deadline.aborted || child.exitCode !== null) {
          throw new Error(`${pattern} is not shown: ${JSON.stringify(shown.slice(seen))}`);
        }
        await Promise.race([
          once(child.stdout, 'data', { signal: deadline }).catch(() => undefined),
          ended,
        ]);
      }
    },
    ended,
    async [Symbol.asyncDispose]() {
      if (!running.has(child)) return;
      child.kill('SIGKILL');
      await ended;
    },
  };
}
