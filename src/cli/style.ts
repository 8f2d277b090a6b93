/** Colors, only on terminals. */
import { styleText } from 'node:util';

export type Style = 'bold' | 'green' | 'red' | 'yellow';

interface Output {
  readonly isTTY?: boolean;
}

/** Uses the rules of Node.js: `FORCE_COLOR` overrides `NO_COLOR`. */
export function isColored(
  { isTTY = false }: Output,
  { FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv,
): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return isTTY && !NO_COLOR && TERM !== 'dumb';
}

/** Colors text that is already printable. */
export function painted(style: Style, text: string, output: Output): string {
  return isColored(output, process.env) ? styleText(style, text, { validateStream: false }) : text;
}
