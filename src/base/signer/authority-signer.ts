/** The keys of the authority as the service uses them: held in this process, or by a separate signer process. */
import type { LabeledSigner, RecordSigner, Signer } from '../crypto/primitives.ts';

/** Where signatures come from; passed to a thread or a separate process so that it can sign on its own. */
export type KeySource =
  | { readonly kind: 'seeds'; readonly seeds: readonly Uint8Array[] }
  /** The socket of a signer. */
  | { readonly kind: 'signer'; readonly path: string };

/** A public key in base64, and the label of its signatures. */
export type LabeledKey = Pick<LabeledSigner, 'publicKey' | 'keyId'>;

/** The names of the keys that sign now, for a thread or a process that signs on its own. */
export interface SigningKeys {
  readonly current: LabeledKey;
  readonly previous: LabeledKey | null;
}

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
  /** All keys of which signatures can be obtained here. */
  held(): readonly Signer[];
  /**
   * Sets all terms of the authority, the first of which is that of the key it was founded with. Throws a one-sentence
   * error if a key of the last term is not held here.
   */
  use(terms: readonly SigningTerm[]): void;
  /**
   * The keys that signed at this instant, in milliseconds since the epoch: records that are built again get the
   * signatures they had, except for those of keys that sign no more. If none of the keys signs any more, those of now.
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
  extends Pick<AuthoritySigner, 'held' | 'isAvailable' | 'assertAvailable' | 'close'> {
  /** Sets the keys that must be held from now on; others need not be. */
  require(publicKeys: readonly string[]): void;
  /** A signer that throws `signer_unavailable` if no signature can be obtained; null if the key is not held. */
  keyOf(publicKey: string): Signer | null;
}

/** The signer with these keys; throws a one-sentence error if one of them is not held. */
export function signerWith(holder: KeyHolder, { current, previous }: SigningKeys): RecordSigner {
  const first = labeled(holder, current);
  return { ...first, previous: previous && labeled(holder, previous) };
}

function labeled(holder: KeyHolder, { publicKey, keyId }: LabeledKey): LabeledSigner {
  const key = holder.keyOf(publicKey);
  if (key === null) throw new Error(`The authority key ${publicKey} is not held here`);
  return { publicKey, keyId, sign: (text) => key.sign(text) };
}

export function signingKeysOf({ publicKey, keyId, previous }: RecordSigner): SigningKeys {
  const other = previous && { publicKey: previous.publicKey, keyId: previous.keyId };
  return { current: { publicKey, keyId }, previous: other };
}

/** The keys of the last term; without terms, the configured one, which labels the key that the authority was founded with. */
export function signingKeysIn(terms: readonly SigningTerm[], configured: LabeledKey): SigningKeys {
  const [first, last] = [terms[0], terms.at(-1)];
  if (first === undefined || last === undefined) return { current: configured, previous: null };
  const { current, previous } = last;
  return {
    current: keyNamed(current, first, configured),
    previous: previous === null ? null : keyNamed(previous, first, configured),
  };
}

function keyNamed(publicKey: string, first: SigningTerm, configured: LabeledKey): LabeledKey {
  return { publicKey, keyId: publicKey === first.current ? configured.keyId : publicKey };
}

/** Signs with one key until terms are set. `configured` labels the key that the authority was founded with. */
export function createAuthoritySigner(holder: KeyHolder, configured: LabeledKey): AuthoritySigner {
  let now: RecordSigner = signerWith(holder, { current: configured, previous: null });
  let since = -Infinity;
  let earlier: readonly { readonly from: number; readonly signer: RecordSigner }[] = [];

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
    get isRolledBack() {
      return now.isRolledBack ?? false;
    },
    holds: (publicKey) => holder.keyOf(publicKey) !== null,
    held: holder.held,
    use(terms) {
      const [first, last] = [terms[0], terms.at(-1)];
      if (first === undefined || last === undefined) throw new Error('No key is to sign');
      const named = (publicKey: string) => keyNamed(publicKey, first, configured);
      const signing = keysOf(last);
      const ageOf = (publicKey: string) => terms.findIndex(({ current }) => current === publicKey);
      const signerOf = ([current = last.current, previous]: readonly string[]) => ({
        ...signerWith(holder, {
          current: named(current),
          previous: previous === undefined ? null : named(previous),
        }),
        isRolledBack: previous !== undefined && ageOf(previous) > ageOf(current),
      });
      now = signerOf(signing);
      since = last.from;
      earlier = terms.slice(0, -1).map((term) => {
        const keys = keysOf(term).filter((key) => signing.includes(key));
        return { from: term.from, signer: keys.length === 0 ? now : signerOf(keys) };
      });
      holder.require(signing);
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

function keysOf({ current, previous }: SigningTerm): string[] {
  return previous === null ? [current] : [current, previous];
}

/** Keys in the memory of this process, which are always available. `all` is asked again for a key that is missing. */
export function heldHere(all: () => readonly Signer[]): KeyHolder {
  let held = mapOf(all());
  return {
    keyOf(publicKey) {
      if (!held.has(publicKey)) held = mapOf(all());
      return held.get(publicKey) ?? null;
    },
    held: all,
    require(publicKeys) {
      held = mapOf(publicKeys.flatMap((key) => held.get(key) ?? []));
    },
    isAvailable: () => true,
    assertAvailable: () => undefined,
    close: () => Promise.resolve(),
  };
}

function mapOf(signers: readonly Signer[]): ReadonlyMap<string, Signer> {
  return new Map(signers.map((signer) => [signer.publicKey, signer]));
}
