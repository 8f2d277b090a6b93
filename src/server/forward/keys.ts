/**
 * Secrets that all instances derive from a key of the authority without telling each other [core-3-4], and those with
 * which they reach each other: each authority key gives its own [link-2].
 */
import { hkdfSync } from 'node:crypto';
import Type from 'typebox';
import Value from 'typebox/value';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { Signer } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import type { AuthoritySigner } from '../../base/signer/authority-signer.ts';
import type { SharedKey } from '../../edge/forward/target.ts';
import { documentText, type PublishedDocument } from '../../protocol/contract/documents.ts';
import { type AuthorityKey, AuthorityKeys } from '../../protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';

const SECRET_BYTES = 32;

export function networkDigest({
  network_name,
  root_public_key,
}: Pick<GenesisBlock, 'network_name' | 'root_public_key'>): string {
  return sha256Hex(canonicalJson({ network_name, root_public_key }));
}

/**
 * Ed25519 signatures are deterministic, so every instance with the key derives the same secret. No record begins with a
 * label, so the signature is useless elsewhere.
 */
export function derivedSecret(key: Pick<Signer, 'sign'>, network: string, label: string): Buffer {
  const signature = Buffer.from(key.sign(`${label}\n${network}`), 'base64');
  return Buffer.from(hkdfSync('sha256', signature, network, label, SECRET_BYTES));
}

const Keys = Type.Pick(AuthorityKeys, ['keys']);

/** The keys in the published document, one of which the secrets derive from. */
export function keysIn(document: PublishedDocument): readonly AuthorityKey[] {
  const value: unknown = JSON.parse(documentText(document));
  return Value.Check(Keys, value) ? value.keys : [];
}

const LABEL = 'mesh-na link 1';

export function linkSecret(key: Pick<Signer, 'sign'>, network: string): Buffer {
  return derivedSecret(key, network, LABEL);
}

export type ForwardKeys = ReturnType<typeof createForwardKeys>;

/** A key may be put into its place at any time, so which ones are held is looked up whenever it is asked. */
export function createForwardKeys(signer: AuthoritySigner, genesis: GenesisBlock) {
  const network = networkDigest(genesis);
  const shared = createSecrets(network);
  let known: readonly AuthorityKey[] = [];
  // Derived now, while the signer is known to be available.
  const own = [{ publicKey: signer.publicKey, secret: linkSecret(signer, network) }];

  function signsNoMore({ publicKey }: Key): boolean {
    const key = known.find(({ public_key }) => public_key === publicKey);
    return key?.state === 'distrusted' || key?.state === 'retired';
  }

  return {
    /** Takes the keys that there are, as far as this instance knows. */
    know(keys: readonly AuthorityKey[]): void {
      known = keys;
    },
    /** The secrets that another instance may use now: those of the keys that sign. */
    accepted: (): readonly SharedKey[] =>
      shared(signer.previous ? [signer, signer.previous] : [signer]),
    /**
     * The secrets to connect with, never none. An instance may not know yet which of its keys signs; it does not offer one
     * of which it knows that it does not sign anymore.
     */
    offered(): readonly SharedKey[] {
      const others = signer.held().filter(({ publicKey }) => publicKey !== signer.publicKey);
      const offered = shared([signer, ...others].filter((key) => !signsNoMore(key)));
      return offered.length === 0 ? own : offered;
    },
    /** The staged key, if this instance holds it. */
    nextKey(): string | null {
      const staged = known.find(({ state }) => state === 'next');
      return staged !== undefined && signer.holds(staged.public_key) ? staged.public_key : null;
    },
  };
}

type Key = Pick<Signer, 'publicKey' | 'sign'>;

/** The returned function leaves out keys of which the secret is not known yet while the signer is unavailable. */
function createSecrets(network: string): (keys: readonly Key[]) => readonly SharedKey[] {
  const secrets = new Map<string, SharedKey>();

  function sharedKey(key: Key): SharedKey {
    const { publicKey } = key;
    const shared = secrets.get(publicKey) ?? { publicKey, secret: linkSecret(key, network) };
    secrets.set(publicKey, shared);
    return shared;
  }

  return (keys) =>
    keys.flatMap((key) => {
      try {
        return sharedKey(key);
      } catch (cause) {
        if (isSignerUnavailable(cause)) return [];
        throw cause;
      }
    });
}
