/** What a route answers with, and the one place that renders the error envelope (spec, Errors). */
import type { Answer } from '../authority/commands.ts';
import type { PublishedDocument } from '../authority/documents.ts';
import type { JsonObject } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import { REFUSALS, type RefusalName } from '../refusal.ts';

export interface Reply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  readonly headers: readonly (readonly [string, string])[];
  /** Set when the reply is a refusal; the edge counts failures by it. */
  readonly refusal: RefusalName | null;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const NO_STORE = [['Cache-Control', 'no-store']] as const;

export function jsonReply(status: number, body: string): Reply {
  return { status, contentType: JSON_TYPE, body, headers: NO_STORE, refusal: null };
}

export function textReply(contentType: string, body: string): Reply {
  return { status: 200, contentType, body, headers: NO_STORE, refusal: null };
}

/** The envelope is completed with the request id when the reply is written. */
export function refusalReply(
  refusal: RefusalName,
  details: JsonObject = {},
  headers: readonly (readonly [string, string])[] = [],
): Reply {
  const { status } = REFUSALS[refusal];
  return {
    status,
    contentType: JSON_TYPE,
    body: jsonText(details),
    headers: [...NO_STORE, ...headers],
    refusal,
  };
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
  return answer.ok ? jsonReply(200, answer.json) : refusalReply(answer.refusal, answer.details);
}

/** A public document from its cached bytes; 304 when the client holds this very version. */
export function documentReply(document: PublishedDocument, ifNoneMatch: string): Reply {
  const headers = [
    ['Cache-Control', 'no-cache'],
    ['ETag', document.etag],
  ] as const;
  const held = matchesEtag(ifNoneMatch, document.etag);
  return {
    status: held ? 304 : 200,
    contentType: JSON_TYPE,
    // A 304 leaves the body out, but its length is that of the document.
    body: document.bytes,
    headers,
    refusal: null,
  };
}

/** If-None-Match compares weakly: a `W/` prefix does not matter (RFC 9110, 13.1.2). */
function matchesEtag(header: string, etag: string): boolean {
  if (header === '') return false;
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((entry) => entry.trim().replace(/^W\//, '') === etag);
}
