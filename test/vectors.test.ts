/** Vectors that other implementations share: records of the trust protocol [trust-11], and authority keys [authority-keys-6]. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, suite, test } from 'node:test';
import { Value } from 'typebox/value';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { recordSigner, verifyText } from '../src/client/keys.ts';
import { portableSha256 } from '../src/client/sha256.ts';
import {
  AuthorityKeys,
  type ChainPin,
  followChain,
} from '../src/protocol/records/authority-chain.ts';
import {
  type AuthoritySuccession,
  possessionText,
  proveSuccession,
  readAuthoritySuccession,
  signAsFromKey,
  signAsRoot,
  successionDigest,
} from '../src/protocol/records/authority-succession.ts';
import {
  buildNullifier,
  CapabilityNullifier,
  proveMembership,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../src/protocol/records/capability-disclosure.ts';
import { readConsensusProof } from '../src/protocol/records/consensus-proof.ts';
import { readDataAccessIntent, readDataLicensePolicy } from '../src/protocol/records/data-usage.ts';
import { genesisDigest, readGenesisBlock } from '../src/protocol/records/genesis.ts';
import type { Issuer } from '../src/protocol/records/issuer.ts';
import { instantOf, recordReader } from '../src/protocol/records/record.ts';
import { isSinglySignedByAny, signedText } from '../src/protocol/records/signed-record.ts';
import {
  isUnaltered,
  readSignedSuccession,
  readSuccessionRequest,
  signSuccession,
  successionProblem,
} from '../src/protocol/records/succession-request.ts';
import {
  buildTrustEvidence,
  readTrustDecision,
  readTrustEvidence,
} from '../src/protocol/records/trust-evidence.ts';
import { testClock } from './support/clock.ts';
import { goldenKey } from './support/golden-trust.ts';
import { PROJECT } from './support/project.ts';
import { newKey, operate, outcome } from './support/requests.ts';
import { parsed, post, startUnlimited } from './support/trust.ts';
import { readVectors } from './support/vectors.ts';

/** When the records were created; some of them expire soon afterward. */
const NOW = Date.UTC(2026, 0, 1);

interface Vector {
  readonly title: string;
  readonly input: JsonObject;
  readonly expected: JsonObject;
}

/** The vectors of a file, which must have exactly these ids. */
function vectorsNamed(file: string, ...ids: readonly string[]): Vector[] {
  const vectors = readVectors<JsonObject[]>(file);
  assert.deepEqual(
    vectors.map(({ id }) => id),
    ids,
  );
  return vectors.map(({ id, description, input, expected }) => ({
    title: `${id}: ${description}`,
    input: input as JsonObject,
    expected: expected as JsonObject,
  }));
}

/** The record, which must already be in the spelling that was signed. */
function readAs<T extends JsonObject>(
  read: (received: unknown) => T | null,
  { input }: Vector,
  member: string,
): T {
  const record = read(input[member]);
  assert.ok(record !== null, member);
  assert.equal(canonicalJson(record), canonicalJson(input[member] ?? null), member);
  return record;
}

/** An issuer of the vectors, which uses these ids next. */
function issuerOf(sovereignId: string, signer: Signer, ...ids: unknown[]): Issuer {
  const uuid = () => String(ids.shift());
  return { sovereignId, keyId: signer.publicKey, signer, sha256: SHA256, now: NOW, uuid };
}

const na = await startUnlimited({ clock: testClock(NOW) });
after(() => na[Symbol.asyncDispose]());

/** Verifies the vector over HTTP; with another list of keys, it must be refused. */
async function answered(path: string, { input }: Vector, keys: string): Promise<JsonObject> {
  const refused = await post(na, path, { ...input, [keys]: [newKey().publicKey] });
  assert.equal(refused.status, 200, outcome(refused));
  assert.equal(refused.body.accepted ?? refused.body.valid, false, 'with a key of someone else');
  const answer = await post(na, path, input);
  assert.equal(answer.status, 200, outcome(answer));
  return parsed(answer);
}

// Trust evidence

for (const vector of vectorsNamed('trust_evidence.json', 'te-001')) {
  const { title, input, expected } = vector;
  const digest = String(input.expected_graph_digest);

  test(`${title}: it is accepted`, async () => {
    const evidence = readAs(readTrustEvidence, vector, 'evidence');
    const answer = await answered('/trust-evidence/verify', vector, 'issuer_public_keys');
    assert.deepEqual([answer.accepted, answer.verdict], [expected.accepted, expected.verdict]);
    const { evidence_id, issuer_sovereign_id } = evidence;
    assert.deepEqual(
      [answer.evidence_id, answer.issuer_sovereign_id],
      [evidence_id, issuer_sovereign_id],
    );
  });

  test(`${title}: the same decision produces the same evidence`, () => {
    const evidence = readAs(readTrustEvidence, vector, 'evidence');
    const decision = readTrustDecision(evidence);
    assert.ok(decision !== null);
    const issuer = issuerOf(evidence.issuer_sovereign_id, goldenKey('na'), evidence.evidence_id);
    assert.deepEqual(buildTrustEvidence(issuer, decision, digest), evidence);
  });
}

// Selective disclosure

const [membership, nullification] = vectorsNamed('selective_disclosure.json', 'sd-001', 'sd-002');
assert.ok(membership !== undefined && nullification !== undefined);

test(`${membership.title}: it is valid`, async () => {
  const commitment = readAs(readCapabilityCommitment, membership, 'commitment');
  const proof = readAs(readCapabilityMembershipProof, membership, 'proof');
  assert.equal(proof.revealed_capability, membership.expected.capability);
  const { valid, commitment_id } = await answered(
    '/disclosure/verify',
    membership,
    'issuer_public_keys',
  );
  assert.deepEqual([valid, commitment_id], [membership.expected.valid, commitment.commitment_id]);
});

test(`${membership.title}: the same capabilities produce the same proof`, async () => {
  const proof = readAs(readCapabilityMembershipProof, membership, 'proof');
  const disclosure = {
    commitmentId: proof.commitment_id,
    capability: proof.revealed_capability,
    capabilities: ['read', 'write', 'audit'],
    prover: proof.prover_sovereign_id,
  };
  assert.deepEqual(proveMembership(disclosure, proof.proof_id, NOW, SHA256), proof);
  const answer = await post(na, '/disclosure/prove', {
    commitment: membership.input.commitment ?? null,
    capability: disclosure.capability,
    capabilities: disclosure.capabilities,
    prover_sovereign_id: disclosure.prover,
  });
  const { proof_id, ...made } = parsed(answer);
  assert.deepEqual({ ...made, proof_id: proof.proof_id }, proof, String(proof_id));
});

test(`${nullification.title}: the same proof produces the same nullifier`, () => {
  const proof = readAs(readCapabilityMembershipProof, nullification, 'proof');
  const given = nullification.expected.nullifier as JsonObject;
  const nullifier = recordReader(CapabilityNullifier)(given);
  assert.ok(nullifier !== null);
  const key = goldenKey('b');
  assert.equal(isSinglySignedByAny(nullifier, [key.publicKey], verifySignature), true);
  assert.equal(isSinglySignedByAny(nullifier, [newKey().publicKey], verifySignature), false);
  const issuer = issuerOf('sovereign-b', key, nullifier.nullifier_id);
  assert.deepEqual(buildNullifier(issuer, proof, nullifier.nonce), given);
});

test(`${nullification.title}: it is issued that way, and once`, async () => {
  const given = nullification.expected.nullifier as JsonObject;
  const answer = await operate(na, '/admin/disclosure/nullifier', nullification.input);
  assert.equal(answer.status, 201, outcome(answer));
  const issued = parsed(answer);
  assert.deepEqual(Object.keys(issued).sort(), Object.keys(given).sort());
  for (const member of ['proof_id', 'issued_at', 'expires_at']) {
    assert.equal(issued[member], given[member], member);
  }
  const { sig } = issued.signature as JsonObject;
  assert.ok(verifySignature(na.audience, canonicalJson(issued, 'signature'), String(sig)));
  const again = await operate(na, '/admin/disclosure/nullifier', nullification.input);
  assert.equal(outcome(again), '422 nullifier_failed');
});

// Consensus

for (const vector of vectorsNamed('consensus.json', 'con-001')) {
  const { title, expected } = vector;

  test(`${title}: it is valid`, async () => {
    const proof = readAs(readConsensusProof, vector, 'proof');
    assert.equal(proof.votes.length, expected.vote_count);
    const answer = await answered('/consensus/verify', vector, 'assembler_public_keys');
    assert.deepEqual(answer, {
      valid: expected.valid,
      reason: 'valid',
      consensus_id: proof.consensus_id,
    });
  });
}

// Data usage

for (const vector of vectorsNamed('data_usage.json', 'du-001')) {
  const { title, expected } = vector;

  test(`${title}: it is valid`, async () => {
    readAs(readDataAccessIntent, vector, 'intent');
    const policy = readAs(readDataLicensePolicy, vector, 'policy');
    assert.equal(isSinglySignedByAny(policy, [goldenKey('na').publicKey], verifySignature), true);
    const answer = await answered('/data-usage/verify', vector, 'agent_public_keys');
    assert.deepEqual(answer, {
      valid: expected.valid,
      violation_reason: null,
      violation_count: expected.violation_count,
      violations: [],
    });
  });
}

// The vectors of statements, chains and files are correct [authority-keys-6], according to portable code.

interface Pin {
  readonly network_name: string;
  readonly root_key?: string;
  readonly authority_key?: string;
  readonly genesis_digest?: string;
}

interface Vectors {
  readonly keys: { readonly [name: string]: { seed_base64: string; public_base64: string } };
  readonly genesis: JsonObject;
  readonly genesis_digest: string;
  readonly statements: readonly {
    readonly statement: JsonObject;
    readonly terms: string;
    readonly possession_text: string;
    readonly signed_text: string;
    readonly digest: string;
  }[];
  readonly followed: readonly {
    readonly pin: Pin;
    readonly successions: readonly number[];
    readonly now: string;
    readonly keys: JsonObject[];
    readonly current_key: string;
  }[];
  readonly refused: readonly {
    readonly reason: string;
    readonly sequence: number | null;
    readonly pin: Pin;
    readonly successions: readonly unknown[];
    readonly known: readonly number[];
    readonly now: string;
  }[];
  readonly files: { readonly request: JsonObject; readonly succession: JsonObject };
}

const file = readFileSync(new URL('test/vectors/authority-keys.json', PROJECT), 'utf8');
const { vectors } = parseJson(file) as unknown as { vectors: Vectors };
const tools = { verify: verifyText, sha256: portableSha256 };
const signers = Object.values(vectors.keys).map(({ seed_base64, public_base64 }) => {
  const signer = recordSigner(Buffer.from(seed_base64, 'base64'));
  assert.equal(signer.publicKey, public_base64);
  return signer;
});
const signerOf = (key: string) => {
  const found = signers.find(({ publicKey }) => publicKey === key);
  assert.ok(found !== undefined);
  return found;
};
const chain = vectors.statements.map(({ statement }) => {
  const read = readAuthoritySuccession(statement);
  assert.ok(read !== null);
  return read;
});
const genesis = readGenesisBlock(vectors.genesis);
assert.ok(genesis !== null);

function pinOf(pin: Pin, known: readonly AuthoritySuccession[]): ChainPin {
  const { network_name: networkName, root_key, authority_key = '', genesis_digest } = pin;
  return {
    networkName,
    trusted: root_key === undefined ? { authorityKey: authority_key } : { rootKey: root_key },
    known,
    ...(genesis_digest !== undefined && { genesisDigest: genesis_digest }),
  };
}

suite('the vectors of', () => {
  test('the genesis block', () => {
    assert.equal(genesisDigest(genesis, portableSha256), vectors.genesis_digest);
    assert.equal(chain[0]?.previous_digest, vectors.genesis_digest);
  });

  for (const [index, vector] of vectors.statements.entries()) {
    test(`statement ${index + 1}`, () => {
      const statement = chain[index] as AuthoritySuccession;
      const { proof_of_possession: _, signatures: __, ...terms } = statement;
      assert.equal(canonicalJson(terms), vector.terms);
      assert.equal(possessionText(terms, portableSha256), vector.possession_text);
      assert.equal(signedText(statement), vector.signed_text);
      assert.equal(successionDigest(statement, portableSha256), vector.digest);
      const proven = proveSuccession(terms, signerOf(terms.to_key), portableSha256);
      const isStolen = terms.kind === 'compromise';
      const half = isStolen ? proven : signAsFromKey(proven, signerOf(terms.from_key));
      assert.deepEqual(signAsRoot(half, signerOf(terms.root_public_key)), statement);
    });
  }

  for (const [index, vector] of vectors.followed.entries()) {
    test(`chain ${index + 1}, which is followed`, () => {
      const statements = vector.successions.map((place) => chain[place]);
      const verdict = followChain(
        pinOf(vector.pin, []),
        { successions: statements },
        instantOf(vector.now),
        tools,
      );
      assert.ok(verdict.refusal === null);
      assert.deepEqual(verdict.keys, vector.keys);
      assert.equal(verdict.currentKey, vector.current_key);
      const { network_name, root_public_key } = genesis;
      const { keys, successions } = verdict;
      const document = { network_name, root_public_key, keys, successions };
      assert.ok(Value.Check(AuthorityKeys, document));
    });
  }

  for (const [index, vector] of vectors.refused.entries()) {
    test(`refused chain ${index + 1}: ${vector.reason}`, () => {
      const known = vector.known.map((place) => chain[place] as AuthoritySuccession);
      const pin = pinOf(vector.pin, known);
      const { refusal } = followChain(
        pin,
        { successions: vector.successions },
        instantOf(vector.now),
        tools,
      );
      assert.deepEqual([refusal?.reason, refusal?.sequence], [vector.reason, vector.sequence]);
    });
  }

  test('the files', () => {
    const request = readSuccessionRequest(vectors.files.request);
    const succession = readSignedSuccession(vectors.files.succession);
    assert.ok(request !== null && succession !== null && isUnaltered(request, verifyText));
    assert.deepEqual(signSuccession(request, signerOf(genesis.root_public_key)), succession);
    assert.equal(successionProblem(succession, { genesis, successions: [] }, 0, tools), null);
  });
});
