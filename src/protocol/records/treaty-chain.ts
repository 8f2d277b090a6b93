/** How a treaty follows its subject from one authority key to the next [core-4-13-1]. */
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import {
  type ChainReason,
  type ChainTools,
  type ChainVerdict,
  followChain,
  type KeyState,
  keysInForce,
  type ReceivedChain,
} from './authority-chain.ts';
import type { AuthoritySuccession } from './authority-succession.ts';

/** What a treaty says about its subject. A treaty never changes, so this does not become outdated. */
export interface TreatyPin {
  readonly subject: string;
  readonly subjectKeys: readonly string[];
  /** Null if the treaty does not name the subject's root key. */
  readonly rootKey: string | null;
  /** The statements that the treaty has followed before. */
  readonly followed: readonly AuthoritySuccession[];
}

const PUBLIC_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** The subject's root key in the free-form metadata of a treaty; null if there is none. */
export function rootKeyIn({ root_public_key: key }: JsonObject): string | null {
  return typeof key === 'string' && PUBLIC_KEY.test(key) ? key : null;
}

/** `rootKey` is the root key that the operator names; null for the one in the treaty, if any. */
export function followForTreaty(
  treaty: TreatyPin,
  rootKey: string | null,
  received: ReceivedChain,
  now: number,
  tools: ChainTools,
): ChainVerdict {
  const { subject, subjectKeys, followed } = treaty;
  if (rootKey !== null && treaty.rootKey !== null && rootKey !== treaty.rootKey) {
    return refused(
      'wrong_root_key',
      `The treaty names the root key ${treaty.rootKey}, not ${rootKey}; ask the operators of ${JSON.stringify(subject)} which one is right.`,
    );
  }
  const pinnedRoot = rootKey ?? treaty.rootKey;
  const named = newestNamed(received.successions, subjectKeys);
  const trusted =
    pinnedRoot === null ? { authorityKey: named ?? subjectKeys[0] ?? '' } : { rootKey: pinnedRoot };
  const pin = { networkName: subject, trusted, known: followed };
  const verdict = followChain(pin, received, now, tools);
  const isUnknown =
    verdict.refusal === null
      ? named === null && received.successions.length > 0
      : verdict.refusal.reason === 'unknown_key';
  if (!isUnknown) return verdict;
  return refused(
    'unknown_key',
    `The chain contains none of the keys that the treaty names; check that it is the chain of ${JSON.stringify(subject)}, or issue a treaty with its present key.`,
  );
}

/** The treaty's key that comes last in the chain, because it vouches for everything before it. */
function newestNamed(received: readonly unknown[], subjectKeys: readonly string[]): string | null {
  const named = new Set<unknown>(subjectKeys);
  const chain = received.filter(isJsonObject);
  const newest = chain.findLast(({ to_key }) => named.has(to_key))?.to_key ?? chain[0]?.from_key;
  return typeof newest === 'string' && named.has(newest) ? newest : null;
}

function refused(reason: ChainReason, message: string): ChainVerdict {
  return { refusal: { reason, sequence: null, message } };
}

/** The keys that a treaty names once it has followed these statements, the current key of the subject first. */
export function acceptedKeys(
  followed: readonly AuthoritySuccession[],
  subjectKeys: readonly string[],
  now: number,
): string[] {
  const keys = keysInForce(followed, now);
  const inState = (wanted: KeyState) =>
    keys.flatMap(({ public_key, state }) => (state === wanted ? [public_key] : []));
  const ofChain = new Set(keys.map(({ public_key }) => public_key));
  const others = subjectKeys.filter((key) => !ofChain.has(key));
  return [...inState('current'), ...inState('previous'), ...others];
}
