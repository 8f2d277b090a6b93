/** Heartbeat sessions as nodes use them, and as somebody would who has none [core-3-4]. */
import { createHmac } from 'node:crypto';
import nacl from 'tweetnacl';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import { jsonText } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { call } from './authority-calls.ts';
import type { Known } from './known.ts';
import { TOLERANCE } from './model/access.ts';
import { signingNow } from './model/authority-keys.ts';
import { beatInSession } from './model/enrollment.ts';
import { pick } from './operator-requests.ts';
import { NODES } from './requests.ts';
import type { Sent } from './sent.ts';
import type { Request } from './steps.ts';
import { insist } from './violation.ts';
import type { World } from './world.ts';

export interface KnownSession {
  readonly certId: string;
  readonly nodeKey: string;
  /** The authority's key when it began. */
  readonly authorityKey: string;
  readonly expiresAt: number;
  readonly key: Uint8Array;
}

type BeatStep = Extract<Request, { do: 'beat' }>;

export const SESSION_LASTS = 3_600_000;
const BOX_KEYS = nacl.box.keyPair.fromSecretKey(Buffer.alloc(32, 7));
export const SESSION_PUBLIC_KEY = base64(BOX_KEYS.publicKey);

/** What a node learns from the answer to a signed heartbeat that asked for a session. */
export function learnSession(
  node: Pick<KnownSession, 'certId' | 'nodeKey'>,
  known: Known,
  world: World,
): void {
  const { certId, nodeKey } = node;
  const { now } = world;
  const offer = world.sessions.begin({ certId, nodePublicKey: nodeKey }, SESSION_PUBLIC_KEY, now);
  if (offer === null) throw new Error(`No session begins for ${certId}`);
  const { current: authorityKey } = signingNow(world.shown.authority);
  const text = `mesh-na session box 1\n${offer.public_key}`;
  insist(
    verifySignature(authorityKey, text, offer.signature),
    () => `The session of ${certId} is not signed by ${authorityKey}`,
  );
  const expiresAt = Date.parse(offer.expires_at);
  insist(expiresAt === now + SESSION_LASTS, () => `A session ends at ${offer.expires_at}`);
  const box = [offer.key_box, offer.nonce, offer.public_key].map((one) =>
    Buffer.from(one, 'base64'),
  );
  const [sealed, nonce, from] = box as [Buffer, Buffer, Buffer];
  const key = nacl.box.open(sealed, nonce, from, BOX_KEYS.secretKey);
  if (key === null) throw new Error(`The session of ${certId} does not open`);
  known.sessions.push({ certId, nodeKey, authorityKey, expiresAt, key });
}

/** Milliseconds from the present. */
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
  const { authorityKey, expiresAt } = session;
  const { certId, nodeKey } = claimed(step, session, known);
  const used = { certId, nodeKey, instant: world.now + MADE_AT[step.instant] };
  const body = { node_public_key: nodeKey, cert_id: certId, status: 'healthy' };
  const text = jsonText(body);
  const instant = formatInstant(used.instant);
  const covered = {
    instant: step.flaw === 'instant' ? formatInstant(used.instant - 1) : instant,
    text: step.flaw === 'body' ? jsonText({ ...body, status: 'unwell' }) : text,
  };
  const key = step.flaw === 'key' ? Buffer.alloc(32) : session.key;
  const mac = createHmac('sha256', key)
    .update(`POST\n/heartbeat\n${covered.instant}\n${covered.text}`)
    .digest('base64');
  const end = formatInstant(expiresAt + (step.flaw === 'end' ? SESSION_LASTS : 0));
  const header = `v1 ${end} ${instant} ${mac}`;
  const isMade = certId === session.certId && nodeKey === session.nodeKey && step.flaw !== 'end';
  const isGenuine = isMade && !['instant', 'body', 'key'].includes(step.flaw);

  function isOfSession(edgeNow: number): boolean {
    const isTimely = Math.abs(edgeNow - used.instant) <= TOLERANCE && edgeNow < expiresAt;
    return isGenuine && isTimely && signingNow(world.shown.authority).current === authorityKey;
  }

  return {
    label: `heartbeat in session ${step.session} (${step.flaw}, ${step.instant})`,
    isSigned: true,
    // The edge refuses what is not of the session by itself.
    judge(edgeNow) {
      const given = { body, remoteAddr: '192.0.2.2', now: edgeNow };
      const raw = Buffer.from(text);
      const node = world.sessions.judge(nodeKey, header, given, raw, TOLERANCE);
      const isWanted = isOfSession(edgeNow);
      insist(
        isWanted === (node.verdict === 'valid'),
        () => `${this.label}: ${node.verdict} at the edge instead of ${isWanted}`,
      );
      if (!isWanted) return null;
      return (authority) =>
        call(authority, 'heartbeat', {
          node,
          certId,
          status: 'healthy',
          wantsBulletin: false,
          authorityKeysDigest: null,
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

/** The certificate and the node that the heartbeat names. */
function claimed(
  { flaw }: BeatStep,
  { certId, nodeKey }: KnownSession,
  { certificates }: Known,
): Pick<KnownSession, 'certId' | 'nodeKey'> {
  const otherCertificate = certificates.findLast(({ id }) => id !== certId)?.id ?? 'unknown';
  const otherNode = NODES.find(({ publicKey }) => publicKey !== nodeKey)?.publicKey ?? '';
  return {
    certId: flaw === 'certificate' ? otherCertificate : certId,
    nodeKey: flaw === 'node' ? otherNode : nodeKey,
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
