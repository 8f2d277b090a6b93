/**
 * Ed25519 public keys as OpenSSH writes them: `ssh-ed25519 <base64> [comment]`, where the base64 holds length-prefixed
 * strings.
 */
const TYPE = 'ssh-ed25519';
const KEY_BYTES = 32;

/** The 32 bytes of the key in an OpenSSH line; null if the line is not such a key. */
export function parseOpensshKey(text: string): Buffer | null {
  const [type, blob] = text.trim().split(/\s+/);
  return type === TYPE && blob !== undefined ? keyInBlob(Buffer.from(blob, 'base64')) : null;
}

/** The key in OpenSSH's binary form; null when it is of another type. */
export function keyInBlob(blob: Buffer): Buffer | null {
  const prefix = blob.subarray(0, -KEY_BYTES);
  return prefix.equals(BLOB_PREFIX) ? blob.subarray(-KEY_BYTES) : null;
}

export function blobOfKey(key: Uint8Array): Buffer {
  return Buffer.concat([BLOB_PREFIX, key]);
}

/** A string of the SSH protocols: its length in four bytes, then its bytes. */
export function sshString(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const BLOB_PREFIX = Buffer.concat([sshString(Buffer.from(TYPE)), Buffer.of(0, 0, 0, KEY_BYTES)]);
