/** The secrets of the link between instances, which each authority key gives its own [link-2]. */
import type { LabeledSigner, Signer } from '../../base/crypto/primitives.ts';
import type { AuthoritySigner } from '../../base/signer/authority-signer.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';
import { derivedSecret, keysIn, networkDigest } from '../derived-secret.ts';

export interface LinkKey {
  /** The authority key that the secret is derived from, which names it. */
  readonly publicKey: string;
  readonly secret: Buffer;
}

export interface LinkKeys {
  /** Whether another instance may use the secret of this authority key now: the key signs. */
  isAccepted(publicKey: string): boolean;
  /** The secret of an accepted key; null for other keys, or while the signer is unavailable. */
  accepted(publicKey: string): Buffer | null;
  /**
   * The secrets to link with, never none. An instance may not know yet which of its keys signs; it does not offer one
   * of which it knows that it does not sign anymore.
   */
  offered(): readonly LinkKey[];
}

export interface WatchedLinkKeys extends LinkKeys {
  /** The staged key, if this instance holds it. */
  nextKey(): string | null;
}

const LABEL = 'mesh-na link 1';

export function linkSecret(key: Pick<Signer, 'sign'>, network: string): Buffer {
  return derivedSecret(key, network, LABEL);
}

/** How often an instance looks whether it holds a staged key, which may be put into its place at any time. */
const LOOK_MS = 1000;

export interface LinkKeysOptions {
  readonly signer: AuthoritySigner;
  readonly genesis: GenesisBlock;
  readonly publisher: Pick<DocumentPublisher, 'follow'>;
  elapsed(): number;
}

export function createLinkKeys({
  signer,
  genesis,
  publisher,
  elapsed,
}: LinkKeysOptions): WatchedLinkKeys {
  const network = networkDigest(genesis);
  const secrets = new Map<string, Buffer>();
  /** The keys as last published, by this instance or by the writer. */
  let published: readonly AuthorityKey[] = [];
  let lookedAt = -Infinity;
  let heldNext: string | null = null;

  publisher.follow(({ name, document }) => {
    if (name !== 'authority_keys') return;
    published = keysIn(document);
    lookedAt = -Infinity;
  });

  function signsNoMore(publicKey: string): boolean {
    const key = published.find(({ public_key }) => public_key === publicKey);
    return key?.state === 'distrusted' || key?.state === 'retired';
  }

  function lookForNext(): string | null {
    const staged = published.find(({ state }) => state === 'next');
    return staged !== undefined && signer.holds(staged.public_key) ? staged.public_key : null;
  }

  function signingKey(publicKey: string): LabeledSigner | undefined {
    return [signer, signer.previous]
      .flatMap((key) => key ?? [])
      .find((key) => key.publicKey === publicKey);
  }

  /** Called for handshakes of strangers, so a signer that is unavailable must not throw. */
  function secretOf(key: Pick<Signer, 'publicKey' | 'sign'>): Buffer | null {
    const known = secrets.get(key.publicKey);
    if (known !== undefined) return known;
    try {
      const secret = linkSecret(key, network);
      secrets.set(key.publicKey, secret);
      return secret;
    } catch (cause) {
      if (isSignerUnavailable(cause)) return null;
      throw cause;
    }
  }

  // Derived now, while the signer is known to be available.
  const own = { publicKey: signer.publicKey, secret: linkSecret(signer, network) };
  secrets.set(own.publicKey, own.secret);

  return {
    isAccepted: (publicKey) => signingKey(publicKey) !== undefined,
    accepted(publicKey) {
      const key = signingKey(publicKey);
      return key === undefined ? null : secretOf(key);
    },
    offered() {
      const others = signer.held().filter(({ publicKey }) => publicKey !== signer.publicKey);
      const usable = [signer, ...others].filter(({ publicKey }) => !signsNoMore(publicKey));
      const offered = usable.flatMap((key) => {
        const secret = secretOf(key);
        return secret === null ? [] : [{ publicKey: key.publicKey, secret }];
      });
      return offered.length === 0 ? [own] : offered;
    },
    nextKey() {
      const now = elapsed();
      if (now < lookedAt + LOOK_MS) return heldNext;
      lookedAt = now;
      heldNext = lookForNext();
      return heldNext;
    },
  };
}
