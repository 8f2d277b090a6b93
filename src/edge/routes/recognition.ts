/** Verifies the revocation feeds of other sovereigns [core-4-14]. */
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { importFeed } from '../../protocol/api/recognition.ts';
import type { Call, Prepared } from '../../protocol/contract/calls.ts';
import {
  type SovereignRevocationFeed as Feed,
  keyOfFeed,
} from '../../protocol/records/revocation-feed.ts';
import type { EdgeParts } from '../operations/operations.ts';

/** The search for a signature may take many checks. */
export async function verifiedFeed(
  { feed, ...sent }: InputOf<typeof importFeed>,
  call: Call,
): Promise<Prepared['importFeed']> {
  const { feed_id: feedId, issuer_sovereign_id: issuer, sequence } = feed;
  const keys = sent.issuer_public_keys ?? (await treatyKeysFor(issuer, call));
  return {
    ...sent,
    feedId,
    issuer,
    sequence,
    revokedCount: feed.revoked_attestation_ids.length,
    rows: importRows(feed),
    isSigned: feed.signatures.length > 0,
    verifiedUnder: keyOfFeed(feed, keys, verifySignature),
  };
}

export const recognitionParts = {
  importFeed: {
    prepare: async (sent, _request, { call }) => ({
      ok: true,
      value: await verifiedFeed(sent, call),
    }),
  },
} satisfies EdgeParts;

async function treatyKeysFor(issuer: string, call: Call): Promise<readonly string[]> {
  const answer = await call('treatyKeys', { issuer });
  return answer.ok ? (JSON.parse(answer.json) as string[]) : [];
}

/** Rows per slice for the authority. */
const ROWS_PER_SLICE = 2000;

/** The revoked ids with their reasons, in slices. */
export function importRows({
  revoked_attestation_ids: ids,
  revocation_reasons: reasons,
}: Pick<Feed, 'revoked_attestation_ids' | 'revocation_reasons'>): string[] {
  const slices: string[] = [];
  for (let start = 0; start < ids.length; start += ROWS_PER_SLICE) {
    const slice = ids.slice(start, start + ROWS_PER_SLICE);
    // An id may be any text, including the names of inherited members.
    const rows = slice.map((id) => [id, Object.hasOwn(reasons, id) ? reasons[id] : null]);
    slices.push(JSON.stringify(rows));
  }
  return slices;
}
