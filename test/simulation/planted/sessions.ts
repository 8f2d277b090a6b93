/** Defects in heartbeat sessions. */
import type { HeartbeatSessions } from '../../../src/edge/auth/session.ts';
import type { Store } from '../../../src/store/store.ts';
import type { CallOf, OpenAuthority } from '../authority-calls.ts';
import type { Defect } from '../process.ts';
import { type Defects, inAuthority } from './planted.ts';

export const UNCHECKED_MAC = {
  sessions: judging((judge, given) => ({ ...judge(...given), verdict: 'valid' })),
};

/** The instants of session heartbeats are not kept. */
export const FORGOTTEN_INSTANTS = {
  store: (store: Store): Store => ({
    ...store,
    touchMany: (rows, times) =>
      store.touchMany(
        rows.map((row) => ({ ...row, newestSignedAt: 0 })),
        times,
      ),
  }),
};

const DEFECTS: Defects = [
  ['an edge that does not check the MAC', UNCHECKED_MAC, /valid at the edge instead of false/],
  [
    'an edge for which sessions do not end',
    {
      sessions: judging((judge, [key, header, beat, ...given]) => {
        const now = Date.parse(header.split(' ')[2] ?? '');
        return judge(key, header, { ...beat, now }, ...given);
      }),
    },
    /valid at the edge instead of false/,
  ],
  [
    'sessions that outlast the key of the authority',
    {
      sessions: (sessions) => {
        let isSet = false;
        return {
          ...sessions,
          use(secret) {
            if (!isSet) sessions.use(secret);
            isSet = secret !== null;
          },
        };
      },
    },
    /is not signed by|valid at the edge instead of false/,
  ],
  [
    'an authority that takes every instant for a new one',
    { authority: hurrying },
    /ended otherwise than session_ended/,
  ],
  [
    'instants that are not kept',
    FORGOTTEN_INSTANTS,
    /in session .* ended otherwise than session_ended/,
  ],
];

export const PLANTED_IN_SESSIONS = inAuthority(DEFECTS, { histories: 200, successions: 3 });

type Judge = HeartbeatSessions['judge'];

function judging(
  other: (judge: Judge, given: Parameters<Judge>) => ReturnType<Judge>,
): NonNullable<Defect['sessions']> {
  return (sessions) => ({ ...sessions, judge: (...given) => other(sessions.judge, given) });
}

/** Gives each session heartbeat a later instant than the one before. */
function hurrying(authority: OpenAuthority): OpenAuthority {
  let beats = 0;
  return {
    ...authority,
    call(name, given) {
      if (name !== 'heartbeat') return authority.call(name, given);
      const { node, ...further } = given as CallOf<'heartbeat'>;
      if (node.nonce !== null) return authority.call(name, given);
      beats += 1;
      const later = { ...further, node: { ...node, signedAt: node.signedAt + beats } };
      return authority.call(name, later as typeof given);
    },
  };
}
