/** Successions that operators prepare from what an instance has published, with the next key in some of the folders. */
import type { Signer } from '../../../src/base/crypto/primitives.ts';
import type { AuthorityKeys } from '../../../src/protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../../src/protocol/records/genesis.ts';
import type { Random } from '../../fuzz/random.ts';
import { NEXT_KEYS } from '../requests.ts';
import { madeSuccession } from '../successions.ts';
import type { DrawnSuccession } from './histories.ts';
import type { Instance } from './instance.ts';
import { randomness } from './machine-runtime.ts';
import type { Running } from './process.ts';

export class Operators {
  readonly #instances: readonly Instance[];
  readonly #chance: Random;
  readonly #prepared: Signer[] = [];

  constructor(instances: readonly Instance[], chance: Random) {
    this.#instances = instances;
    this.#chance = chance;
  }

  /** Null if the instance has not published the documents that a succession builds on, or if no keys are left. */
  succession(
    { kind, activatesIn, overlap, holders }: DrawnSuccession,
    now: number,
    { held }: Running,
  ) {
    const [genesis, document] = [held('genesis'), held('authority_keys')];
    const to = NEXT_KEYS[this.#prepared.length];
    if (genesis === null || document === null || to === undefined) return null;
    this.#prepared.push(to);
    for (const [index, { folder }] of this.#instances.entries()) {
      if (holders[index] === true) folder.put(to);
    }
    const ground = {
      genesis: genesis as unknown as GenesisBlock,
      document: document as unknown as AuthorityKeys,
      now,
      uuid: randomness(this.#chance).uuid,
    };
    return madeSuccession(ground, { kind, to, activatesIn, overlap, flaw: 'none' }).signed;
  }

  /** Puts the keys that the instance lacks into its folder. */
  bringKeys({ folder }: Instance): void {
    for (const key of this.#prepared) folder.put(key);
  }
}
