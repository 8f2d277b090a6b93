/** Heartbeat sessions of a fleet's nodes [core-3-4], which are opened before a run. */
import { decodeBase64 } from '../../src/base/crypto/base64.ts';
import { HMAC_KEY_BYTES } from '../../src/base/crypto/hmac.ts';
import {
  BOX_KEY_BYTES,
  BOX_MAC_BYTES,
  BOX_NONCE_BYTES,
  boxKeysFromSeed,
  openBox,
} from '../../src/base/crypto/sealed-box.ts';
import { parseJson } from '../../src/base/json/parse.ts';
import { isJsonObject, type JsonObject } from '../../src/base/json/value.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { errorCode, type Lane, openLane } from './connection.ts';
import {
  bytesOf,
  type FleetNode,
  heartbeatRequest,
  type LoadSession,
  type Place,
} from './requests.ts';

/** The authority limits how many sessions begin in a second. */
const TRIES = 60;
const PAUSE_MS = 1000;

/** Returns a session for each node, in order. */
export async function openSessions(
  nodes: readonly FleetNode[],
  { target, site }: Place,
  connections: number,
): Promise<LoadSession[]> {
  const lanes = await Promise.all(
    Array.from({ length: Math.min(connections, nodes.length) }, () => openLane(target)),
  );
  const sessions = new Map<FleetNode, LoadSession>();
  const waiting = nodes.values();

  async function open(lane: Lane, node: FleetNode): Promise<LoadSession> {
    for (let tried = 0; tried < TRIES; tried += 1) {
      const { publicKey, secretKey } = boxKeysFromSeed(systemRuntime.randomBytes(BOX_KEY_BYTES));
      const asking = { session_public_key: publicKey.toString('base64') };
      const request = heartbeatRequest(node, systemRuntime.now(), asking);
      const { status, text } = await lane.ask(bytesOf(request, site));
      if (status !== 200) {
        throw new Error(`A heartbeat was answered ${errorCode(status, Buffer.from(text))}`);
      }
      const session = sessionIn(text, secretKey);
      if (session !== null) return session;
      await systemRuntime.pause(PAUSE_MS);
    }
    throw new Error('The authority begins no heartbeat sessions (MESH_HEARTBEAT_SESSION)');
  }

  async function openOn(lane: Lane): Promise<void> {
    for (const node of waiting) sessions.set(node, await open(lane, node));
  }

  try {
    await Promise.all(lanes.map(openOn));
  } finally {
    for (const { close } of lanes) close();
  }
  return nodes.flatMap((node) => sessions.get(node) ?? []);
}

function sessionIn(answer: string, secretKey: Buffer): LoadSession | null {
  const value = parseJson(answer);
  const offer = isJsonObject(value) ? value.session : undefined;
  return isJsonObject(offer) ? opened(offer, secretKey) : null;
}

function opened(offer: JsonObject, secretKey: Buffer): LoadSession | null {
  const box = decodeBase64(String(offer.key_box), BOX_MAC_BYTES + HMAC_KEY_BYTES);
  const nonce = decodeBase64(String(offer.nonce), BOX_NONCE_BYTES);
  const sender = decodeBase64(String(offer.public_key), BOX_KEY_BYTES);
  if (box === null || nonce === null || sender === null) return null;
  const key = openBox(box, nonce, sender, secretKey);
  return key && { key, expiresAt: String(offer.expires_at) };
}
