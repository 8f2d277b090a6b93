/**
 * Our own revocation feed as a sequence of signed versions (wire rules 4.14, G24): one more for each
 * newly revoked attestation of the issuer. Its entries are the revoked attestations themselves.
 */
import { setup } from 'xstate';

export interface SovereignFeed {
  readonly issuer: string;
  readonly sequence: number;
  readonly feedId: string;
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  /** Hex SHA-256 of the signed text, so that a rebuilt feed can be checked against it. */
  readonly digest: string;
}

export type SovereignFeedEvent = { readonly type: 'publish'; readonly version: SovereignFeed };

const machine = setup({
  types: {} as {
    context: SovereignFeed;
    events: SovereignFeedEvent;
    emitted: { readonly type: 'published' };
  },
  guards: {
    followsTheLast: ({ context, event }) => event.version.sequence === context.sequence + 1,
  },
});

const publish = {
  guard: 'followsTheLast' as const,
  target: 'published',
  actions: [machine.assign(({ event }) => event.version), machine.emit({ type: 'published' })],
};

export const sovereignFeedMachine = machine.createMachine({
  id: 'sovereign-feed',
  initial: 'absent',
  context: { issuer: '', sequence: 0, feedId: '', issuedAt: 0, digest: '' },
  states: { absent: { on: { publish } }, published: { on: { publish } } },
});
