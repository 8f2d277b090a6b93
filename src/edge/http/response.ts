/** Writes a finished reply as the bytes of a response. */
import type { HttpResponse } from 'uWebSockets.js';
import { utf8 } from '../chunks.ts';
import type { Reply } from '../reply.ts';
import type { Request } from '../request/route.ts';

const STATUS_TEXT: Readonly<Record<number, string>> = {
  201: '201 Created',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  408: '408 Request Timeout',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Payload Too Large',
  422: '422 Unprocessable Entity',
  426: '426 Upgrade Required',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
  507: '507 Insufficient Storage',
};

/** No answer may be framed, sniffed or load anything; a page has a policy of its own. */
const SECURITY_LINES = securityLines("default-src 'none'; frame-ancestors 'none'");

function securityLines(contentSecurityPolicy: string): string {
  return [
    'X-Content-Type-Options: nosniff',
    'X-Frame-Options: DENY',
    'Referrer-Policy: no-referrer',
    `Content-Security-Policy: ${contentSecurityPolicy}`,
  ].join('\r\n');
}

/** What a response shows of its request. */
export type Answered = Pick<Request, 'id' | 'sentMethod'>;

/** What happens to the connection after an answer. */
export type Closing =
  | 'stays'
  /** The client is asked to close it; where uWebSockets.js supports it, the server closes it itself. */
  | 'asked'
  /** The server closes it without reading anything more. */
  | 'forced';

export function writeReply(
  res: HttpResponse,
  request: Answered,
  reply: Reply,
  body: string | Uint8Array,
  closing: Closing,
): void {
  if (reply.status === 304) {
    // No length is sent, because the client may have another encoding of the document.
    writeWithoutBody(res, request, reply, null, closing);
  } else if (request.sentMethod === 'HEAD') {
    const length = reply.isPassedOn === true ? null : Buffer.byteLength(body);
    writeWithoutBody(res, request, reply, length, closing);
  } else {
    writeHead(res, request, reply);
    endAndClose(res, body, closing);
  }
}

/**
 * Ends a response without a body. The length that a GET would have is written as a plain header line, because
 * uWebSockets.js would otherwise wait for that many bytes. It closes the connection only after a length that it wrote
 * itself, so the GET's length is omitted if the connection must be closed.
 */
export function writeWithoutBody(
  res: HttpResponse,
  request: Answered,
  reply: Reply,
  length: number | null,
  closing: Closing,
): void {
  if (closing === 'forced') {
    writeHead(res, request, reply);
    endAndClose(res, '', closing);
  } else {
    writeHead(
      res,
      request,
      reply,
      `${closingLine(closing)}${length === null ? '' : `\r\nContent-Length: ${length}`}`,
    );
    res.endWithoutBody();
  }
}

/** uWebSockets.js writes the `Connection: close` header itself. */
function endAndClose(res: HttpResponse, body: string | Uint8Array, closing: Closing): void {
  res.end(utf8(body), closing !== 'stays');
}

/** The header line for answers after which uWebSockets.js cannot close the connection itself. */
export function closingLine(closing: Closing): string {
  return closing === 'stays' ? '' : '\r\nConnection: close';
}

/**
 * All lines after the first are written as part of the second header's value: each call into native code
 * costs as much as building its strings.
 */
export function writeHead(
  res: HttpResponse,
  { id }: Answered,
  reply: Reply,
  furtherLines = '',
): void {
  const { status, contentType, headerLines, contentSecurityPolicy, isPassedOn } = reply;
  const security =
    contentSecurityPolicy === null ? SECURITY_LINES : securityLines(contentSecurityPolicy);
  const lines =
    isPassedOn === true ? headerLines : `X-Request-ID: ${id}\r\n${headerLines}\r\n${security}`;
  // uWebSockets.js adds the status 200 itself.
  if (status !== 200) res.writeStatus(STATUS_TEXT[status] ?? `${status} Status`);
  res.writeHeader('Content-Type', `${contentType}\r\n${lines}${furtherLines}`);
}

/**
 * Wraps a handler so that it ends the connection if it throws: uWebSockets.js aborts the process if a request is left
 * unanswered, before the error could be logged.
 */
export function orCut<Asked extends readonly unknown[]>(
  handler: (res: HttpResponse, ...asked: Asked) => void,
): typeof handler {
  return (res, ...asked) => {
    try {
      handler(res, ...asked);
    } catch (cause) {
      res.close();
      throw cause;
    }
  };
}
