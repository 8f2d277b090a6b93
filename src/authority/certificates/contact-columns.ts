/**
 * Stores last contacts in columns indexed by certificate number. For a million contacts, this takes some 80 MB less
 * than objects, and the garbage collector does not have to copy them.
 */
import type { StoredLiveness } from '../../store/store.ts';
import { createBlocks } from '../subjects/blocks.ts';

/** One last contact. Instants are in milliseconds since the epoch. */
export type StoredContact = Omit<StoredLiveness, 'id'>;

export class ContactBlock {
  readonly lastSeen: Float64Array;
  readonly newestSignedAt: Float64Array;
  readonly statuses: string[];
  readonly remoteAddrs: string[];
  /** Neighbors in the list of active contacts, by number. */
  readonly older: Int32Array;
  readonly newer: Int32Array;
  /** Increases along the list of active contacts, from oldest to newest; 0 for an inactive contact. */
  readonly places: Float64Array;
  /** 1 if the contact changed since the last flush. */
  readonly dirty: Uint8Array;
  /** 1 if the certificate was renewed after its last contact with this process. */
  readonly renewed: Uint8Array;
  /**
   * The chain of authority keys that the node knew at its last heartbeat, as a number of `known-chains.ts`. Not stored:
   * every node says it again within an active-node window.
   */
  readonly chains: Uint16Array;

  constructor(rows: number) {
    this.lastSeen = new Float64Array(rows);
    this.newestSignedAt = new Float64Array(rows);
    this.statuses = new Array<string>(rows).fill('');
    this.remoteAddrs = new Array<string>(rows).fill('');
    this.older = new Int32Array(rows);
    this.newer = new Int32Array(rows);
    this.places = new Float64Array(rows);
    this.dirty = new Uint8Array(rows);
    this.renewed = new Uint8Array(rows);
    this.chains = new Uint16Array(rows);
  }
}

export function createContactColumns(rowsBits?: number) {
  return createBlocks((rows) => new ContactBlock(rows), rowsBits);
}
