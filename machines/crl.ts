/**
 * The certificate revocation list as a sequence of signed versions (wire rules 4.8, 4.15, G27). One
 * sequence number never names two contents: a version only follows the one before it, by one.
 */
import { emit, setup } from 'xstate';

/** Instants are milliseconds since the epoch. The entries are the revoked certificates themselves. */
export interface Crl {
  readonly sequence: number;
  readonly crlId: string;
  readonly issuedAt: number;
  readonly nextUpdate: number;
  /** Hex SHA-256 over issuer and entries, so that a rebuilt document can be checked against it. */
  readonly digest: string;
}

export type CrlEvent =
  | { readonly type: 'publish'; readonly version: Crl }
  | { readonly type: 'lapse'; readonly at: number };

const none: Crl = { sequence: -1, crlId: '', issuedAt: 0, nextUpdate: 0, digest: '' };

const machine = setup({
  types: {} as {
    context: Crl;
    events: CrlEvent;
    emitted: { readonly type: 'published' | 'lapsed' | 'current' };
  },
  guards: {
    followsTheLast: ({ context, event }) =>
      event.type === 'publish' && event.version.sequence === context.sequence + 1,
    pastNextUpdate: ({ context, event }) =>
      event.type === 'lapse' && context.nextUpdate <= event.at,
  },
});

const publish = {
  guard: 'followsTheLast' as const,
  target: 'current',
  actions: [
    machine.assign(({ event }) => (event.type === 'publish' ? event.version : {})),
    machine.emit({ type: 'published' as const }),
  ],
};

export const crlMachine = machine.createMachine({
  id: 'crl',
  initial: 'absent',
  context: none,
  states: {
    absent: { on: { publish, lapse: { target: 'lapsed', actions: emit({ type: 'lapsed' }) } } },
    current: {
      on: {
        publish,
        lapse: [
          { guard: 'pastNextUpdate', target: 'lapsed', actions: emit({ type: 'lapsed' }) },
          { actions: emit({ type: 'current' }) },
        ],
      },
    },
    lapsed: { on: { publish } },
  },
});
