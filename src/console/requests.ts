/** What a browser sends to the console, and what it gets. */
import type { IncomingMessage } from 'node:http';

/** Without a body that is a stream, `body` is the whole answer. */
export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string | AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Larger than the largest record that an operator pastes. */
const MOST_BODY_BYTES = 8 * 1024 * 1024;
const FORM = 'application/x-www-form-urlencoded';

export function page(status: number, text: string, headers = {}): Reply {
  return { status, type: 'text/html; charset=utf-8', body: text, headers };
}

export function plain(status: number, text: string): Reply {
  return { status, type: 'text/plain; charset=utf-8', body: `${text}\n` };
}

/** The browser reads the next page with GET, so that loading it again repeats nothing. */
export function seeOther(location: string, headers = {}): Reply {
  return { ...plain(303, 'See the other page'), headers: { location, ...headers } };
}

/** The fields of a form; null if there is none, or it is too large. */
export async function formIn(request: IncomingMessage): Promise<URLSearchParams | null> {
  if (request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() !== FORM) return null;
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BODY_BYTES) return null;
    pieces.push(piece);
  }
  return new URLSearchParams(Buffer.concat(pieces).toString('utf8'));
}
