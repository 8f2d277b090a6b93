/**
 * Removes secrets from a finished log line, wherever they stand in it (spec, Events; wire rules 7):
 * bearer tokens, values behind sensitive names, private-key blocks and paths of key files.
 */
const REDACTED = '[REDACTED]';

const SUSPECT = /bearer|signature|token|password|secret|private|\.key/i;

const PRIVATE_KEY_BLOCK =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g;
const BEARER = /(\bbearer(?:\s|%20|\+)+)[^\s"'\\,;]+/gi;
const SENSITIVE_NAME = String.raw`[\w.-]*(?:signature|token|token_id|password|secret|private[_-]?key)`;
const QUOTED = new RegExp(
  String.raw`(${SENSITIVE_NAME}(?:\\*["'])?\s*(?::|=|%3d)\s*)(\\*["'])(.*?)\2`,
  'gi',
);
const BARE = new RegExp(
  String.raw`(${SENSITIVE_NAME}(?:\\*["'])?\s*(?::|=|%3d)\s*)(?!\\*["'])([^\s"'\\,;&}\])]+)`,
  'gi',
);
const KEY_FILE = /[^\s"'=:,;]*\.key\b/gi;

export function redact(line: string): string {
  if (!SUSPECT.test(line)) return line;
  return line
    .replace(PRIVATE_KEY_BLOCK, REDACTED)
    .replace(BEARER, `$1${REDACTED}`)
    .replace(QUOTED, `$1$2${REDACTED}$2`)
    .replace(BARE, `$1${REDACTED}`)
    .replace(KEY_FILE, REDACTED);
}
