/** Who has signed a record. */
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { type SignedRecord, signedText } from '../../src/protocol/records/signed-record.ts';

/** The public keys under which the signatures verify, in order. */
export function signersOf(
  record: JsonObject,
  candidates: readonly string[],
): (string | undefined)[] {
  const { signatures } = record as SignedRecord;
  const text = signedText(record);
  return signatures.map(({ sig }) => candidates.find((key) => verifySignature(key, text, sig)));
}
