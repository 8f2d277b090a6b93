/** What an answer says, for counting. */
import { parseJson } from '../base/json/parse.ts';
import { isJsonObject, type JsonValue } from '../base/json/value.ts';

/** The code of the error envelope after the status, such as `403 certificate_revoked`; the status if there is none. */
export function errorCode(status: number, body: Buffer): string {
  const answer = jsonIn(body);
  const error = isJsonObject(answer) ? answer.error : null;
  const code = isJsonObject(error) ? error.code : null;
  return typeof code === 'string' ? `${status} ${code}` : String(status);
}

/** A member of the answer that is text; null if there is none. */
export function textIn(body: Buffer, member: string): string | null {
  const answer = jsonIn(body);
  const value = isJsonObject(answer) ? answer[member] : null;
  return typeof value === 'string' ? value : null;
}

function jsonIn(body: Buffer): JsonValue {
  try {
    return parseJson(body.toString());
  } catch {
    return null;
  }
}
