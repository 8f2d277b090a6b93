/**
 * The revocation feeds imported from one issuer [service-states-imported-feed]: each must be newer than the one before.
 * Imports accumulate; the revoked ids of each import form one subject (`revocation-import`).
 */
import { emit, setup } from 'xstate';
import type { Refused } from './refused.ts';

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

const machine = setup({
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
});

const signatureChecks = [
  {
    guard: 'unsigned' as const,
    actions: machine.emit({ type: 'refused', refusal: 'missing_feed_signature' }),
  },
  {
    guard: 'signatureFails' as const,
    actions: machine.emit({ type: 'refused', refusal: 'invalid_feed_signature' }),
  },
  {
    target: 'imported',
    actions: [machine.assign(({ event }) => event.feed), machine.emit({ type: 'imported' })],
  },
];

export const revocationFeedMachine = machine.createMachine({
  id: 'revocation-feed',
  initial: 'absent',
  context: { issuer: '', sequence: '-1', feedId: '', revokedCount: 0, importedAt: 0 },
  states: {
    absent: { on: { import: signatureChecks } },
    imported: {
      on: {
        import: [
          { guard: 'stale', actions: emit({ type: 'refused', refusal: 'stale_sequence' }) },
          ...signatureChecks,
        ],
      },
    },
  },
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

type RevocationImportEvent = { readonly type: 'store'; readonly rows: RevocationImport };

const importing = setup({
  types: {} as {
    context: RevocationImport;
    events: RevocationImportEvent;
    emitted: { readonly type: 'stored' };
  },
});

const store = {
  target: 'stored',
  actions: [importing.assign(({ event }) => event.rows), importing.emit({ type: 'stored' })],
};

export const revocationImportMachine = importing.createMachine({
  id: 'revocation-import',
  initial: 'absent',
  context: { issuer: '', feedId: '', sequence: '', revokedAt: 0, rows: [] },
  states: { absent: { on: { store } }, stored: { on: { store } } },
});
