/**
 * The golden vectors of the trust protocol: records and values derived from them [trust-2], [trust-3], every record that
 * operators create [trust-5], and every public verification [trust-6], [trust-7], over HTTP and without a server.
 */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { recognitionGraph } from '../src/authority/recognition/recognition-graph.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import { SHA256, sha256Hex } from '../src/base/crypto/digest.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonFloat, JsonObject, JsonValue } from '../src/base/json/value.ts';
import { canonicalJson, compareCodePoints, jsonText } from '../src/base/json/write.ts';
import { createVerifier } from '../src/client/offline.ts';
import {
  leafHash,
  merklePath,
  merkleRoot,
  type PathNode,
  pathLength,
  rootOfPath,
} from '../src/protocol/records/capability-disclosure.ts';
import { CASCADE_THRESHOLD, scoreCascade } from '../src/protocol/records/consensus-proof.ts';
import { singlySignedText } from '../src/protocol/records/signed-record.ts';
import {
  justificationDigest,
  readJustificationProof,
} from '../src/protocol/records/validator-vote.ts';
import {
  assertAnswered,
  caseNamed,
  casesOf,
  detailNames,
  EVENTS,
  eventDetailNames,
  GOLDEN,
  type GoldenCase,
  type GoldenRecord,
  goldenKey,
  signedTextOf,
  startGolden,
} from './support/golden-trust.ts';
import { formOf, mustRead, READERS, read } from './support/record-kinds.ts';
import { get, operate, outcome } from './support/requests.ts';
import { audited, freshId, issued, parsed, recognize } from './support/trust.ts';

const POLICY = '/admin/data-usage/policy';
const NULLIFIER = '/admin/disclosure/nullifier';
const READ_POLICY = 'GET /data-usage/policy';

const na = await startGolden();
after(() => na[Symbol.asyncDispose]());
await issued(
  recognize(na, {
    subject_sovereign_id: 'net-b',
    subject_public_keys: [goldenKey('b').publicKey],
  }),
);

test('the authority and the operator of the vectors have the keys of the vectors', () => {
  assert.equal(na.audience, GOLDEN.keys.na?.public_base64);
  assert.equal(na.privileged.key.publicKey, GOLDEN.keys.op?.public_base64);
});

test('the vectors contain cases of eleven operator routes, one read and ten verifications', () => {
  assert.equal(Object.keys(GOLDEN.build).length, 12);
  assert.ok(casesOf('build').length >= 139);
  assert.equal(Object.keys(GOLDEN.verify).length, 10);
  assert.ok(casesOf('verify').length >= 181);
});

for (const golden of [...casesOf('build'), ...casesOf('verify')]) {
  if (golden.endpoint === READ_POLICY) continue;

  test(`${golden.endpoint} answers ${golden.name} with ${golden.status}`, () =>
    assertAnswered(na, golden));
}

for (const { name, status } of casesOf('build', READ_POLICY)) {
  test(`${READ_POLICY} answers ${name} with ${status}`, async () => {
    assert.equal(name, 'returns_last_policy_even_if_expired_window');
    const { request } = caseNamed('build', POLICY, 'ok_window_in_past');
    const created = await operate(na, POLICY, request);
    assert.equal(created.status, 201, outcome(created));
    const read = await get(na, '/data-usage/policy');
    assert.equal(read.status, status);
    assert.deepEqual(parsed(read), parsed(created));
  });
}

// Timestamps of requests [trust-1-3]

/** The route, the request member, and the member of the record that contains it; null if the record itself does. */
const TIMESTAMPS: readonly (readonly [string, string, string | null])[] = [
  ['/admin/agreements/offer', 'valid_from', 'requested_terms'],
  ['/admin/agreements/offer', 'valid_until', 'requested_terms'],
  ['/admin/agreements/offer', 'expires_at', null],
  ['/admin/agreements/counter', 'valid_from', 'agreed_terms'],
  ['/admin/agreements/counter', 'valid_until', 'agreed_terms'],
  [POLICY, 'valid_from', null],
  [POLICY, 'valid_until', null],
];

for (const [route, member, within] of TIMESTAMPS) {
  test(`${route} reads ${member} as the vectors do`, async () => {
    const { request } = caseNamed('build', route, 'ok');
    const window = { valid_from: '2020-01-01T00:00:00Z', valid_until: '2099-01-01T00:00:00Z' };
    for (const { input, ours } of GOLDEN.request_timestamps.cases) {
      const answer = await operate(na, route, { ...request, ...window, [member]: input });
      assert.equal(answer.status, 201, outcome(answer));
      const record = parsed(answer);
      const holder = within === null ? record : (record[within] as JsonObject);
      assert.equal(holder[member], ours, input);
    }
  });
}

// Audit events

test('the vectors name the members of every audit event of the trust protocol', () => {
  const events = new Set([...Object.values(EVENTS), 'admin_auth_failed']);
  assert.deepEqual(new Set(Object.keys(GOLDEN.audit_event_detail_keys)), events);
});

test('each audit event has the members of the vectors', async () => {
  for (const section of ['build', 'verify'] as const) {
    for (const endpoint of Object.keys(GOLDEN[section])) {
      const event = EVENTS[endpoint];
      const golden = casesOf(section, endpoint).find(({ status }) => status < 300);
      if (event === undefined || golden === undefined) continue;
      const sent = endpoint === NULLIFIER ? withFreshProof(golden) : golden;
      assert.deepEqual(await eventDetailNames(na, sent), detailNames(event), event);
    }
  }
  await operate(na, POLICY, {}, { alter: (headers) => delete headers['X-Admin-Signature'] });
  for (const event of ['recognition_treaty_issued', 'admin_auth_failed']) {
    const details = audited(na, event).at(-1);
    assert.deepEqual(Object.keys(details ?? {}).sort(), detailNames(event));
  }
});

/** A proof can be nullified only once, so each case gets a new one. */
function withFreshProof(golden: GoldenCase): GoldenCase {
  const proof = { ...(golden.request.proof as JsonObject), proof_id: freshId('proof') };
  return { ...golden, request: { proof } };
}

// The client, without a server

const verifier = createVerifier({ now: () => Date.parse(GOLDEN.meta.clock) });

/** An authority that gets no keys uses its own; a client always has to name the keys. */
function keysOf(keys: JsonValue | undefined): string[] {
  return Array.isArray(keys) ? keys.map(String) : [GOLDEN.keys.na?.public_base64 ?? ''];
}

/** How the client verifies the records in a request to each endpoint. */
const JUDGED: Readonly<Record<string, (request: JsonObject) => string>> = {
  '/agreements/verify': (r) =>
    verifier.agreement(r.agreement, keysOf(r.offerer_public_keys), keysOf(r.responder_public_keys)),
  '/boundary/verify': (r) => verifier.decision(r.decision, keysOf(r.operator_public_keys)),
  '/trust-evidence/verify': (r) =>
    verifier.evidence(
      r.evidence,
      keysOf(r.issuer_public_keys),
      typeof r.expected_graph_digest === 'string' ? r.expected_graph_digest : null,
    ),
  '/disclosure/verify': (r) =>
    verifier.membership(r.proof, r.commitment, keysOf(r.issuer_public_keys)),
  '/attestations/verify': (r) => verifier.attestation(r.attestation, r.recognition_policy),
};

suite('offline', () => {
  for (const [endpoint, judge] of Object.entries(JUDGED)) {
    for (const { name, request, rawBody, status, body } of casesOf('verify', endpoint)) {
      // Null if the answer concerns the form of the request, not a record.
      const { reason = null } = (body ?? {}) as JsonObject;
      if (status !== 200 || reason === null) continue;

      test(`${name} of ${endpoint} is ${reason}`, () => {
        const sent = rawBody === null ? request : (parseJson(rawBody) as JsonObject);
        assert.equal(judge(sent), reason);
      });
    }
  }

  test('a member that each reader generates may be absent, as over HTTP', () => {
    const lacking = (endpoint: string, name: string, member: string, ...absent: string[]) => {
      const { request } = caseNamed('verify', endpoint, name);
      const kept = Object.entries(request[member] as JsonObject).filter(
        ([each]) => !absent.includes(each),
      );
      return { ...request, [member]: Object.fromEntries(kept) };
    };
    const ids = ['agreement_id', 'established_at', 'evidence_id', 'proof_id', 'proved_at'];
    for (const [endpoint, name, member, reason] of [
      ['/agreements/verify', 'valid_with_several_candidate_keys', 'agreement', 'accepted'],
      ['/disclosure/verify', 'valid_two_capabilities', 'proof', 'valid'],
      ['/trust-evidence/verify', 'valid', 'evidence', 'invalid_signature'],
    ] as const) {
      assert.equal(JUDGED[endpoint]?.(lacking(endpoint, name, member, ...ids)), reason, endpoint);
    }
    const { intent, policy, agent_public_keys } = lacking(
      '/data-usage/verify',
      'valid_no_caps',
      'policy',
      'policy_id',
    ) as JsonObject;
    assert.deepEqual(verifier.intent(intent, policy, keysOf(agent_public_keys)), []);
  });
});

// Records of the trust protocol, and values derived from them, against the golden vectors [trust-2], [trust-3].

/** Records that the vectors do not have. */
const OWN = ['SovereignRevocationFeed', 'AgentDescriptor'];

/** Members of a received record that are not kept. */
const DROPPED: { readonly [type: string]: readonly string[] } = { TrustDecision: ['trust_path'] };

/** Every golden record, with its position in the vectors. */
const RECORDS = Object.entries(GOLDEN.records).flatMap(([type, records]) =>
  records.map((golden, index) => ({ type, name: `${type} ${index + 1}`, golden })),
);

function golden(type: string): GoldenRecord {
  const [first] = GOLDEN.records[type] ?? [];
  assert.ok(first !== undefined, type);
  return first;
}

// Keys

for (const [name, { seed_hex, seed_base64, public_base64 }] of Object.entries(GOLDEN.keys)) {
  test(`the key ${name} comes from its seed`, () => {
    assert.equal(Buffer.from(seed_base64, 'base64').toString('hex'), seed_hex);
    assert.equal(goldenKey(name).publicKey, public_base64);
  });
}

// Canonical text

for (const { json_text: text, canonical, sha256, ours } of GOLDEN.canonical_json) {
  if (ours === undefined) {
    test(`the canonical text of ${text} is that of the vectors`, () => {
      assert.equal(canonicalJson(parseJson(text)), canonical);
      assert.equal(sha256Hex(canonical), sha256);
      assert.equal(canonicalJson(parseJson(canonical)), canonical, 'writing it again is the same');
      assert.equal(canonicalJson(parseJson(jsonText(parseJson(text)))), canonical, 'sent or not');
    });
  } else {
    test(`${text} is ${ours}`, () => {
      assert.match(ours, /^refused/);
      assert.throws(() => parseJson(text), SyntaxError);
    });
  }
}

// Records

test('every record type of the vectors is known here', () => {
  assert.deepEqual(
    Object.keys(GOLDEN.records).sort(),
    Object.keys(READERS)
      .filter((type) => !OWN.includes(type))
      .sort(),
  );
});

for (const { type, name, golden: given } of RECORDS) {
  const { record, canonical, canonical_sha256: digest, signed_by } = given;

  if (READERS[type] !== null) {
    test(`${name} is read unchanged`, () => {
      const dropped = DROPPED[type] ?? [];
      const kept = Object.entries(record).filter(([member]) => !dropped.includes(member));
      const expected = canonicalJson(Object.fromEntries(kept));
      assert.equal(canonicalJson(mustRead(type, record)), expected);
      assert.equal(canonicalJson(mustRead(type, parseJson(jsonText(record)))), expected, 'sent');
      const more = mustRead(type, { ...record, unknown_member: 'ignored' });
      assert.equal(canonicalJson(more), expected, 'with an unknown member');
    });
  }

  if (canonical !== null) {
    test(`the text of ${name} and its digest are those of the vectors`, () => {
      const { excluded_from_canonical: excluded = [] } = given;
      const covered = Object.entries(record).filter(([member]) => !excluded.includes(member));
      assert.equal(canonicalJson(Object.fromEntries(covered)), canonical);
      assert.equal(sha256Hex(canonical), digest);
      if (signed_by != null) assert.equal(formOf(type, record).text, canonical);
    });
  }

  if (signed_by != null) {
    test(`${name} verifies with the keys that signed it and with no other`, () => {
      const form = formOf(type, record);
      assert.equal(form.signatures.length, signed_by.length);
      for (const key of Object.keys(GOLDEN.keys)) {
        assert.equal(form.isSignedBy([goldenKey(key).publicKey]), signed_by.includes(key), key);
      }
      assert.equal(form.isSignedBy([]), false, 'no key');
    });

    test(`signing ${name} again produces the same signatures`, () => {
      const { text, signatures } = formOf(type, record);
      assert.equal(signedTextOf(record), text);
      assert.deepEqual(
        signed_by.map((key) => goldenKey(key).sign(text)),
        signatures.map(({ sig }) => sig),
      );
    });
  }
}

// Derived values

test('the digest of the graph is that of its text', () => {
  const { record, canonical, canonical_sha256: digest } = golden('RecognitionGraph');
  const { record: evidence, derived } = golden('TrustEvidence');
  assert.equal(derived?.graph_digest_input, canonical);
  assert.equal(sha256Hex(canonicalJson(record)), digest);
  assert.deepEqual([derived?.graph_digest, evidence.graph_digest], [digest, digest]);
});

test('the graph served for the treaty of the vectors matches them, with times in our spelling', () => {
  const { record: graph } = golden('RecognitionGraph');
  const [treaty] = graph.active_treaties as JsonObject[];
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id, subject_public_keys } = mustRead(
    'RecognitionTreaty',
    treaty ?? null,
  );
  const { issued_at, valid_from, expires_at } = treaty ?? {};
  const index = createRecognitionIndex();
  index.putTreaty(String(treaty_id), {
    json: canonicalJson(treaty ?? null),
    issuer: String(issuer_sovereign_id),
    subject: String(subject_sovereign_id),
    subjectKeys: subject_public_keys as readonly string[],
    issuedAt: Date.parse(String(issued_at)),
    validFrom: String(valid_from),
    expiresAt: Date.parse(String(expires_at)),
    revokedAt: null,
    revocationReason: null,
    followed: [],
  });
  const edges = (graph.recognition_edges as JsonObject[]).map((edge) => ({
    ...edge,
    valid_from: String(edge.valid_from).replace('+00:00', 'Z'),
    expires_at: String(edge.expires_at).replace('+00:00', 'Z'),
  }));
  const served = recognitionGraph(index, Date.parse(GOLDEN.meta.clock));
  assert.equal(served, canonicalJson({ ...graph, recognition_edges: edges }));
});

test('the digest of a justification is that of its signed text', () => {
  const { record, derived } = golden('JustificationProof');
  const justification = readJustificationProof(record);
  assert.ok(justification !== null);
  assert.equal(justificationDigest(justification, SHA256), derived?.digest);
});

test('the context digest of a vote is derived from the justification digest and an id', () => {
  const { record, derived = {} } = golden('ValidatorVote');
  const { digest } = golden('JustificationProof').derived ?? {};
  assert.equal(derived.justification_digest, digest);
  assert.equal(derived.context_digest_input, `${digest}:${record.vote_id}`);
  assert.equal(sha256Hex(String(derived.context_digest_input)), record.context_digest);
});

test('the commitment covers the root and the number of its capabilities', () => {
  const { record, derived } = golden('CapabilityCommitment');
  const capabilities = derived?.capabilities as readonly string[];
  assert.equal(record.merkle_root, merkleRoot(capabilities, SHA256));
  assert.equal(record.capability_count, capabilities.length);
  const { record: proof } = golden('CapabilityMembershipProof');
  const path = merklePath(capabilities, String(proof.revealed_capability), SHA256);
  assert.deepEqual(path, proof.merkle_path);
  assert.equal(proof.leaf_hash, leafHash(String(proof.revealed_capability), SHA256));
});

for (const { name, golden: given } of RECORDS.filter(({ type }) => /^Data/.test(type))) {
  if (given.derived === undefined) continue;

  test(`the digest of ${name} is that of its signed text`, () => {
    assert.equal(sha256Hex(singlySignedText(given.record)), given.derived?.digest);
  });
}

// Datetimes in records [trust-1-2]

/** Datetime members by record type, as paths. */
const DATETIMES: readonly (readonly [string, readonly string[]])[] = [
  ['TrustEvidence', ['issued_at']],
  ['CapabilityOffer', ['expires_at']],
  ['CapabilityOffer', ['created_at']],
  ['CapabilityOffer', ['requested_terms', 'valid_from']],
  ['CapabilityOffer', ['requested_terms', 'valid_until']],
  ['CapabilityCounter', ['expires_at']],
  ['CapabilityCounter', ['agreed_terms', 'valid_until']],
  ['AgreementRecord', ['established_at']],
  ['AgreementRecord', ['expires_at']],
  ['AgreementRecord', ['agreed_terms', 'valid_from']],
  ['BoundaryDecision', ['decision_made_at']],
  ['BoundaryDecision', ['decision_valid_until']],
  ['FreshnessProof', ['attested_at']],
  ['FreshnessProof', ['proof_valid_until']],
  ['JustificationProof', ['proof_issued_at']],
  ['JustificationProof', ['trace', 'traced_at']],
  ['JustificationProof', ['trace', 'entries', '0', 'evaluated_at']],
  ['ValidatorVote', ['voted_at']],
  ['ConsensusProof', ['reached_at']],
  ['ConsensusProof', ['expires_at']],
  ['ConsensusProof', ['votes', '0', 'voted_at']],
  ['CapabilityCommitment', ['committed_at']],
  ['CapabilityMembershipProof', ['proved_at']],
  ['CapabilityNullifier', ['issued_at']],
  ['CapabilityNullifier', ['expires_at']],
  ['DataLicensePolicy', ['valid_from']],
  ['DataLicensePolicy', ['valid_until']],
  ['DataAccessIntent', ['declared_at']],
  ['DataAccessIntent', ['expires_at']],
];

for (const { input, canonical, ours_valid } of GOLDEN.datetime_normalisation.cases) {
  const fate = ours_valid ? `reads as ${canonical}` : 'is refused';

  test(`the datetime ${jsonText(input)} ${fate} in every record`, () => {
    for (const [type, path] of DATETIMES) {
      const member = `${type} ${path.join('.')}`;
      const { record } = golden(type);
      const received = read(type, changed(record, path, input));
      if (!ours_valid) assert.equal(received, null, member);
      else
        assert.equal(
          canonicalJson(received),
          canonicalJson(changed(record, path, canonical ?? null)),
          member,
        );
    }
  });
}

/** The value with the one at the path replaced. */
function changed(value: JsonValue, [name, ...rest]: readonly string[], to: JsonValue): JsonValue {
  if (name === undefined) return to;
  if (Array.isArray(value)) {
    return value.map((item, at) => (String(at) === name ? changed(item, rest, to) : item));
  }
  const object = value as JsonObject;
  return { ...object, [name]: changed(object[name] ?? null, rest, to) };
}

// Capability trees [trust-3-3]

test('padding is the leaf of the empty text', () => {
  assert.equal(leafHash('', SHA256), GOLDEN.merkle.pad_leaf);
});

for (const tree of GOLDEN.merkle.cases) {
  const { capabilities, levels, root } = tree;

  test(`the tree over ${capabilities.join(', ')} is that of the vectors`, () => {
    assert.deepEqual([...capabilities].sort(compareCodePoints), tree.sorted);
    const padding = tree.leaf_hashes.slice(capabilities.length).map(() => '');
    assert.deepEqual(
      [...tree.sorted, ...padding].map((leaf) => leafHash(leaf, SHA256)),
      tree.leaf_hashes,
    );
    assert.deepEqual(levels[0], tree.leaf_hashes);
    assert.equal(merkleRoot(capabilities, SHA256), root);
    assert.deepEqual([levels.at(-1), capabilities.length], [[root], tree.capability_count]);
    assert.equal(pathLength(capabilities.length), tree.expected_path_length);
    assert.equal(levels.length, tree.expected_path_length + 1);
    for (const [depth, level] of levels.slice(0, -1).entries()) {
      assert.deepEqual(levels[depth + 1], parentsOf(level));
    }
  });

  test(`the paths of ${capabilities.join(', ')} are those of the vectors`, () => {
    assert.deepEqual(
      new Set(tree.proofs.map(({ capability }) => capability)),
      new Set(capabilities),
    );
    for (const { capability, leaf_hash, merkle_path } of tree.proofs) {
      assert.equal(leafHash(capability, SHA256), leaf_hash, capability);
      assert.deepEqual(merklePath(capabilities, capability, SHA256), merkle_path, capability);
      assert.equal(rootOfPath(leaf_hash, merkle_path, SHA256), root, capability);
    }
    assert.equal(merklePath(capabilities, 'of another tree', SHA256), null);
  });
}

/** The next level up: each parent is the root computed from the left child, with the right child as the path. */
function parentsOf(level: readonly string[]): string[] {
  const parents: string[] = [];
  for (let at = 0; at < level.length; at += 2) {
    const right: PathNode = { sibling_hash: level[at + 1] ?? '', is_left: false };
    parents.push(rootOfPath(level[at] ?? '', [right], SHA256) ?? '');
  }
  return parents;
}

// Cascades [trust-3-5]

test('votes are a cascade above the threshold of the vectors', () => {
  assert.equal(CASCADE_THRESHOLD, GOLDEN.cascade.threshold.value);
});

for (const given of GOLDEN.cascade.cases) {
  test(`the cascade ${given.name} scores as in the vectors`, () => {
    const cascade = scoreCascade(given.votes);
    assertNear(cascade.contextDivergence, given.context_divergence_score);
    assertNear(cascade.temporalClustering, given.temporal_clustering_score);
    assertNear(cascade.score, given.cascade_score);
    assert.equal(cascade.approvals, given.approve_vote_count);
    assert.equal(cascade.uniqueDigests, given.unique_context_count);
    assert.equal(cascade.blocked, given.blocked);
  });
}

function assertNear(actual: number, { value }: JsonFloat): void {
  assert.ok(Math.abs(actual - value) <= GOLDEN.cascade.tolerance.value, `${actual} is ${value}`);
}
