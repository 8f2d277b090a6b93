/**
 * An operator's key in ssh-agent. The agent signs plain Ed25519 over the same bytes as a key file would, and the
 * secret never leaves it (draft-ietf-sshm-ssh-agent).
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { messageOf } from '../../base/error-message.ts';
import { blobOfKey, keyInBlob, sshString } from '../../base/keys/read-key.ts';
import type { SigningKey } from '../../client/keys.ts';
import { EXIT, failure } from '../kernel/errors.ts';

const REQUEST_IDENTITIES = 11;
const IDENTITIES_ANSWER = 12;
const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;

/** The message size limit of OpenSSH's agent. */
const MOST_BYTES = 256 * 1024;
const SIGNATURE_BYTES = 64;

/** The agent's key with this base64 public key; without one, its only Ed25519 key. */
export async function agentKey(socket: string, wanted: string | undefined): Promise<SigningKey> {
  const held = await heldKeys(socket);
  const publicKey = chosen(held, wanted);
  const blob = blobOfKey(Buffer.from(publicKey, 'base64'));
  return {
    publicKey,
    async sign(bytes) {
      const flags = Buffer.alloc(4);
      const request = Buffer.concat([sshString(blob), sshString(bytes), flags]);
      const answer = await ask(socket, SIGN_REQUEST, request, SIGN_RESPONSE);
      // The string contains the name of the algorithm and the signature.
      return answer.subarray(-SIGNATURE_BYTES);
    },
  };
}

/** Base64 public keys. */
async function heldKeys(socket: string): Promise<string[]> {
  const answer = await ask(socket, REQUEST_IDENTITIES, Buffer.alloc(0), IDENTITIES_ANSWER);
  const count = answer.readUInt32BE(0);
  const keys: string[] = [];
  let at = 4;
  for (let i = 0; i < count; i += 1) {
    const blob = stringAt(answer, at);
    at += 4 + blob.length;
    at += 4 + stringAt(answer, at).length;
    const key = keyInBlob(blob);
    if (key !== null) keys.push(key.toString('base64'));
  }
  return keys;
}

function chosen(held: readonly string[], wanted: string | undefined): string {
  if (wanted !== undefined) {
    if (held.includes(wanted)) return wanted;
    throw unusable(`The agent does not have the key ${wanted}`);
  }
  const [only, ...others] = held;
  if (only === undefined) throw unusable('The agent has no Ed25519 key');
  if (others.length > 0) {
    throw unusable(`The agent has ${held.length} Ed25519 keys; choose one with --agent-key`);
  }
  return only;
}

/** Sends one request on a separate connection; the agent may wait for a person to confirm. */
async function ask(
  socket: string,
  type: number,
  payload: Uint8Array,
  expected: number,
): Promise<Buffer> {
  const message = sshString(Buffer.concat([Buffer.of(type), payload]));
  if (message.length > MOST_BYTES) {
    throw unusable('The request is too long for the agent, which signs at most 256 KiB');
  }
  let answer: Buffer;
  try {
    answer = await exchanged(socket, message);
  } catch (cause) {
    throw unusable(`The agent at ${socket} does not answer (${messageOf(cause)})`);
  }
  if (answer[0] !== expected) throw unusable('The agent refused to sign');
  return answer.subarray(1);
}

async function exchanged(socket: string, message: Buffer): Promise<Buffer> {
  const connection = connect(socket);
  try {
    await once(connection, 'connect');
    connection.write(message);
    let received = Buffer.alloc(0);
    for await (const piece of connection) {
      received = Buffer.concat([received, piece as Buffer]);
      if (received.length < 4) continue;
      const length = received.readUInt32BE(0);
      if (length > MOST_BYTES) throw new Error('its answer is too long');
      if (received.length >= 4 + length) return received.subarray(4, 4 + length);
    }
    throw new Error('it closed the connection');
  } finally {
    connection.destroy();
  }
}

function stringAt(bytes: Buffer, at: number): Buffer {
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at));
}

function unusable(message: string) {
  return failure(EXIT.unusable, 'agent_unusable', message);
}
