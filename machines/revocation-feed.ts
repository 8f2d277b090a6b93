/**
 * The revocation feeds imported from one issuer [service-states-imported-feed]: each must be newer than the one before.
 * Imports accumulate; the revoked ids of each import form one subject (`revocation-import`).
 */
import { assign, emit, setup } from 'xstate';
import { oneRecordMachine } from './one-record.ts';
import { type Refused, refused } from './refused.ts';

export interface ImportedFeed {
  readonly issuer: string;
  /** Decimal digits, because a sequence may exceed the safe integer range. */
  readonly sequence: string;
  readonly feedId: string;
  readonly revokedCount: number;
  /** Milliseconds since the epoch. */
  readonly importedAt: number;
}

type ImportedFeedEvent = {
  readonly type: 'import';
  readonly feed: ImportedFeed;
  /** `valid`, or why no signature of the feed verifies. */
  readonly signature: 'valid' | 'missing_signature' | 'invalid_signature';
};

export type ImportedFeedRefusal =
  | 'stale_sequence'
  | 'missing_feed_signature'
  | 'invalid_feed_signature';

export const revocationFeedMachine = setup({
  types: {} as {
    context: ImportedFeed;
    events: ImportedFeedEvent;
    emitted: Refused<ImportedFeedRefusal> | { readonly type: 'imported' };
  },
  guards: {
    stale: ({ context, event }) => BigInt(event.feed.sequence) <= BigInt(context.sequence),
    unsigned: ({ event }) => event.signature === 'missing_signature',
    signatureFails: ({ event }) => event.signature === 'invalid_signature',
  },
}).createMachine({
  id: 'revocation-feed',
  initial: 'absent',
  context: { issuer: '', sequence: '-1', feedId: '', revokedCount: 0, importedAt: 0 },
  on: {
    import: [
      { guard: 'stale', actions: emit(refused('stale_sequence')) },
      { guard: 'unsigned', actions: emit(refused('missing_feed_signature')) },
      { guard: 'signatureFails', actions: emit(refused('invalid_feed_signature')) },
      {
        target: '.imported',
        actions: [assign(({ event }) => event.feed), emit({ type: 'imported' })],
      },
    ],
  },
  states: { absent: {}, imported: {} },
});

/** The revoked ids of one import. A later import that includes all of them may replace it. */
export interface RevocationImport {
  readonly issuer: string;
  readonly feedId: string;
  readonly sequence: string;
  /** Time of the import, milliseconds since the epoch. */
  readonly revokedAt: number;
  /** JSON texts, each a list of `[id, reason or null]` pairs; sorted by id. */
  readonly rows: readonly string[];
}

export const revocationImportMachine = oneRecordMachine<RevocationImport, 'stored'>({
  id: 'revocation-import',
  none: { issuer: '', feedId: '', sequence: '', revokedAt: 0, rows: [] },
  state: 'stored',
  isFinal: false,
});
