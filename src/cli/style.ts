/** Colors, on terminals alone. */
import { styleText } from 'node:util';

export type Style = 'bold' | 'green' | 'red' | 'yellow';

interface Output {
  readonly isTTY?: boolean;
}

/** As Node.js itself decides: `FORCE_COLOR` wins over `NO_COLOR`. */
export function isColored(
  { isTTY = false }: Output,
  { FORCE_COLOR, NO_COLOR, TERM }: NodeJS.ProcessEnv,
): boolean {
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return isTTY && !NO_COLOR && TERM !== 'dumb';
}

/** Text that has been made printable already. */
export function painted(style: Style, text: string, output: Output): string {
  return isColored(output, process.env) ? styleText(style, text, { validateStream: false }) : text;
}
