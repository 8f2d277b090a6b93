/** The keys of the authority as the service uses them: held in this process, or by a separate signer process. */
import type { LabeledSigner, RecordSigner, Signer } from '../crypto/primitives.ts';
import type { SignerAddress } from './connection.ts';

/** Where signatures come from; passed to a thread or a separate process so that it can sign on its own. */
export type KeySource =
  | { readonly kind: 'seed'; readonly seed: Uint8Array }
  | { readonly kind: 'signer'; readonly address: SignerAddress };

/** A public key in base64, and the label of its signatures. */
export type LabeledKey = Pick<LabeledSigner, 'publicKey' | 'keyId'>;

/** Which keys sign from an instant on, until that of the next term. */
export interface SigningTerm {
  /** Milliseconds since the epoch. */
  readonly from: number;
  /** The base64 public key that new records name as their issuer. */
  readonly current: string;
  /** The base64 public key that signs as well; null if there is none. */
  readonly previous: string | null;
}

/** The keys that sign now; its members follow a change of the keys. */
export interface AuthoritySigner extends RecordSigner {
  /** Whether signatures of this base64 public key can be obtained here. */
  holds(publicKey: string): boolean;
  /**
   * Sets all terms of the authority, the first of which is that of the key it was founded with. Throws a one-sentence
   * error if a key of the last term is not held here.
   */
  use(terms: readonly SigningTerm[]): void;
  /**
   * The keys that signed at this instant, in milliseconds since the epoch: records that are built again get the
   * signatures they had. A key that is no longer held is left out; the keys of now replace a term without any.
   */
  at(instant: number): RecordSigner;
  /** Whether the signer is available, as far as is known without asking it. */
  isAvailable(): boolean;
  /** Asks the signer; throws `signer_unavailable` if it does not sign now. */
  assertAvailable(): void;
  /** Stops signing; resolves when everything is released. */
  close(): Promise<void>;
}

/** The place where keys are held. */
export interface KeyHolder
  extends Pick<AuthoritySigner, 'isAvailable' | 'assertAvailable' | 'close'> {
  /** A signer that throws `signer_unavailable` if no signature can be obtained; null if the key is not held. */
  keyOf(publicKey: string): Signer | null;
}

/** Signs with one key until terms are set. `configured` labels the key that the authority was founded with. */
export function createAuthoritySigner(holder: KeyHolder, configured: LabeledKey): AuthoritySigner {
  let founding = configured.publicKey;
  let now = demanded({ from: -Infinity, current: founding, previous: null });
  let since = -Infinity;
  let earlier: readonly { readonly from: number; readonly signer: RecordSigner }[] = [];

  function labeled(publicKey: string): LabeledSigner | null {
    const signer = holder.keyOf(publicKey);
    if (signer === null) return null;
    const keyId = publicKey === founding ? configured.keyId : publicKey;
    return { publicKey, keyId, sign: (text) => signer.sign(text) };
  }

  function demanded({ current, previous }: SigningTerm): RecordSigner {
    const keys = [current, ...(previous === null ? [] : [previous])];
    const missing = keys.find((key) => holder.keyOf(key) === null);
    if (missing !== undefined) throw new Error(`The authority key ${missing} is not held here`);
    return signerOf(keys) as RecordSigner;
  }

  /** Null if none of the keys is held. */
  function signerOf(keys: readonly (string | null)[]): RecordSigner | null {
    const [first, second = null] = keys.flatMap((key) => (key && labeled(key)) || []);
    return first === undefined ? null : { ...first, previous: second };
  }

  return {
    get publicKey() {
      return now.publicKey;
    },
    get keyId() {
      return now.keyId;
    },
    get sign() {
      return now.sign;
    },
    get previous() {
      return now.previous;
    },
    holds: (publicKey) => holder.keyOf(publicKey) !== null,
    use(terms) {
      const [first, last] = [terms[0], terms.at(-1)];
      if (first === undefined || last === undefined) throw new Error('No key is to sign');
      const before = founding;
      founding = first.current;
      try {
        now = demanded(last);
      } catch (cause) {
        founding = before;
        throw cause;
      }
      since = last.from;
      earlier = terms.slice(0, -1).map(({ from, current, previous }) => ({
        from,
        signer: signerOf([current, previous]) ?? now,
      }));
    },
    at(instant) {
      if (instant >= since) return now;
      return (earlier.findLast(({ from }) => from <= instant) ?? earlier[0])?.signer ?? now;
    },
    isAvailable: holder.isAvailable,
    assertAvailable: holder.assertAvailable,
    close: holder.close,
  };
}

/** Keys in the memory of this process are always available. */
export function heldHere(signers: readonly Signer[]): KeyHolder {
  const held = new Map(signers.map((signer) => [signer.publicKey, signer]));
  return {
    keyOf: (publicKey) => held.get(publicKey) ?? null,
    isAvailable: () => true,
    assertAvailable: () => undefined,
    close: () => Promise.resolve(),
  };
}
