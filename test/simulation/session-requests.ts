/** Heartbeat sessions as nodes use them, and as someone without a session would try to [core-3-4]. */
import { call } from './authority-calls.ts';
import type { Known } from './known.ts';
import { TOLERANCE } from './model/access.ts';
import { signingNow } from './model/authority-keys.ts';
import { beatInSession } from './model/enrollment.ts';
import { pick } from './operator-requests.ts';
import { NODES } from './requests.ts';
import type { Sent } from './sent.ts';
import {
  isOfSession,
  judgeBeat,
  type KnownSession,
  makeBeat,
  openSession,
  SESSION_LASTS,
  SESSION_PUBLIC_KEY,
  type SessionHolder,
} from './session-beats.ts';
import type { Request } from './steps.ts';
import { insist } from './violation.ts';
import type { World } from './world.ts';

type BeatStep = Extract<Request, { do: 'beat' }>;

/** What a node learns from the answer to a signed heartbeat that requested a session. */
export function learnSession(holder: SessionHolder, known: Known, world: World): void {
  const { certId, nodeKey } = holder;
  const { now } = world;
  const offer = world.sessions.begin({ certId, nodePublicKey: nodeKey }, SESSION_PUBLIC_KEY, now);
  if (offer === null) throw new Error(`No session begins for ${certId}`);
  const session = openSession(offer, holder, signingNow(world.shown.authority).current);
  const isAsLong = session.expiresAt === now + SESSION_LASTS;
  insist(isAsLong, () => `A session ends at ${offer.expires_at}`);
  known.sessions.push(session);
}

/** Milliseconds relative to now. */
const MADE_AT: Readonly<Record<BeatStep['instant'], number>> = {
  now: 0,
  earlier: -30_000,
  old: -TOLERANCE,
  stale: -TOLERANCE - 1,
  ahead: TOLERANCE,
  from_the_future: TOLERANCE + 1,
};

export function beatRequest(step: BeatStep, known: Known, world: World): Sent | undefined {
  const session = pick(known.sessions, step.session);
  if (session === undefined) return undefined;
  const instant = world.now + MADE_AT[step.instant];
  const beat = makeBeat(session, { instant, flaw: step.flaw }, another(session, known));
  const { certId, nodeKey } = beat;
  const used = { certId, nodeKey, instant };

  return {
    label: `heartbeat in session ${step.session} (${step.flaw}, ${step.instant})`,
    isSigned: true,
    // The edge itself refuses heartbeats that do not belong to the session.
    judge(edgeNow) {
      const node = judgeBeat(world.sessions, beat, edgeNow);
      const isWanted = isOfSession(beat, edgeNow, signingNow(world.shown.authority).current);
      insist(
        isWanted === (node.verdict === 'valid'),
        () => `${this.label}: ${node.verdict} at the edge instead of ${isWanted}`,
      );
      if (!isWanted) return null;
      return (authority) =>
        call(authority, 'heartbeat', {
          node,
          cert_id: certId,
          status: 'healthy',
          bulletin: false,
          authority_keys_digest: null,
        });
    },
    predict(moment) {
      const outcomes = beatInSession(moment, used, world.instants.verdict(moment, used));
      world.instants.mayBeUsedInSession(used);
      return outcomes;
    },
    begun: () => world.contacts.mayBeHeardOf(certId, world.now),
    learn: (_value, _made, decidedAt) => {
      world.contacts.heardOf(certId, decidedAt, world.now);
      world.instants.acceptedInSession(used);
    },
  };
}

/** The certificate and the node that a forged heartbeat names. */
function another({ certId, nodeKey }: KnownSession, { certificates }: Known): SessionHolder {
  return {
    certId: certificates.findLast(({ id }) => id !== certId)?.id ?? 'unknown',
    nodeKey: NODES.find(({ publicKey }) => publicKey !== nodeKey)?.publicKey ?? '',
  };
}
