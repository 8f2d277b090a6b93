/**
 * The revocation list of an instance that waits for its turn, and that follows the list while another instance writes
 * it.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Certificate } from '../machines/certificate.ts';
import { CRL_ID, createRevocations, crlEntry } from '../src/authority/lists/crl.ts';
import { crlDigest } from '../src/authority/lists/stored-lists.ts';
import type { UnitOfWork } from '../src/authority/subjects/unit-of-work.ts';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { withoutPause } from '../src/base/work.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
  documentText,
} from '../src/protocol/contract/documents.ts';
import { soleSigner } from '../src/protocol/records/signed-record.ts';

const SIGNER = soleSigner(signerFromSeed(Buffer.alloc(32, 7)), 'na');

interface Revoked {
  readonly id: string;
  readonly sequence: number;
}

test('it equals the list read at once, regardless of how reads were grouped and ordered', () => {
  const unit = fc.record({ revoked: fc.integer({ min: 1, max: 4 }), endsReading: fc.boolean() });
  const units = fc.array(unit, { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(units, (given) => assertSame(given)),
    { numRuns: 50 },
  );
  assertSame([
    { revoked: 2500, endsReading: true },
    { revoked: 1, endsReading: true },
    { revoked: 1001, endsReading: false },
  ]);
});

function assertSame(
  units: readonly { readonly revoked: number; readonly endsReading: boolean }[],
): void {
  const readings: Revoked[][] = [[]];
  for (const [at, { revoked, endsReading }] of units.entries()) {
    const rows = Array.from({ length: revoked }, (_, n) => ({
      id: `${String(n).padStart(5, '0')}-${at}`,
      sequence: at + 1,
    }));
    // Rows arrive in any order.
    readings.at(-1)?.unshift(...(at % 2 === 0 ? rows : rows.toReversed()));
    if (endsReading) readings.push([]);
  }
  const ordered = readings
    .flat()
    .toSorted((a, b) => a.sequence - b.sequence || (a.id < b.id ? -1 : 1));
  assert.equal(listOf(readings, ordered), listOf([ordered], ordered));
}

/** The document published at the takeover; `ordered` is what the stored version covers. */
function listOf(readings: readonly (readonly Revoked[])[], ordered: readonly Revoked[]): string {
  const publisher = createDocumentPublisher();
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const revocations = createRevocations({
    signer: SIGNER,
    issuerOf: () => SIGNER.publicKey,
    issuers: () => [SIGNER.publicKey],
    revoked: () => null,
    publisher,
    threads: null,
    uuid: () => 'never',
    assertSigner: () => undefined,
  });
  for (const reading of readings) {
    for (const { id, sequence } of reading) {
      const context = { revokedAt: 0, revocationReason: null, crlSequence: sequence };
      revocations.decided('certificate', id, {
        value: 'revoked',
        context: context as unknown as Certificate,
      });
    }
    withoutPause(revocations.list.takeLoaded());
    assert.equal(documents.latest('crl'), undefined, 'a waiting instance publishes nothing');
  }
  revocations.list.endLoading();
  const entries = ordered.map(({ id }) => crlEntry(SIGNER.publicKey, id, 0, 'unspecified'));
  const version = {
    sequence: ordered.at(-1)?.sequence ?? 0,
    crlId: CRL_ID,
    issuedAt: 0,
    nextUpdate: 1,
    digest: crlDigest(SIGNER.publicKey, entries),
  };
  revocations.list.restore(unitWith(version));
  const list = documents.latest('crl');
  assert.ok(list !== undefined);
  return documentText(list);
}

/** What a list needs from the unit in which it is republished. */
function unitWith(version: object): UnitOfWork {
  const unit: Pick<UnitOfWork, 'current' | 'whenCommitted'> = {
    current: () => ({ context: version }) as never,
    whenCommitted: (work) => void work(),
  };
  return unit as unknown as UnitOfWork;
}
