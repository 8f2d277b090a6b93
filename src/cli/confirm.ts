/** Asks a person at a terminal. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { printNote } from './output.ts';

export function isTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Shows the context, then asks; any answer but yes means no. */
export async function isConfirmed(shown: string, question: string): Promise<boolean> {
  printNote(shown);
  return /^y(es)?$/i.test(await answerTo(`${question} [y/N] `));
}

export async function answerTo(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // An interrupt or the end of the input also means no.
    const answer = await Promise.race([
      terminal.question(question).catch(() => '\n'),
      once(terminal, 'close').then(() => '\n'),
    ]);
    if (answer === '\n') process.stderr.write(answer);
    return answer.trim();
  } finally {
    terminal.close();
  }
}
