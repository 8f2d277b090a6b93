/** `docs/errors.md`: every refusal, what it means and what to do about it. */
import { REFUSALS, type RefusalName } from '../../src/protocol/refusals.ts';
import { code, page, table } from './markdown.ts';

const INTRODUCTION = `Every refusal has the same form:

\`\`\`json
{"error": {"code": "certificate_expired", "message": "The certificate has expired", "details": {}, "request_id": "…"}}
\`\`\`

\`code\` is stable: programs decide by status and code. \`message\` is for people and may change. \`details\` is an object,
often with \`cause\`, the finer reason. \`request_id\` is also in the header \`X-Request-ID\` and in the log of the authority.

Statuses from 500 on, 408 and 429 are worth another try; all others are answered the same way until the request or the
state changes. Unless the table says otherwise, sign a request anew before each try: a refused one may have spent its nonce.`;

export function errorsPage(): string {
  const names = Object.keys(REFUSALS) as RefusalName[];
  const byStatus = names.toSorted((a, b) => REFUSALS[a].status - REFUSALS[b].status);
  return page('Errors', INTRODUCTION, tableOf(byStatus));
}

function tableOf(names: readonly RefusalName[]): string {
  const anchored = new Set<string>();
  const rows = names.map((name) => {
    const { status, code: wireCode, message, cure } = REFUSALS[name];
    const id = `${status}-${wireCode}`;
    const anchor = anchored.has(id) ? '' : `<a id="${id}"></a>`;
    anchored.add(id);
    return [`${anchor}${status} ${code(wireCode)}`, message, cure];
  });
  return table(['Status and code', 'It means', 'What to do'], rows);
}
