/** Records as they are received: normalized to the signed text, and members of which `null` and absence mean the same [core-1-4]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type, { type TObject, type TSchema } from 'typebox';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson, jsonText } from '../src/base/json/write.ts';
import { AgentDescriptor, readAgentDescriptor } from '../src/protocol/records/agent-descriptor.ts';
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
import {
  MembershipAttestation,
  RecognitionTreaty,
  readMembershipAttestation,
  readRecognitionTreaty,
} from '../src/protocol/records/recognition.ts';
import { recordReader } from '../src/protocol/records/record.ts';
import {
  readRevocationFeed,
  SovereignRevocationFeed,
} from '../src/protocol/records/revocation-feed.ts';
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
import { newKey } from './support/requests.ts';
import { readVectors } from './support/vectors.ts';

const READERS: Readonly<Record<string, (received: unknown) => SignedRecord | null>> = {
  AgentDescriptor: readAgentDescriptor,
  CertificateRevocationList: readCertificateRevocationList,
  GenesisBlock: readGenesisBlock,
  JoinCertificate: readJoinCertificate,
  MembershipAttestation: readMembershipAttestation,
  PolicyManifest: readPolicyManifest,
  RecognitionTreaty: readRecognitionTreaty,
  SovereignRevocationFeed: readRevocationFeed,
};

interface Vector {
  readonly record: string;
  readonly note: string;
  readonly received: JsonObject;
  readonly canonical: string;
  readonly public_key_b64: string;
}

const { records } = readVectors<{ records: Vector[] }>('own_wire_core.json');

test('the vectors contain a case for each record read here', () => {
  assert.deepEqual(new Set(records.map(({ record }) => record)), new Set(Object.keys(READERS)));
});

for (const { record: name, note, received, canonical, public_key_b64: key } of records) {
  const read = READERS[name] ?? assert.fail(name);

  test(`a received ${name} is normalized to the signed text (${note || 'as is'})`, () => {
    const record = read(received);
    assert.ok(record !== null);
    assert.equal(signedText(record), canonical);
    assert.equal(isSignedByAny(record, [key], verifySignature), true);
    assert.equal(isSignedByAny(record, [newKey().publicKey], verifySignature), false);
    const again = read(parseJson(canonicalJson(record)));
    assert.deepEqual(again, record, 'reading it again changes nothing');
  });

  test(`a ${name} with one changed member no longer verifies (${note || 'as is'})`, () => {
    const member =
      'issued_by' in received ? 'issued_by' : 'issuer' in received ? 'issuer' : 'network_name';
    const record = read({ ...received, [member]: 'someone' });
    assert.ok(record !== null, jsonText(received));
    assert.equal(isSignedByAny(record, [key], verifySignature), false);
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
