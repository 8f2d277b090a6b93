/** CSV for spreadsheets (RFC 4180). */
import { isPublicKey } from '../../base/crypto/public-key.ts';

export function csvLine(values: readonly string[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/**
 * Spreadsheets treat text that begins like this as a formula, some of them in full width, too, and strangers choose
 * these names. Keys are read by programs, and stay as they are.
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function field(text: string): string {
  const harmless = FORMULA.test(text) && !isPublicKey(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
