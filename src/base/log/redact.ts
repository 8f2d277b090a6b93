/**
 * Removes secrets from a text, wherever they occur [service-logs], [core-7]: bearer tokens, values after
 * sensitive names, private-key blocks and paths of key files. Every pattern is linear, because strangers
 * write the text.
 */
const REDACTED = '[REDACTED]';
const ENCODED_REDACTED = encodeURI(REDACTED);

const SUSPECT = /bearer|sig|token|password|secret|private|\.key/i;

const PRIVATE_KEY_BLOCK =
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=\n?$))/g;
const BEARER = /(\bbearer(?:\s|%20|\+)+)[^\s"'\\,;]+/gi;
/** A sensitive name, what separates it from its value, and the quote that opens the value. */
const NAMED =
  /(?:signature|(?<![a-z])sig|token(?:_id)?|password|secret|private[_-]?key)(?:\\*["']|%22|%27)?(?:\s|%20|\+)*(?::|=|%3a|%3d)(?:\s|%20|\+)*(\\*["']|%22|%27)?/gi;
const BARE = /[^\s"'\\,;&}\])]+/y;
const MAYBE_KEY_FILE = /\.key/i;
const KEY_FILE = /(?<![^\s"'=:,;])[^\s"'=:,;]*\.key\b/gi;

export function redact(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const open = text.replace(PRIVATE_KEY_BLOCK, REDACTED).replace(BEARER, `$1${REDACTED}`);
  const unnamed = redactNamed(open);
  // Searching for the start of a path is expensive, and few texts contain one.
  return MAYBE_KEY_FILE.test(unnamed) ? unnamed.replace(KEY_FILE, REDACTED) : unnamed;
}

/** Redacts a request path as sent; percent-encoded parts are also examined in decoded form. */
export function redactPath(path: string): string {
  const plain = path.includes('%') ? decoded(path) : path;
  const redacted = redact(plain);
  if (redacted === plain) return redact(path);
  return plain === path ? redacted : encodeURI(redacted).replaceAll(ENCODED_REDACTED, REDACTED);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function redactNamed(text: string): string {
  let kept = '';
  let at = 0;
  NAMED.lastIndex = 0;
  for (let match = NAMED.exec(text); match !== null; match = NAMED.exec(text)) {
    const start = NAMED.lastIndex;
    const end = endOfValue(text, start, match[1]);
    if (end > start) {
      kept += text.slice(at, start) + REDACTED;
      at = end;
    }
    NAMED.lastIndex = Math.max(end, start);
  }
  return kept + text.slice(at);
}

function endOfValue(text: string, start: number, quote: string | undefined): number {
  if (quote === undefined) {
    BARE.lastIndex = start;
    return BARE.exec(text) === null ? start : BARE.lastIndex;
  }
  const lineEnd = text.endsWith('\n') ? text.length - 1 : text.length;
  if (quote.startsWith('%')) {
    const close = text.indexOf(quote, start);
    return close === -1 ? lineEnd : close;
  }
  const escapes = quote.length - 1;
  const mark = quote.at(-1) ?? '';
  for (let at = text.indexOf(mark, start); at !== -1; at = text.indexOf(mark, at + 1)) {
    let first = at;
    while (first > start && text[first - 1] === '\\') first -= 1;
    // A quote inside the value has one more level of escaping than the one that closes it.
    if ((at - first) % (2 * (escapes + 1)) === escapes) return at - escapes;
  }
  return lineEnd;
}
