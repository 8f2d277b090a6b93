/** Records as they are received: normalized to the signed text, and members of which `null` and absence mean the same [core-1-4]. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import Type, { type TObject, type TSchema } from 'typebox';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { AgentDescriptor } from '../src/protocol/records/agent-descriptor.ts';
import {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
} from '../src/protocol/records/agreement.ts';
import { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import { BoundaryDecision, FreshnessProof } from '../src/protocol/records/boundary-decision.ts';
import { Bulletin } from '../src/protocol/records/bulletin.ts';
import {
  CapabilityCommitment,
  CapabilityNullifier,
} from '../src/protocol/records/capability-disclosure.ts';
import { ConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import { DataAccessIntent, DataLicensePolicy } from '../src/protocol/records/data-usage.ts';
import { GenesisBlock, readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { JoinCertificate, readJoinCertificate } from '../src/protocol/records/join-certificate.ts';
import { PolicyManifest, readPolicyManifest } from '../src/protocol/records/policy-manifest.ts';
import { MembershipAttestation, RecognitionTreaty } from '../src/protocol/records/recognition.ts';
import { recordReader } from '../src/protocol/records/record.ts';
import { SovereignRevocationFeed } from '../src/protocol/records/revocation-feed.ts';
import {
  CertificateRevocationList,
  readCertificateRevocationList,
} from '../src/protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../src/protocol/records/revocation-list-delta.ts';
import {
  isSignedByAny,
  type SignedRecord,
  signedText,
} from '../src/protocol/records/signed-record.ts';
import { StateHead } from '../src/protocol/records/state-head.ts';
import { SuccessionRequest } from '../src/protocol/records/succession-request.ts';
import { TrustEvidence } from '../src/protocol/records/trust-evidence.ts';
import { JustificationProof, ValidatorVote } from '../src/protocol/records/validator-vote.ts';
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

// Members of signed records of which `null` and absence mean the same [core-1-4].

const RECORDS: { readonly [name: string]: TObject } = {
  AgentDescriptor,
  AgreementRecord,
  AuthoritySuccession,
  BoundaryDecision,
  Bulletin,
  CapabilityCommitment,
  CapabilityCounter,
  CapabilityNullifier,
  CapabilityOffer,
  CertificateRevocationList,
  ConsensusProof,
  DataAccessIntent,
  DataLicensePolicy,
  FreshnessProof,
  GenesisBlock,
  JoinCertificate,
  JustificationProof,
  MembershipAttestation,
  PolicyManifest,
  RecognitionTreaty,
  RevocationListDelta,
  SovereignRevocationFeed,
  StateHead,
  SuccessionRequest,
  TrustEvidence,
  ValidatorVote,
};

/** The decision for each such member: written as null, or left out of the signed text. */
const DECIDED: { readonly [record: string]: { readonly [member: string]: 'null' | 'left out' } } = {
  AuthoritySuccession: { distrusted_from: 'null' },
  BoundaryDecision: {
    denial_reason: 'null',
    freshness_proof: 'null',
    'freshness_proof.signature': 'null',
    policy_binding: 'left out',
    attestation_binding: 'left out',
  },
  Bulletin: { policy_id: 'null', authority_keys_digest: 'left out' },
  ConsensusProof: {
    'votes.reason': 'null',
    'votes.context_digest': 'null',
    'votes.signature': 'null',
    cascade_assessment_digest: 'null',
  },
  DataAccessIntent: { estimated_volume_bytes: 'null' },
  DataLicensePolicy: { max_volume_bytes_per_session: 'null' },
  GenesisBlock: { 'policy_manifest.url': 'null' },
  JustificationProof: { 'trace.short_circuited_at': 'null' },
  MembershipAttestation: { subject_public_key: 'null' },
  SuccessionRequest: {
    'genesis.policy_manifest.url': 'null',
    'successions.distrusted_from': 'null',
    'statement.distrusted_from': 'null',
    roll_back: 'null',
    'roll_back.distrusted_from': 'null',
  },
  ValidatorVote: { reason: 'null', context_digest: 'null' },
};

/** The members of a schema, at every level, that may be null or absent. */
function optionalMembers(schema: TSchema, path = ''): [string, 'null' | 'left out'][] {
  if (Type.IsArray(schema)) return optionalMembers(schema.items, path);
  if (Type.IsUnion(schema)) return schema.anyOf.flatMap((of) => optionalMembers(of, path));
  if (!Type.IsObject(schema)) return [];
  return Object.entries(schema.properties).flatMap(([name, member]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const deeper = optionalMembers(member, at);
    if (Type.IsOptional(member)) return [[at, 'left out'], ...deeper];
    const isNullable = Type.IsUnion(member) && member.anyOf.some((of) => Type.IsNull(of));
    if (!isNullable) return deeper;
    assert.equal('default' in member ? member.default : undefined, null, `${at} has a default`);
    return [[at, 'null'], ...deeper];
  });
}

for (const [name, schema] of Object.entries(RECORDS)) {
  test(`it is decided for every member of a ${name} how its signed text says that it has no value`, () => {
    // The signature of the record itself is never part of its signed text.
    const found = optionalMembers(schema).filter(([path]) => path !== 'signature');
    assert.deepEqual(Object.fromEntries(found), DECIDED[name] ?? {});
  });
}

test('null and absence give the same signed text, for members with the default null and without one', () => {
  const read = recordReader(
    Type.Object({
      written: Type.Union([Type.String(), Type.Null()], { default: null }),
      omitted: Type.Optional(Type.String()),
    }),
  );
  for (const received of [
    {},
    { written: null },
    { omitted: null },
    { written: null, omitted: null },
  ]) {
    assert.equal(canonicalJson(read(received) ?? {}), '{"written":null}');
  }
  assert.equal(canonicalJson(read({ omitted: '' }) ?? {}), '{"omitted":"","written":null}');
});
