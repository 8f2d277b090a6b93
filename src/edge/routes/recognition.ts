/** Verifies what other sovereigns have signed: revocation feeds [core-4-14], and chains of keys that treaties follow [core-4-13]. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { Input } from '../../protocol/api/read.ts';
import type { importFeed } from '../../protocol/api/recognition.ts';
import type { followTreaty } from '../../protocol/api/treaties.ts';
import type { Call, Prepared } from '../../protocol/contract/calls.ts';
import { NO_CHAIN, receivedChain } from '../../protocol/records/authority-chain.ts';
import {
  type SovereignRevocationFeed as Feed,
  keyOfFeed,
} from '../../protocol/records/revocation-feed.ts';
import { followForTreaty, type TreatyPin } from '../../protocol/records/treaty-chain.ts';
import type { EdgeParts } from '../operations/operations.ts';

/** The search for a signature may take many checks. */
export async function verifiedFeed(
  { feed, issuer_public_keys: given, ...sent }: InputOf<typeof importFeed>,
  call: Call,
): Promise<Prepared['importFeed']> {
  const { feed_id: feedId, issuer_sovereign_id: issuer, sequence } = feed;
  const keys = given ?? (await treatyKeysFor(issuer, call));
  return {
    ...sent,
    issuer_public_keys: given && [...given.values()],
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
  followTreaty: { prepare: (sent, { now }, { call }) => followedChain(sent, now, call) },
} satisfies EdgeParts;

async function treatyKeysFor(issuer: string, call: Call): Promise<readonly string[]> {
  const answer = await call('treatyKeys', { issuer });
  return answer.ok ? (JSON.parse(answer.json) as string[]) : [];
}

/** Rows per slice for the authority. */
const ROWS_PER_SLICE = 2000;

/** The revoked ids with their reasons, in slices. */
function importRows({
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

/** Following a chain may take hundreds of signature checks. */
export async function followedChain(
  { authority_keys: document, ...sent }: InputOf<typeof followTreaty>,
  now: number,
  call: Call,
): Promise<Input<Prepared['followTreaty']>> {
  const asked = await call('treatyPin', { treatyId: sent.treaty_id });
  if (!asked.ok) return asked;
  const pin: TreatyPin = JSON.parse(asked.json);
  const received = receivedChain(document) ?? NO_CHAIN;
  const tools = { verify: verifySignature, sha256: SHA256 };
  const verdict = followForTreaty(pin, sent.root_public_key, received, now, tools);
  if (verdict.refusal !== null) {
    const { refusal } = verdict;
    return { ok: true, value: { ...sent, refusal, inForce: [], nextAt: null } };
  }
  const { successions, inForce } = verdict;
  const nextAt = successions[inForce.length]?.activates_at ?? null;
  return { ok: true, value: { ...sent, refusal: null, inForce, nextAt } };
}
