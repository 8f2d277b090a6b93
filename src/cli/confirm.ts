/** Questions that a person answers at a terminal. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { printNote } from './output.ts';

export function isTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Shows what it is about, then asks; anything but yes is no. */
export async function isConfirmed(shown: string, question: string): Promise<boolean> {
  printNote(shown);
  return /^y(es)?$/i.test(await answerTo(`${question} [y/N] `));
}

export async function answerTo(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // An interrupted question, or the end of the input, is no agreement either.
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
