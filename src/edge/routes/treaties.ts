/** Follows the chains of keys that treaties are to follow [core-4-13]. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { Input } from '../../protocol/api/read.ts';
import type { followTreaty } from '../../protocol/api/treaties.ts';
import type { Call, Prepared } from '../../protocol/contract/calls.ts';
import { NO_CHAIN, receivedChain } from '../../protocol/records/authority-chain.ts';
import { followForTreaty, type TreatyPin } from '../../protocol/records/treaty-chain.ts';
import type { EdgeParts } from '../operations/operations.ts';

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

export const treatyParts = {
  followTreaty: { prepare: (sent, { now }, { call }) => followedChain(sent, now, call) },
} satisfies EdgeParts;
