/** What follows the revocation list has it: clients by additions since a version [core-5-5-1], and waiting instances. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, suite, test } from 'node:test';
import fc from 'fast-check';
import type { Certificate } from '../machines/certificate.ts';
import {
  CRL_ID,
  createRevisionLog,
  createRevocations,
  crlEntry,
} from '../src/authority/lists/crl.ts';
import { crlDigest } from '../src/authority/lists/stored-lists.ts';
import type { UnitOfWork } from '../src/authority/subjects/unit-of-work.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { withoutPause } from '../src/base/work.ts';
import { keyFromSeed, signText, verifyText } from '../src/client/keys.ts';
import { createVerifier } from '../src/client/offline.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { portableSha256 } from '../src/client/sha256.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
  createRevisionEnds,
  documentText,
  endOf,
  KEPT_REVISIONS,
} from '../src/protocol/contract/documents.ts';
import type { CertificateRevocationList } from '../src/protocol/records/revocation-list.ts';
import {
  readRevocationListDelta,
  revisionText,
} from '../src/protocol/records/revocation-list-delta.ts';
import { soleSigner } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { PROJECT } from './support/project.ts';
import { get, joinedNodes, operate, outcome, send } from './support/requests.ts';

const REVOCATIONS = 60;
const LONG = { max_validity_hours: 8760 };

suite('what was added to the revocation list', () => {
  let na: TestAuthority;
  after(() => na[Symbol.asyncDispose]());

  test('leads from any version to the list, digest for digest and byte for byte', async () => {
    na = await startTestAuthority({ listThreadFrom: 30 });
    const nodes = await joinedNodes(na, REVOCATIONS, LONG);
    const first = JSON.parse((await get(na, '/crl')).text) as CertificateRevocationList;
    const readers = Array.from({ length: 6 }, () => first);
    let seed = 1;
    for (const [index, node] of nodes.entries()) {
      await operate(na, '/admin/revoke', { cert_id: node.certId });
      if (index % 15 === 14) await reissue(na);
      if (index === 40) na = await na.restart();
      for (const reader of readers.keys()) {
        seed = (seed * 48_271) % 2_147_483_647;
        if (seed % 8 !== 0) continue;
        readers[reader] = await continued(na, readers[reader] ?? first);
      }
    }
    const { text } = await get(na, '/crl');
    for (const reader of [...readers, first]) {
      assert.ok(canonicalJson(await continued(na, reader)) === text, 'not the published list');
    }
    const { sequence } = JSON.parse(text);
    assert.equal(sequence, REVOCATIONS + 4);
    assert.equal((await get(na, `/crl?since=${sequence}`)).body.added.length, 0);
  });

  test('is signed, and small', async (t) => {
    const { text, body } = await get(na, '/crl?since=0');
    const delta = readRevocationListDelta(body);
    assert.ok(delta);
    assert.equal(canonicalJson(body), text);
    assert.equal(verifyText(na.audience, revisionText(delta), delta.signature.sig), true);
    assert.equal(delta.added.length, REVOCATIONS);
    t.diagnostic(`${REVOCATIONS} revocations: ${text.length} bytes`);
    assert.ok(text.length < 200 * REVOCATIONS);
  });

  test('is the same for all clients, also compressed, until there is more', async () => {
    const headers = { 'accept-encoding': 'gzip' };
    const one = await send(na, 'GET', '/crl?since=3', { headers });
    const plain = await send(na, 'GET', '/crl?since=3', {
      headers: { 'accept-encoding': 'identity' },
    });
    assert.equal(one.headers.get('content-encoding'), 'gzip');
    assert.equal(one.text, plain.text);
    const etag = plain.headers.get('etag') ?? '';
    const held = await send(na, 'GET', '/crl?since=3', { headers: { 'if-none-match': etag } });
    assert.equal(held.status, 304);
    const other = await send(na, 'GET', '/crl?since=4', { headers: { 'if-none-match': etag } });
    assert.equal(other.status, 200);
  });

  test('also leads to a list that is too long to be kept, which is sent in pieces', async () => {
    const { text: before } = await get(na, '/crl');
    const nodes = await joinedNodes(na, 4 * REVOCATIONS, LONG);
    await Promise.all(nodes.map(({ certId }) => operate(na, '/admin/revoke', { cert_id: certId })));
    const delta = await send(na, 'GET', `/crl?since=${JSON.parse(before).sequence}`);
    assert.equal(delta.headers.get('etag'), null);
    assert.equal(canonicalJson(delta.body), delta.text);
    const { text } = await get(na, '/crl');
    assert.ok(canonicalJson(await continued(na, JSON.parse(before))) === text);
  });

  test('is refused for an invalid version', async () => {
    for (const since of ['-1', '1.0', '1e3', 'x', '99999999999999999999', '%C3%A4']) {
      assert.equal(outcome(await get(na, `/crl?since=${since}`)), '400 invalid_since', since);
    }
    const ahead = await get(na, '/crl?since=1000');
    assert.equal(outcome(ahead), '409 since_ahead');
    assert.deepEqual(ahead.body.error.details, { sequence: 5 * REVOCATIONS + 4 });
  });

  test('is refused by a reader if it does not match, or was altered', async () => {
    const { readSovereign, crl, crlSince } = createPublicClient({ url: na.url });
    assert.equal((await readSovereign()).network_authority.public_key, na.audience);
    const list = await crl();
    const verifier = createVerifier({ now: na.clock.now });
    const held = {
      ...list,
      sequence: 1,
      revoked_certificates: list.revoked_certificates.slice(0, 1),
    };
    const delta = await crlSince(1);
    const reasonOf = (given: unknown, over: unknown = held, key = na.audience) =>
      verifier.revocationListDelta(given, over, key).reason;
    assert.equal(reasonOf(delta), 'valid');
    assert.equal(reasonOf({ ...delta, added: delta.added.slice(1) }), 'wrong_digest');
    assert.equal(reasonOf({ ...delta, removed: ['x'] }), 'wrong_digest');
    assert.equal(reasonOf({ ...delta, sequence: 7 }), 'invalid_signature');
    assert.equal(reasonOf({ ...delta, base_sequence: 2 }), 'other_base');
    assert.equal(reasonOf(delta, { ...held, sequence: 2 }), 'other_base');
    assert.equal(
      reasonOf(delta, held, keyFromSeed(new Uint8Array(32)).publicKey),
      'invalid_signature',
    );
    assert.equal(reasonOf({ ...delta, added: 1 }), 'malformed');
    na.clock.advance(25 * HOUR);
    assert.equal(reasonOf(delta), 'stale');
  });
});

test('can start at any of the last 10,000 versions, and at none before them', () => {
  const ends = createRevisionEnds();
  const log = createRevisionLog(ends);
  const entries = Array.from({ length: 30_000 }, (_, index) => ({
    sequence: index + 1,
    entry: { id: `${index}`, text: 'abc' },
  }));
  log.appended(entries.slice(0, 20_000));
  log.issued(20_000);
  for (const numbered of entries.slice(20_000)) {
    log.appended([numbered]);
    log.issued(numbered.sequence);
  }
  for (let sequence = 30_000 - KEPT_REVISIONS; sequence <= 30_000; sequence += 1) {
    assert.equal(endOf(ends, sequence), 4 * sequence - 1);
  }
});

test('the vectors of a delta are valid', async () => {
  const { keys, revocation_list_delta: vector } = JSON.parse(
    readFileSync(new URL('test/vectors/fleet.json', PROJECT), 'utf8'),
  ).vectors;
  const key = keyFromSeed(Buffer.from(keys.authority.seed_base64, 'base64'));
  assert.equal(key.publicKey, keys.authority.public_base64);
  const delta = readRevocationListDelta(JSON.parse(vector.delta));
  assert.ok(delta);
  assert.equal(revisionText(delta), vector.signed_text);
  assert.equal(await signText(key, vector.signed_text), delta.signature.sig);
  assert.equal(portableSha256.hex(vector.digest_input), delta.entries_digest);
  const now = () => Date.parse('2026-01-01T12:00:00Z');
  const verifier = createVerifier({ now });
  const { reason, list } = verifier.revocationListDelta(vector.delta, vector.held, key.publicKey);
  assert.equal(reason, 'valid');
  assert.equal(canonicalJson(list), vector.list);
  assert.equal(verifier.revocationList(vector.list, key.publicKey), 'valid');
});

async function continued(
  { url, audience, clock }: TestAuthority,
  held: CertificateRevocationList,
): Promise<CertificateRevocationList> {
  const delta = await createPublicClient({ url }).crlSince(held.sequence);
  assert.equal(delta.base_sequence, held.sequence);
  const verifier = createVerifier({ verify: verifySignature, now: clock.now });
  const { reason, list } = verifier.revocationListDelta(delta, held, audience);
  assert.equal(reason, 'valid');
  assert.ok(list);
  return list;
}

async function reissue(na: TestAuthority): Promise<void> {
  na.clock.advance(12 * HOUR);
  await na.renewLists();
}

// The revocation list of an instance that waits for its turn, and that follows the list while another instance writes
// it.

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
