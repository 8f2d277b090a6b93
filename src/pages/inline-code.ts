import { createHash } from 'node:crypto';

/** An inline style sheet or script, and the source expression that allows it. */
export interface InlineCode {
  readonly text: string;
  /** `'sha256-…'`, for the Content-Security-Policy of the page. */
  readonly source: string;
}

/** Computes the digest once per style sheet or script, when its module is loaded. */
export function inlineCode(text: string): InlineCode {
  if (/<\/(?:script|style)|<!--/i.test(text))
    throw new Error('Inline code must not close its element');
  return { text, source: `'sha256-${createHash('sha256').update(text).digest('base64')}'` };
}

/** A style sheet without the spaces, line breaks and zeros that only readers of the source need. */
export function inlineStyle(css: string): InlineCode {
  const compact = css
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,>]) ?/g, '$1')
    .replaceAll(': ', ':')
    .replaceAll(';}', '}')
    .replaceAll(/(?<![\d.])0\./g, '.');
  return inlineCode(compact.trim());
}
