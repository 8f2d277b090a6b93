/** What this instance says about itself to the others [link-1]. */
import { type InstanceStatusMemory, noteLag } from '../../protocol/contract/instance-status.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import type { OwnRow } from '../../store/postgresql/instances.ts';
import type { ForwardKeys } from './keys.ts';

/** The state that a standby keeps ready. */
export interface StandbyState {
  /** Null while there is none. */
  readonly revision: number | null;
  /** How many revisions it is behind; null while there is none. */
  readonly lag: number | null;
  /** The keys of the authority in it. */
  readonly keys: readonly AuthorityKey[];
}

export interface OwnRowOptions {
  readonly memory: InstanceStatusMemory;
  readonly keys: ForwardKeys;
  isActive(): boolean;
}

export function createOwnRow({ memory, keys, isActive }: OwnRowOptions) {
  let state: StandbyState = { revision: null, lag: null, keys: [] };
  /** The smallest since the row was last written: what was stored a moment ago is no lag. */
  let leastLag: number | null = null;

  return {
    /** Notes how the state fares that this instance keeps ready. */
    looked(next: StandbyState): void {
      if (isActive()) return;
      state = next;
      noteLag(memory, next.lag);
      leastLag = next.lag === null ? null : Math.min(next.lag, leastLag ?? next.lag);
      keys.know(next.keys);
    },
    /** The row to write now. */
    take(): OwnRow {
      const { revision, lag } = state;
      const behind = lag === null ? null : Math.min(lag, leastLag ?? lag);
      leastLag = null;
      const isActiveNow = isActive();
      const nextKey = keys.nextKey();
      return { isActive: isActiveNow, revision, lag: isActiveNow ? 0 : behind, nextKey };
    },
  };
}
