/**
 * The versions of a signed list [core-4-8], [core-4-14], [core-4-15], [core-g24], [core-g27]. A sequence number never
 * identifies two different contents: each version is one above its predecessor. A list is due for re-issue at half its
 * lifetime, long before a reader would refuse it as stale, and when it is dated ahead, because the clock was.
 */
import { assertEvent, setup } from 'xstate';

/** The clocks of two instances, and a clock before and after a small correction, differ by less, in milliseconds. */
const LEAST_AHEAD = 1000;

/** Instants are milliseconds since the epoch. The entries are subjects of their own. */
export interface SequenceVersion {
  readonly sequence: number;
  readonly issuedAt: number;
  /** Digest of the entries, so that a rebuilt list can be checked. */
  readonly digest: string;
}

export type SequenceEvent<Version extends SequenceVersion> =
  | { readonly type: 'publish'; readonly version: Version }
  /** A restore continues above every number that could have been published since the backup [backup-7]. */
  | { readonly type: 'resume'; readonly version: Version }
  | { readonly type: 'lapse'; readonly at: number };

interface SequenceMachineOptions<Version extends SequenceVersion> {
  readonly id: string;
  /** The state before the first version. */
  readonly none: Version;
  /** The sequence numbers that a first version may have. */
  readonly firsts: readonly number[];
  /** The state of a list that has been published. */
  readonly published: 'current' | 'published';
  /** The instant at which half of the version's lifetime is over. */
  halfOver(version: Version): number;
}

export function sequenceMachine<Version extends SequenceVersion>(
  options: SequenceMachineOptions<Version>,
) {
  const { id, none, firsts, published, halfOver } = options;
  const list = setup({
    types: {} as {
      context: Version;
      events: SequenceEvent<Version>;
      emitted: { readonly type: 'published' | 'lapsed' | 'current' };
    },
    guards: {
      isFirst: ({ event }) => {
        assertEvent(event, 'publish');
        return firsts.includes(event.version.sequence);
      },
      followsTheLast: ({ context, event }) => {
        assertEvent(event, 'publish');
        return event.version.sequence === context.sequence + 1;
      },
      isAbove: ({ context, event }) => {
        assertEvent(event, 'resume');
        return event.version.sequence > context.sequence;
      },
      lapsed: ({ context, event }) => {
        assertEvent(event, 'lapse');
        return halfOver(context) <= event.at || context.issuedAt > event.at + LEAST_AHEAD;
      },
    },
  });
  const publish = [
    list.assign(({ event }) => {
      assertEvent(event, ['publish', 'resume']);
      return event.version;
    }),
    list.emit({ type: 'published' }),
  ];
  return list.createMachine({
    id,
    initial: 'absent',
    context: none,
    on: { resume: { guard: 'isAbove', target: `.${published}`, actions: publish } },
    states: {
      absent: {
        on: {
          publish: { guard: 'isFirst', target: published, actions: publish },
          lapse: { actions: list.emit({ type: 'lapsed' }) },
        },
      },
      [published]: {
        on: {
          publish: { guard: 'followsTheLast', actions: publish },
          lapse: [
            { guard: 'lapsed', actions: list.emit({ type: 'lapsed' }) },
            { actions: list.emit({ type: 'current' }) },
          ],
        },
      },
    },
  });
}

/**
 * The certificate revocation list: its entries are the revoked certificates [core-4-8], [core-4-15],
 * [core-5-5].
 */
export interface Crl extends SequenceVersion {
  readonly crlId: string;
  readonly nextUpdate: number;
}

export const crlMachine = sequenceMachine<Crl>({
  id: 'crl',
  none: { sequence: -1, crlId: '', issuedAt: 0, nextUpdate: 0, digest: '' },
  firsts: [0],
  published: 'current',
  halfOver: ({ issuedAt, nextUpdate }) => (issuedAt + nextUpdate) / 2,
});

/**
 * A revocation feed signed by this authority [core-4-14], [core-g24]: its entries are the attestations of one issuer
 * that were revoked here.
 */
export interface SovereignFeed extends SequenceVersion {
  readonly issuer: string;
  readonly feedId: string;
}

/** Gateways refuse a feed that is older than a day. */
const HALF_DAY = 12 * 3_600_000;

export const sovereignFeedMachine = sequenceMachine<SovereignFeed>({
  id: 'sovereign-feed',
  none: { issuer: '', sequence: -1, feedId: '', issuedAt: 0, digest: '' },
  // Our own feed starts empty, at 0; a feed for another issuer starts with the first revoked attestation.
  firsts: [0, 1],
  published: 'published',
  halfOver: ({ issuedAt }) => issuedAt + HALF_DAY,
});
