/** The reply of a route, and the only place that renders the error envelope [service-errors]. */

import { promisify } from 'node:util';
import { gzip, gzipSync } from 'node:zlib';
import fresh from 'fresh';
import Negotiator from 'negotiator';
import type { JsonObject } from '../base/json/value.ts';
import { jsonText } from '../base/json/write.ts';
import { formatInstant } from '../base/timestamp.ts';
import type { HtmlPage } from '../pages/ui/frame.ts';
import { EVENT_STREAM } from '../protocol/api/events.ts';
import type { Answer } from '../protocol/contract/calls.ts';
import type { PublishedDocument } from '../protocol/contract/documents.ts';
import { REFUSALS, type RefusalName } from '../protocol/refusals.ts';
import type { AddressedDocument } from './addressed-document.ts';
import type { ChunkedResponse } from './chunks.ts';

export interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array | PiecewiseBody | StreamBody;
  /** Additional header lines, joined by CRLF. */
  readonly headerLines: string;
  /** Set if the reply is a refusal; the edge counts failures by it. */
  readonly refusal: RefusalName | null;
  /** The Content-Security-Policy of a page; null for any other content. */
  readonly contentSecurityPolicy: string | null;
  /** Set if another instance has answered: `headerLines` has all further lines. */
  readonly isPassedOn?: true;
}

/** A body that is produced while it is being sent, at the pace of the client. */
export interface PiecewiseBody {
  /** The number of bytes, if that is known. */
  readonly length?: number | null;
  /** The next piece, which may be empty; null once the body is complete. Rejects if it cannot be completed. */
  next(): Promise<string | Uint8Array | null>;
  /** No further piece will be requested. */
  abandon(): void;
  /** Called when the client must accept what it got before another piece is requested. */
  waits?(): void;
  /** Called when the client has gone, even while a piece is awaited. */
  gone?(): void;
}

/** A body of unlimited length, which others write to after the headers are sent. */
export interface StreamBody {
  /** Takes over the response: only the stream writes to it from now on. */
  begin(writer: StreamWriter): void;
  /** Called instead of `begin` if the stream will not start. */
  abandon(): void;
}

/** What a stream writes to: a response with sent headers. */
export interface StreamWriter {
  readonly res: ChunkedResponse & {
    /** Called once everything that was buffered is accepted. */
    onWritable(accepted: () => boolean): unknown;
    end(): unknown;
    close(): unknown;
  };
  readonly aborted: boolean;
  /** Called when the client has disconnected. */
  onGone: (() => void) | null;
}

export function isStream(body: Reply['body']): body is StreamBody {
  return typeof body === 'object' && 'begin' in body;
}

export function isPiecewise(body: Reply['body']): body is PiecewiseBody {
  return typeof body === 'object' && 'next' in body;
}

/** The encodings that a client accepts, and the validators of its cached copies. */
export interface Conditions {
  readonly ifNoneMatch: string;
  readonly acceptsGzip: boolean;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';
const NO_STORE = 'Cache-Control: no-store';

export function jsonReply(status: number, body: string): Reply {
  return freshReply(status, JSON_TYPE, body);
}

export function piecewiseReply(pieces: AsyncIterator<string>, leave?: () => void): Reply {
  return freshReply(200, JSON_TYPE, piecewise(pieces, leave));
}

/** `leave` is called when a client has gone before the last piece. */
function piecewise(
  pieces: Iterator<string> | AsyncIterator<string>,
  leave: () => void = () => undefined,
): PiecewiseBody {
  return {
    async next() {
      const { done, value } = await pieces.next();
      return done === true ? null : value;
    },
    abandon: leave,
  };
}

/** Server-sent events, which proxies must not buffer. */
export function streamReply(body: StreamBody): Reply {
  return {
    ...freshReply(200, EVENT_STREAM, body),
    headerLines: `${NO_STORE}\r\nX-Accel-Buffering: no`,
  };
}

export function textReply(contentType: string, body: string): Reply {
  return freshReply(200, contentType, body);
}

/** The answer of another instance. */
export function passedReply(
  status: number,
  contentType: string,
  lines: readonly string[],
  body: Reply['body'],
): Reply {
  return {
    ...freshReply(status, contentType || 'application/octet-stream', body),
    headerLines: lines.join('\r\n'),
    isPassedOn: true,
  };
}

function freshReply(status: number, contentType: string, body: Reply['body']): Reply {
  return {
    status,
    contentType,
    body,
    headerLines: NO_STORE,
    refusal: null,
    contentSecurityPolicy: null,
  };
}

/** The request id is added to the envelope when the reply is written. */
export function refusalReply(
  refusal: RefusalName,
  details: JsonObject = {},
  header?: 'Allow' | 'Retry-After' | 'Upgrade',
  value = '',
): Reply {
  const { status } = REFUSALS[refusal];
  return {
    status,
    contentType: JSON_TYPE,
    body: jsonText(details),
    headerLines:
      header === undefined
        ? linesOfRefusal(refusal, details)
        : `${NO_STORE}\r\n${header}: ${value}`,
    refusal,
    contentSecurityPolicy: null,
  };
}

/** Another instance will take over within seconds, or one of the long answers that wait will be done. */
const RETRY_SOON = `${NO_STORE}\r\nRetry-After: 1`;

function linesOfRefusal(refusal: RefusalName, { retry_after: seconds }: JsonObject): string {
  if (refusal === 'restored_recently') return `${NO_STORE}\r\nRetry-After: ${seconds}`;
  const isSoonOver = refusal === 'authority_unavailable' || refusal === 'rate_limit_exceeded';
  return isSoonOver ? RETRY_SOON : NO_STORE;
}

/** `{"error":{code,message,details,request_id}}`: all four members, always. */
export function errorEnvelope(
  refusal: RefusalName,
  detailsJson: string,
  requestId: string,
): string {
  const { code, message } = REFUSALS[refusal];
  const head = `"code":${JSON.stringify(code)},"message":${JSON.stringify(message)}`;
  return `{"error":{${head},"details":${detailsJson},"request_id":${JSON.stringify(requestId)}}}`;
}

export function answerReply(answer: Answer): Reply {
  const reply = answer.ok
    ? jsonReply(200, answer.json)
    : refusalReply(answer.refusal, answer.details);
  if (answer.isRepeated !== true) return reply;
  return { ...reply, headerLines: `${reply.headerLines}\r\nX-Mesh-Replayed: true` };
}

/** A public document from its cached bytes; 304 when the client has this version. */
export function documentReply(
  document: PublishedDocument,
  conditions: Conditions,
): Reply | Promise<Reply> {
  return versionedReply(JSON_TYPE, null, document, conditions);
}

/**
 * A public document that may be outdated since an instant, in milliseconds since the epoch. It is never answered with
 * 304 and never cached.
 */
export function staleDocumentReply(
  document: PublishedDocument,
  since: number,
  { acceptsGzip }: Conditions,
): Reply | Promise<Reply> {
  const isCompressible = document.bytes.byteLength > LEAST_COMPRESSED_BYTES;
  const vary = isCompressible ? '\r\nVary: Accept-Encoding' : '';
  const headerLines = `${NO_STORE}\r\nX-Mesh-Stale-Since: ${formatInstant(since)}${vary}`;
  const plain = { ...freshReply(200, JSON_TYPE, document.bytes), headerLines };
  return acceptsGzip && isCompressible ? compressed(plain, document, headerLines) : plain;
}

/** A document that contains the base URL, which is added while sending, so that nothing a client made up is cached. */
export function addressedReply(
  document: AddressedDocument,
  baseUrl: string,
  { ifNoneMatch, acceptsGzip }: Conditions,
): Reply {
  const etag = document.etag(baseUrl);
  const whole = {
    ...freshReply(200, JSON_TYPE, ''),
    headerLines: linesOf(etag, true),
  };
  const held = ifNoneMatch === '' ? undefined : heldEtag(ifNoneMatch, etag, true);
  if (held !== undefined) return { ...whole, status: 304, headerLines: linesOf(held, true) };
  return acceptsGzip
    ? inGzip(whole, document.compressed(baseUrl), linesOf(gzipEtag(etag), true))
    : { ...whole, body: piecewise(document.pieces(baseUrl).values()) };
}

/** A page from its cached bytes; 304 when the client has this version. */
export function htmlReply(
  { document, contentSecurityPolicy }: HtmlPage,
  conditions: Conditions,
): Reply | Promise<Reply> {
  return versionedReply(HTML_TYPE, contentSecurityPolicy, document, conditions);
}

/** A file whose path changes with its content. */
export function assetReply(
  contentType: string,
  document: PublishedDocument,
  conditions: Conditions,
): Reply | Promise<Reply> {
  return versionedReply(contentType, null, document, conditions, FOREVER);
}

/** A page instead of an error envelope; `retryAfter` is in seconds. */
export function errorPageReply(
  status: number,
  { document, contentSecurityPolicy }: HtmlPage,
  retryAfter: number | null = null,
): Reply {
  const wait = retryAfter === null ? '' : `\r\nRetry-After: ${retryAfter}`;
  return {
    ...freshReply(status, HTML_TYPE, document.bytes),
    headerLines: `${NO_STORE}\r\nVary: Accept${wait}`,
    contentSecurityPolicy,
  };
}

/** The page for a path that does not exist, of which there are few, so that they stay compressed. */
export function notFoundReply(
  page: HtmlPage,
  { acceptsGzip }: Pick<Conditions, 'acceptsGzip'>,
): Reply | Promise<Reply> {
  const plain = errorPageReply(REFUSALS.not_found.status, page);
  const headerLines = `${plain.headerLines}, Accept-Encoding`;
  return acceptsGzip ? compressed(plain, page.document, headerLines) : { ...plain, headerLines };
}

/** Shorter documents fit into one packet anyway. */
const LEAST_COMPRESSED_BYTES = 1024;

/**
 * Compressing this many bytes takes about a millisecond; larger documents are compressed on another thread.
 */
const MOST_BYTES_AT_ONCE = 32 * 1024;

/** Each encoding has its own validator; a client with either of them has this version. */
function versionedReply(
  contentType: string,
  contentSecurityPolicy: string | null,
  document: PublishedDocument,
  { ifNoneMatch, acceptsGzip }: Conditions,
  caching = REVALIDATED,
): Reply | Promise<Reply> {
  const { bytes, etag } = document;
  const isCompressible = bytes.byteLength > LEAST_COMPRESSED_BYTES;
  const plain = {
    status: 200,
    contentType,
    body: bytes,
    headerLines: linesOf(etag, isCompressible, caching),
    refusal: null,
    contentSecurityPolicy,
  };
  const held = ifNoneMatch === '' ? undefined : heldEtag(ifNoneMatch, etag, isCompressible);
  if (held !== undefined)
    return { ...plain, status: 304, headerLines: linesOf(held, isCompressible, caching) };
  if (!acceptsGzip || !isCompressible) return plain;
  return compressed(plain, document, linesOf(gzipEtag(etag), true, caching));
}

/** The reply with its document compressed, and with these header lines. */
function compressed(
  plain: Reply,
  document: PublishedDocument,
  headerLines: string,
): Reply | Promise<Reply> {
  const form = compressedForm(document);
  return form instanceof Promise
    ? form.then((body) => inGzip(plain, body, headerLines))
    : inGzip(plain, form, headerLines);
}

function inGzip(plain: Reply, body: Uint8Array, headerLines: string): Reply {
  return { ...plain, body, headerLines: `${headerLines}\r\nContent-Encoding: gzip` };
}

const REVALIDATED = 'no-cache';
const FOREVER = 'public, max-age=31536000, immutable';

function linesOf(etag: string, isCompressible: boolean, caching = REVALIDATED): string {
  const always = `Cache-Control: ${caching}\r\nETag: ${etag}`;
  return isCompressible ? `${always}\r\nVary: Accept-Encoding` : always;
}

const compressedForms = new WeakMap<PublishedDocument, Uint8Array | Promise<Uint8Array>>();
const gzipElsewhere = promisify(gzip);

/** Compressed for the first client that accepts it, and cached as long as the document. */
function compressedForm(document: PublishedDocument): Uint8Array | Promise<Uint8Array> {
  const known = compressedForms.get(document);
  if (known !== undefined) return known;
  const { bytes } = document;
  const form =
    bytes.byteLength <= MOST_BYTES_AT_ONCE
      ? gzipSync(bytes)
      : // Of a copy: the bytes may be used again once a newer version is published.
        gzipElsewhere(new Uint8Array(bytes)).then((late) => {
          compressedForms.set(document, late);
          return late;
        });
  compressedForms.set(document, form);
  return form;
}

function gzipEtag(etag: string): string {
  return `${etag.slice(0, -1)}-gzip"`;
}

/** The matching validator that the client sent; undefined if it has another version or none. */
function heldEtag(ifNoneMatch: string, etag: string, isCompressible: boolean): string | undefined {
  if (matchesEtag(ifNoneMatch, etag)) return etag;
  if (!isCompressible) return undefined;
  const compressed = gzipEtag(etag);
  return matchesEtag(ifNoneMatch, compressed) ? compressed : undefined;
}

/**
 * Nearly all clients send a single validator. Comparing it takes 20 ns, `fresh` 300 ns, out of 4 µs for a cached
 * document.
 */
function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag) return true;
  if (ifNoneMatch.length > LONGEST_PARSED) return false;
  return fresh({ 'if-none-match': ifNoneMatch }, { etag });
}

/** The form that nearly all clients send. Searching for it takes 50 ns, a `Negotiator` 400 to 1,100 ns. */
const NAMES_GZIP = /(?:^|,)\s*gzip\s*(?:,|$)/;

/** Browsers send about 150 characters in each of the headers that are parsed. A longer one counts as absent. */
const LONGEST_PARSED = 1000;

/** Whether an Accept-Encoding accepts gzip. */
export function acceptsGzip(acceptEncoding: string): boolean {
  if (acceptEncoding === '' || acceptEncoding.length > LONGEST_PARSED) return false;
  if (NAMES_GZIP.test(acceptEncoding)) return true;
  const negotiator = new Negotiator({ headers: { 'accept-encoding': acceptEncoding } });
  return negotiator.encodings(['gzip']).length > 0;
}

/** Whether an Accept header prefers a page; JSON is the default. */
export function prefersHtml(accept: string): boolean {
  if (accept.length > LONGEST_PARSED || !/text\/(?:html|\*)/i.test(accept)) return false;
  const negotiator = new Negotiator({ headers: { accept } });
  return negotiator.mediaType(['application/json', 'text/html']) === 'text/html';
}
