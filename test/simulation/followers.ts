/**
 * Clients that follow the network's keys from a key pinned once, using the published client library: they reach the
 * current key, never go back, and accept nothing that only a stolen key has signed [authority-keys-7].
 */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { createNetworkTrust, type NetworkTrust } from '../../src/client/followed-keys.ts';
import { createVerifier } from '../../src/client/offline.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import { forgedBy, theftsIn } from './forgeries.ts';
import { type AuthorityKeys, publishedIds, signingNow } from './model/authority-keys.ts';
import { AUTHORITY, NETWORK, ROOT } from './requests.ts';
import { insist } from './violation.ts';

/** What everyone can read. */
export interface Published {
  readonly now: number;
  /** The keys according to what was answered. */
  readonly keys: AuthorityKeys;
  readonly genesis: JsonObject;
  readonly authorityKeys: JsonObject;
  readonly crl: JsonObject;
}

interface Pin {
  readonly authorityKey: string;
  readonly rootKey?: string;
}

interface Follower {
  readonly name: string;
  /** How many statements were in force when it pinned the key; null if it pinned the root key. */
  readonly pinnedAfter: number | null;
  readonly trust: NetworkTrust;
  /** Whether it reads the genesis block, or relies on its clock alone. */
  readonly readsGenesis: boolean;
}

export const ROOT_PIN = { authorityKey: AUTHORITY.publicKey, rootKey: ROOT.publicKey };
export const VERIFY = { verify: verifySignature, sha256: SHA256 };

/** A client that has pinned these keys. */
export function trustOf(now: () => number, pin: Pin): NetworkTrust {
  return createNetworkTrust({ networkName: NETWORK, now, ...VERIFY, ...pin });
}

export class Followers {
  readonly #followers: Follower[] = [];
  /** Earlier documents, which anyone may present again. */
  readonly #documents = new Map<string, readonly string[]>();
  readonly #now: () => number;
  readonly #changed: (create: () => NetworkTrust) => NetworkTrust;
  #looked = '';

  /** `changed` plants a defect in a client. */
  constructor(now: () => number, changed?: (create: () => NetworkTrust) => NetworkTrust) {
    this.#now = now;
    this.#changed = changed ?? ((create) => create());
    this.#add('those who pinned the root key', null, ROOT_PIN, true);
    this.#add('those who pinned the root key, without the genesis block', null, ROOT_PIN, false);
    this.#add('those who pinned the first key', 0, { authorityKey: AUTHORITY.publicKey }, true);
  }

  /** Checks what is published after a step. */
  look(published: Published): void {
    const { keys, crl } = published;
    // While a due change has not happened yet, clocks are ahead of what the authority has done.
    if (isLate(published)) return;
    const looked = `${canonicalJson(published.authorityKeys)} ${crl.sequence}`;
    if (looked === this.#looked) return;
    this.#looked = looked;
    const { current } = signingNow(keys);
    const { length } = keys.inForce;
    if (!this.#followers.some(({ pinnedAfter }) => pinnedAfter === length)) {
      this.#add(
        `those who pinned key ${length}`,
        length,
        { authorityKey: current },
        length % 2 === 0,
      );
    }
    for (const follower of this.#followers) this.#follow(follower, published);
    this.#offerEarlier(published);
    this.#documents.set(canonicalJson(published.authorityKeys), publishedIds(keys));
  }

  /** A client that has never looked before must reach the current key too. */
  lookFirst(published: Published): void {
    if (isLate(published)) return;
    for (const { name, pinnedAfter, readsGenesis } of this.#followers) {
      const authorityKey = pinnedKey(published.keys, pinnedAfter ?? 0);
      const pin = { authorityKey, ...(pinnedAfter === null && { rootKey: ROOT.publicKey }) };
      const late = this.#made(`${name}, and was away`, pinnedAfter, pin, readsGenesis);
      this.#follow(late, published);
    }
  }

  #follow(follower: Follower, published: Published): void {
    const { name, pinnedAfter, trust, readsGenesis } = follower;
    const { keys, genesis, authorityKeys, crl, now } = published;
    const isClockBehind = keys.inForce.some(({ activatesAt }) => activatesAt > now);
    if (isClockBehind && !readsGenesis) return;
    const before = trust.stored();
    const { refusal } = trust.follow(
      authorityKeys,
      readsGenesis ? (genesis as unknown as GenesisBlock) : undefined,
    );
    const isCutOff = keys.inForce
      .slice(pinnedAfter ?? keys.inForce.length)
      .some(({ kind }) => kind === 'compromise');
    const stagedIsTheft = keys.staged?.statement.kind === 'compromise';
    const mayBeRefused = isCutOff || (pinnedAfter !== null && stagedIsTheft);
    if (refusal !== null) {
      insist(
        mayBeRefused && refusal.reason === 'root_key_needed',
        () => `${name} cannot follow: ${refusal.message}`,
      );
      insist(trust.stored() === before, () => `${name} took something from a refused chain`);
    }
    if (isCutOff) {
      insist(refusal !== null, () => `${name} follows a chain past a theft`);
      return;
    }
    // While updates are refused, it keeps what it knew.
    if (refusal !== null && trust.currentKey() !== signingNow(keys).current) return;
    insist(
      trust.currentKey() === signingNow(keys).current,
      () => `${name} takes ${trust.currentKey()} for the current key`,
    );
    const verdict = createVerifier({ ...VERIFY, now: () => now }).revocationList(crl, trust);
    // A client whose list is stale requests a new one; so does one whose list is dated ahead, until it is issued again.
    insist(
      ['valid', 'stale', 'not_yet_valid'].includes(verdict),
      () => `For ${name}, the revocation list ${crl.sequence} is ${verdict}`,
    );
    this.#assertRefusesForgeries(follower, published);
  }

  /** No client returns to the keys of an earlier document. */
  #offerEarlier({ keys }: Published): void {
    for (const [text, ids] of this.#documents) {
      for (const { name, trust } of this.#followers) {
        const known = trust.lastChange()?.sequence ?? 0;
        if (keys.inForce.slice(0, known).every(({ id }, index) => ids[index] === id)) continue;
        const before = trust.stored();
        const { refusal } = trust.follow(text);
        insist(
          refusal !== null && trust.stored() === before,
          () => `${name} follows ${known} statements, and takes another chain of ${ids.length}`,
        );
      }
    }
  }

  #assertRefusesForgeries({ name, trust }: Follower, { keys, genesis, now }: Published): void {
    const verifier = createVerifier({ ...VERIFY, now: () => now });
    for (const theft of theftsIn(keys)) {
      const forged = forgedBy(theft, now);
      const verdicts = {
        certificate: verifier.certificate(forged.certificate, {
          genesis: genesis as never,
          authority: trust,
        }),
        'revocation list': verifier.revocationList(forged.crl, trust),
        policy: verifier.policy(forged.policy, trust),
        bulletin: verifier.bulletin(forged.bulletin, NETWORK, trust),
        feed: verifier.feed(forged.feed, NETWORK, trust.signingNow()),
      };
      for (const [what, verdict] of Object.entries(verdicts)) {
        insist(
          verdict === 'invalid_signature',
          () => `${name} takes a forged ${what} for ${verdict}`,
        );
      }
    }
  }

  #add(name: string, pinnedAfter: number | null, pin: Pin, readsGenesis: boolean): void {
    this.#followers.push(this.#made(name, pinnedAfter, pin, readsGenesis));
  }

  #made(name: string, pinnedAfter: number | null, pin: Pin, readsGenesis: boolean): Follower {
    const trust = this.#changed(() => trustOf(this.#now, pin));
    return { name, pinnedAfter, readsGenesis, trust };
  }
}

/** The key that was current after `length` statements. */
function pinnedKey({ inForce, terms }: AuthorityKeys, length: number): string {
  return inForce[length - 1]?.to ?? terms[0].current;
}

/** Whether a due change has not happened yet; for clients that go by their clock, it is late. */
function isLate({ keys, now }: Published): boolean {
  return keys.staged !== null && keys.staged.statement.activatesAt <= now;
}
