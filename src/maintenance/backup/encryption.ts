/** Encrypts backups with age, for recipients whose identities need not be on this machine. */
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { saysPrivate } from '../../base/keys/read-key.ts';

export interface Encryption {
  encrypt(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>>;
  /** Decrypts with a temporary key that is never stored, so that the written file can be read back once. */
  readBack(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>>;
}

/** Throws if a recipient is not valid. */
export async function encryptionFor(recipients: readonly string[]): Promise<Encryption> {
  const passing = await generateX25519Identity();
  const encrypter = new Encrypter();
  for (const recipient of [...recipients, await identityToRecipient(passing)]) {
    try {
      encrypter.addRecipient(recipient);
    } catch {
      const given = saysPrivate(recipient) ? 'A private key' : recipient;
      throw new Error(`${given} is not an age recipient, which begins with age1`);
    }
  }
  return {
    encrypt: async (bytes) => encrypter.encrypt(asStream(bytes)),
    readBack: (bytes) => decrypted(bytes, [passing]),
  };
}

/** Throws if none of the identities can decrypt it. */
export async function decrypted(
  bytes: AsyncIterable<Uint8Array>,
  identities: readonly string[],
): Promise<AsyncIterable<Uint8Array>> {
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  return decrypter.decrypt(asStream(bytes));
}

const AGE_MARK = Buffer.from('age-encryption.org/');

/** Whether the first bytes of a file show that it is encrypted. */
export function isEncrypted(start: Uint8Array): boolean {
  return Buffer.from(start.subarray(0, AGE_MARK.length)).equals(AGE_MARK);
}

function asStream(bytes: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  return ReadableStream.from(copied(bytes)) as ReadableStream<Uint8Array>;
}

/** A stream may transfer the memory of its chunks, which small buffers share with others. */
async function* copied(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) yield new Uint8Array(chunk);
}
