/** CSV for spreadsheets (RFC 4180). */

export function csvLine(values: readonly string[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/** Spreadsheets treat text that begins like this as a formula, and strangers choose these names. */
const FORMULA = /^[=+\-@\t\r]/;

function field(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
