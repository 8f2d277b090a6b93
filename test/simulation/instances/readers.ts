/**
 * What readers are shown: nothing older than what was acknowledged before they asked, and lists that every client that
 * pinned the root key can verify.
 */

import type { NetworkTrust } from '../../../src/client/followed-keys.ts';
import { createVerifier } from '../../../src/client/offline.ts';
import type { AuthorityKeyStep } from '../../../src/protocol/answers/operators.ts';
import type { AuthorityKeys } from '../../../src/protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../../src/protocol/records/genesis.ts';
import { ROOT_PIN, trustOf, VERIFY } from '../followers.ts';
import { PublishedDocuments } from '../published-documents.ts';
import { insist } from '../violation.ts';
import { certificatesOn, type Shown } from './shown.ts';

/** What had been acknowledged at some point. */
export interface Acknowledged {
  readonly revoked: readonly string[];
  /** The least number of published statements, and of those in force. */
  readonly published: number;
  readonly inForce: number;
  readonly retired: readonly string[];
}

export interface ReadersOptions {
  now(): number;
  /**
   * Whether the database has lost its last changes: then acknowledged changes may be missing, and may come back in
   * another form.
   */
  hasLost(): boolean;
  isLost(certId: string): boolean;
}

export class Readers {
  readonly #options: ReadersOptions;
  #acknowledged: Acknowledged = { revoked: [], published: 0, inForce: 0, retired: [] };
  readonly #documents = new PublishedDocuments(() => undefined);
  /** The trust of a client that has followed from the beginning. */
  readonly #follower: NetworkTrust;

  constructor(options: ReadersOptions) {
    this.#options = options;
    this.#follower = trustOf(this.#options.now, ROOT_PIN);
  }

  get acknowledged(): Acknowledged {
    return this.#acknowledged;
  }

  noteRevoked(certId: string): void {
    const { revoked } = this.#acknowledged;
    this.#acknowledged = { ...this.#acknowledged, revoked: [...revoked, certId] };
  }

  noteStep({ state, sequence, public_key }: AuthorityKeyStep): void {
    const { published, inForce, retired } = this.#acknowledged;
    this.#acknowledged = {
      ...this.#acknowledged,
      published: Math.max(published, sequence),
      inForce: state === 'staged' ? inForce : Math.max(inForce, sequence),
      retired: state === 'retired' ? [...retired, public_key] : retired,
    };
  }

  /** Checks what was shown to a reader who asked once `acknowledged` was known. */
  check(where: string, shown: Shown, acknowledged: Acknowledged, isLast = false): void {
    const { hasLost, isLost } = this.#options;
    const listed = certificatesOn(shown.crl);
    const missing = acknowledged.revoked.filter((id) => !listed.includes(id) && !isLost(id));
    insist(
      missing.length === 0,
      () => `${where} shows no ${missing.join(', ')}, acknowledged before it was asked`,
    );
    this.#assertOneKey(where, shown);
    this.#assertVerified(where, shown);
    if (hasLost()) return;
    this.#documents.assertOneContent('crl', shown.crl);
    assertNotOlder(where, keysOf(shown), acknowledged);
    this.#follow(where, shown, isLast);
  }

  /** Genesis block, keys and list must agree on the current key. */
  #assertOneKey(where: string, shown: Shown): void {
    const { network_authority } = shown.genesis as unknown as GenesisBlock;
    const current = keysOf(shown).keys.find(({ state }) => state === 'current')?.public_key;
    const named = [network_authority.public_key, shown.crl.issuer];
    insist(
      named.every((key) => key === current),
      () => `${where} shows the current key ${current} with documents that name ${named}`,
    );
  }

  /** Verifies as a client that knows only the root key. */
  #assertVerified(where: string, { authority_keys, genesis, crl }: Shown): void {
    const trust = trustOf(this.#options.now, ROOT_PIN);
    const { refusal } = trust.follow(authority_keys, genesis as unknown as GenesisBlock);
    insist(refusal === null, () => `${where} shows keys that are refused: ${refusal?.message}`);
    const verifier = createVerifier({ ...VERIFY, now: this.#options.now });
    const verdict = verifier.revocationList(crl, trust);
    insist(verdict === 'valid', () => `${where} shows a revocation list that is ${verdict}`);
  }

  #follow(where: string, { authority_keys, genesis }: Shown, isLast: boolean): void {
    const { refusal } = this.#follower.follow(authority_keys, genesis as unknown as GenesisBlock);
    // Other readers may have been shown more before it was acknowledged.
    const isEarlier = refusal?.reason === 'shorter' && !isLast;
    insist(
      refusal === null || isEarlier,
      () => `${where} shows keys that a follower refuses: ${refusal?.message}`,
    );
  }
}

function keysOf({ authority_keys }: Shown): AuthorityKeys {
  return authority_keys as unknown as AuthorityKeys;
}

function assertNotOlder(
  where: string,
  { keys, successions }: AuthorityKeys,
  { published, inForce, retired }: Acknowledged,
): void {
  const isStaged = keys.some(({ state }) => state === 'next');
  const shown = successions.length - (isStaged ? 1 : 0);
  insist(
    successions.length >= published && shown >= inForce,
    () =>
      `${where} shows ${successions.length} statements of ${published}, ${shown} in force of ${inForce}, acknowledged before`,
  );
  const signing = keys.filter(({ state }) => state === 'current' || state === 'previous');
  const ended = signing.find(({ public_key }) => retired.includes(public_key));
  insist(
    ended === undefined,
    () => `${where} shows the overlap of ${ended?.public_key}, which has ended before`,
  );
}
