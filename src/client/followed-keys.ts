/**
 * The keys of a network's authority, followed from a pinned key along succession statements [authority-keys-7]. A chain
 * that is refused changes nothing, and what was followed is never given up.
 */
import Type from 'typebox';
import { jsonText } from '../base/json/write.ts';
import {
  type AuthorityKey,
  authorityKeysDigest,
  type ChainPin,
  type ChainReason,
  type ChainTools,
  firstKey,
  followChain,
  keysInForce,
  type ReceivedChain,
  receivedChain,
} from '../protocol/records/authority-chain.ts';
import type { AuthoritySuccession } from '../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { instantOf, recordReader } from '../protocol/records/record.ts';
import { verifyText } from './keys.ts';
import { CLOCK_TOLERANCE_MS, type VerifierOptions } from './offline.ts';
import { parsed, type Received } from './received.ts';
import { portableSha256 } from './sha256.ts';

/** What a chain of authority keys is verified with, in portable code. */
export const CHAIN_TOOLS: ChainTools = { verify: verifyText, sha256: portableSha256 };

export interface NetworkTrustOptions extends VerifierOptions {
  readonly networkName: string;
  /** The pinned authority key, or the one of a verified genesis. */
  readonly authorityKey: string;
  /** If it is known, the chain is verified from it, otherwise from the authority key. */
  readonly rootKey?: string;
  /** What `stored` returned before. */
  readonly stored?: string | null;
}

export interface FollowRefusal {
  readonly reason: ChainReason | 'malformed';
  /** One sentence that says what is wrong and what to do. */
  readonly message: string;
}

export interface FollowVerdict {
  /** Null if the chain was followed. */
  readonly refusal: FollowRefusal | null;
  /** The statements that are in force now and were not before. */
  readonly changes: readonly AuthoritySuccession[];
  /** The statement that is not in force yet; it may be withdrawn. */
  readonly next: AuthoritySuccession | null;
}

/** The members of a stored document; the statements are verified again. */
const readStored = recordReader(
  Type.Object({
    successions: Type.Array(Type.Unknown()),
    in_force: Type.Integer({ minimum: 0 }),
  }),
);

/** Whether the text is what `stored` returned once; a file may be empty or cut after a crash. */
export function isStoredTrust(text: string): boolean {
  return readStored(parsed(text)) !== null;
}

export type NetworkTrust = ReturnType<typeof createNetworkTrust>;

/** Throws when `stored` is damaged or does not lead on from the pinned key. */
export function createNetworkTrust(options: NetworkTrustOptions) {
  const { networkName, authorityKey, rootKey, now = Date.now } = options;
  const { verify = verifyText, sha256 = portableSha256 } = options;
  const tools: ChainTools = { verify, sha256 };
  const trusted: ChainPin['trusted'] = rootKey === undefined ? { authorityKey } : { rootKey };
  let successions: readonly AuthoritySuccession[] = [];
  let known: readonly AuthoritySuccession[] = [];
  if (typeof options.stored === 'string') restore(options.stored);

  function verdictOf(received: ReceivedChain, at: number) {
    return followChain({ networkName, trusted, known }, received, at, tools);
  }

  function restore(text: string): void {
    const document = readStored(parsed(text));
    if (document === null) throw new Error('The stored authority keys are damaged');
    const verdict = verdictOf(document, now());
    if (verdict.refusal !== null) {
      throw new Error(`The stored authority keys are refused: ${verdict.refusal.message}`);
    }
    successions = verdict.successions;
    known = successions.slice(0, document.in_force);
  }

  function keys(): readonly AuthorityKey[] {
    return known.length === 0 ? [firstKey(authorityKey)] : keysInForce(known, now());
  }

  function keysThat(counts: (key: AuthorityKey) => boolean): readonly string[] {
    const isCurrent = ({ state }: AuthorityKey) => state === 'current';
    const found = keys().filter(counts);
    return [...found.filter(isCurrent), ...found.filter((key) => !isCurrent(key))].map(
      ({ public_key }) => public_key,
    );
  }

  /** The authority's clock may be behind, and it ends an overlap a moment late. */
  function signsNow({ state, signs_until }: AuthorityKey): boolean {
    if (state !== 'retired') return state === 'current' || state === 'previous';
    return signs_until !== null && now() - instantOf(signs_until) <= CLOCK_TOLERANCE_MS;
  }

  return {
    /**
     * Follows an authority-keys document. With a genesis, which must be verified, a statement is in force when the
     * genesis shows it, whatever this clock says. The authority may say that it has not activated the last one yet.
     */
    follow(received: Received, genesis?: GenesisBlock): FollowVerdict {
      const offered = receivedChain(parsed(received));
      if (offered === null) return { refusal: MALFORMED, changes: [], next: null };
      const at =
        genesis === undefined
          ? now()
          : Math.max(now() - CLOCK_TOLERANCE_MS, instantOf(genesis.network_authority.valid_from));
      const verdict = verdictOf(offered, at);
      if (verdict.refusal !== null) return { refusal: verdict.refusal, changes: [], next: null };
      const changes = verdict.inForce.slice(known.length);
      successions = verdict.successions;
      if (changes.length > 0) known = verdict.inForce;
      return { refusal: null, changes, next: successions[known.length] ?? null };
    },
    currentKey: (): string => keysThat(({ state }) => state === 'current')[0] ?? authorityKey,
    /** Every key so far, oldest first. */
    keys,
    signingNow: (): readonly string[] => keysThat(signsNow),
    signingAt(issuedAt: string): readonly string[] {
      const issued = instantOf(issuedAt);
      return keysThat(
        (key) => signsNow(key) || key.signs_until === null || issued < instantOf(key.signs_until),
      );
    },
    /** The last statement in force; null if there is none. */
    lastChange: (): AuthoritySuccession | null => known.at(-1) ?? null,
    /** The digest of the followed document, for heartbeats; null if it had no statements. */
    digest: (): string | null =>
      successions.length === 0 ? null : authorityKeysDigest(successions, sha256),
    /** As an authority-keys document, to be kept between runs. */
    stored: (): string =>
      `${jsonText({
        network_name: networkName,
        root_public_key: successions[0]?.root_public_key ?? rootKey ?? null,
        keys: [...keys()],
        successions: [...successions],
        in_force: known.length,
      })}\n`,
  };
}

const MALFORMED: FollowRefusal = {
  reason: 'malformed',
  message:
    'It is not an authority-keys document; fetch /authority-keys of this network again, from its authority.',
};
