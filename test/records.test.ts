import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { readJoinCertificate } from '../src/protocol/records/join-certificate.ts';
import { readPolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import { readCertificateRevocationList } from '../src/protocol/records/revocation-list.ts';
import {
  isSignedByAny,
  type SignedRecord,
  signedText,
} from '../src/protocol/records/signed-record.ts';
import { PROJECT } from './support/project.ts';

const readers = {
  JoinCertificate: readJoinCertificate,
  GenesisBlock: readGenesisBlock,
  PolicyManifest: readPolicyManifest,
  CertificateRevocationList: readCertificateRevocationList,
};
type RecordName = keyof typeof readers;

const source = readFileSync(new URL('test/vectors/own_wire_core.json', PROJECT), 'utf8');
const { vectors } = parseJson(source) as { vectors: { records: JsonObject[] } };
const cases = vectors.records.filter((entry) => String(entry.record) in readers);

test('the vectors contain a case for each record read here', () => {
  assert.deepEqual(new Set(cases.map((entry) => entry.record)), new Set(Object.keys(readers)));
});

for (const entry of cases) {
  test(`a received ${entry.record} is normalized to the signed text (${entry.note || 'as is'})`, () => {
    const record = readers[entry.record as RecordName](entry.received) as SignedRecord | null;
    assert.ok(record !== null);
    assert.equal(signedText(record), entry.canonical);
    assert.equal(isSignedByAny(record, [String(entry.public_key_b64)], verifySignature), true);
  });

  test(`a ${entry.record} with one changed member no longer verifies`, () => {
    const received = entry.received as JsonObject;
    const member =
      'issued_by' in received ? 'issued_by' : 'issuer' in received ? 'issuer' : 'network_name';
    const record = readers[entry.record as RecordName]({ ...received, [member]: 'someone' });
    assert.ok(record !== null, jsonText(received));
    assert.equal(
      isSignedByAny(record as SignedRecord, [String(entry.public_key_b64)], verifySignature),
      false,
    );
  });
}
