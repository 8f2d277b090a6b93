/** The files of the authority's keys and its genesis block, as an operator and the service leave them. */
import type { Signer } from '../../src/base/crypto/primitives.ts';
import {
  type AuthoritySigner,
  createAuthoritySigner,
  heldHere,
} from '../../src/base/signer/authority-signer.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import { AUTHORITY, FIRST_KEY_ID, GENESIS } from './requests.ts';

export class KeyFolder {
  /** The configuration of the next start. */
  genesis: GenesisBlock = GENESIS;
  readonly #keys = new Map<string, Signer>([[AUTHORITY.publicKey, AUTHORITY]]);
  readonly #destroyed = new Set<Signer>();

  put(key: Signer): void {
    this.#keys.set(key.publicKey, key);
  }

  has(publicKey: string): boolean {
    return this.#keys.has(publicKey);
  }

  /** The signer of a process that starts now. */
  signer(): AuthoritySigner {
    const { public_key } = this.genesis.network_authority;
    const configured = { publicKey: public_key, keyId: FIRST_KEY_ID };
    return createAuthoritySigner(
      heldHere(() => [...this.#keys.values()]),
      configured,
    );
  }

  /** Only one key signs from now on, so the former ones are deleted. */
  settle(genesis: GenesisBlock, former: readonly string[]): void {
    this.genesis = genesis;
    for (const publicKey of former) {
      const key = this.#keys.get(publicKey);
      if (key !== undefined) this.#destroyed.add(key);
      this.#keys.delete(publicKey);
    }
  }

  /** An operator restores the files from before any succession. */
  putBack(): void {
    this.genesis = GENESIS;
    for (const key of this.#destroyed) this.put(key);
    this.#destroyed.clear();
  }
}
