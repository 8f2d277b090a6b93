/** How a finished reply becomes the bytes of a response. */
import type { HttpResponse } from 'uWebSockets.js';
import type { FinishedReply } from './pipeline.ts';

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: '200 OK',
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

/**
 * No answer may be framed, sniffed or load anything; a page has a policy that allows its own style and
 * script.
 */
const SECURITY_LINES = securityLines("default-src 'none'; frame-ancestors 'none'");

function securityLines(contentSecurityPolicy: string): string {
  return [
    'X-Content-Type-Options: nosniff',
    'X-Frame-Options: DENY',
    'Referrer-Policy: no-referrer',
    `Content-Security-Policy: ${contentSecurityPolicy}`,
  ].join('\r\n');
}

/** What becomes of the connection behind an answer. */
export type Closing =
  | 'stays'
  /** The client is asked to close it; where uWebSockets.js can, the server closes it itself. */
  | 'asked'
  /** Nothing more is read from it, whatever the client does. */
  | 'forced';

export function writeReply(
  res: HttpResponse,
  method: string,
  reply: FinishedReply,
  body: string | Uint8Array,
  closing: Closing,
): void {
  if (reply.status === 304) {
    // No length: the client may have another encoding of the document.
    writeWithoutBody(res, reply, null, closing);
  } else if (method === 'HEAD') {
    writeWithoutBody(res, reply, Buffer.byteLength(body), closing);
  } else {
    writeHead(res, reply);
    endAndClose(res, body, closing);
  }
}

/**
 * Ends a response that has no body. The length of the body that a GET would have is a line of the head:
 * uWebSockets.js would wait for that many bytes if it got the number, and it closes only behind a length of
 * its own. Where it has to close, the length of a GET is therefore omitted.
 */
export function writeWithoutBody(
  res: HttpResponse,
  reply: FinishedReply,
  length: number | null,
  closing: Closing,
): void {
  if (closing === 'forced') {
    writeHead(res, reply);
    endAndClose(res, '', closing);
  } else {
    writeHead(
      res,
      reply,
      `${closingLine(closing)}${length === null ? '' : `\r\nContent-Length: ${length}`}`,
    );
    res.endWithoutBody();
  }
}

/** uWebSockets.js itself writes that the connection closes. */
function endAndClose(res: HttpResponse, body: string | Uint8Array, closing: Closing): void {
  res.end(body, closing !== 'stays');
}

/** For an answer after which uWebSockets.js cannot close by itself: a further line of its head. */
export function closingLine(closing: Closing): string {
  return closing === 'stays' ? '' : '\r\nConnection: close';
}

/**
 * All lines after the first are written as part of the second header's value: each call into native code
 * costs as much as building its strings.
 */
export function writeHead(res: HttpResponse, reply: FinishedReply, furtherLines = ''): void {
  const { status, contentType, requestId, headerLines, contentSecurityPolicy } = reply;
  const security =
    contentSecurityPolicy === null ? SECURITY_LINES : securityLines(contentSecurityPolicy);
  res.writeStatus(STATUS_TEXT[status] ?? `${status} Status`);
  res.writeHeader(
    'Content-Type',
    `${contentType}\r\nX-Request-ID: ${requestId}\r\n${headerLines}\r\n${security}${furtherLines}`,
  );
}

/**
 * The handler, which ends the connection when it throws: uWebSockets.js aborts the process when a request is left alone,
 * before anybody could say what was thrown.
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
