/** The whole trust protocol between two authorities that recognize each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { get, operate, outcome, type Received } from './support/requests.ts';
import { issued, parsed, post, recognize, startUnlimited, verifies } from './support/trust.ts';
import {
  agreedText,
  agreementSigners,
  created,
  inner,
  ourselves,
  outcomeWithCause,
  signaturesOf,
  singlySigned,
  singlyVerifies,
} from './support/trust-protocol.ts';

/** Two authorities that recognize each other, on one clock. */
async function twoSovereigns() {
  const clock = testClock();
  const folders = [networkFolder('alpha'), networkFolder('beta')] as const;
  const alpha = await startUnlimited({ clock, dataDir: folders[0].path });
  const beta = await startUnlimited({ clock, dataDir: folders[1].path });
  await issued(recognizes(alpha, 'beta', beta));
  await issued(recognizes(beta, 'alpha', alpha));
  return {
    clock,
    alpha,
    beta,
    async [Symbol.asyncDispose]() {
      for (const one of [alpha, beta, ...folders]) await one[Symbol.asyncDispose]();
    },
  };
}

type Network = Awaited<ReturnType<typeof twoSovereigns>>;

function recognizes(at: TestAuthority, name: string, { audience }: TestAuthority) {
  return recognize(at, { subject_sovereign_id: name, subject_public_keys: [audience] });
}

/** A validity of an hour from now. */
function window(now: number): JsonObject {
  return { valid_from: formatInstant(now), valid_until: formatInstant(now + HOUR) };
}

function offerToBeta(alpha: TestAuthority): Promise<JsonObject> {
  const now = alpha.clock.now();
  const offer = operate(alpha, '/admin/agreements/offer', {
    responder_sovereign_id: 'beta',
    capabilities: ['read', 'write', 'audit'],
    scope: { region: 'eu-west', share: new JsonFloat(1), label: 'Zürich \u{1f680}' },
    ...window(now),
    expires_at: formatInstant(now + MINUTE),
  });
  return created(offer);
}

function decide(at: TestAuthority, agreement: JsonObject, capability: string): Promise<Received> {
  return operate(at, '/admin/boundary/decide', {
    agreement,
    requested_capability: capability,
    context: { requester_sovereign_id: 'beta', request_parameters: { dataset: 'd1' } },
  });
}

/** The result of a verification: its reason, or how the request was refused. */
function finding(answer: Received): string {
  if (outcome(answer) !== '200') return outcome(answer);
  const { reason, violation_reason: violation } = answer.body;
  return reason ?? violation ?? 'valid';
}

/** A record presented to an authority that did not create it. */
interface Exhibit {
  readonly what: string;
  readonly path: string;
  readonly body: JsonObject;
  /** The keys with which it is verified. */
  readonly keys: JsonObject;
  readonly reason: string;
  /** The result without those keys. */
  readonly keyless: string;
  /** Changes of the body that alter the record, and the result with them. */
  readonly tampered: JsonObject;
  readonly exposed: string;
}

async function assertJudged(at: TestAuthority, exhibit: Exhibit): Promise<void> {
  const { what, path, body, keys, tampered } = exhibit;
  const say = async (request: JsonObject) => finding(await post(at, path, request));
  assert.equal(await say({ ...body, ...keys }), exhibit.reason, what);
  assert.equal(await say(body), exhibit.keyless, `${what}, without keys`);
  assert.equal(await say({ ...body, ...keys, ...tampered }), exhibit.exposed, `${what}, tampered`);
}

function evidenceExhibit(what: string, evidence: JsonObject, issuer: TestAuthority): Exhibit {
  return {
    what,
    path: '/trust-evidence/verify',
    body: { evidence, expected_graph_digest: evidence.graph_digest as string },
    keys: { issuer_public_keys: [issuer.audience] },
    reason: 'accepted',
    keyless: 'invalid_signature',
    tampered: { evidence: { ...evidence, verdict: 'escalate' } },
    exposed: 'invalid_signature',
  };
}

function decisionExhibit(
  decision: JsonObject,
  operator: TestAuthority,
  reason: string,
  change: JsonObject,
): Exhibit {
  return {
    what: `a decision, ${reason}`,
    path: '/boundary/verify',
    body: { decision },
    keys: { operator_public_keys: [operator.audience] },
    reason,
    keyless: 'invalid_signature',
    tampered: { decision: { ...decision, ...change } },
    exposed: 'invalid_signature',
  };
}

/** The justification of a decision that authorizes, which its operator creates outside HTTP. */
function justificationOf(decision: JsonObject, operator: TestAuthority): JsonObject {
  const madeAt = decision.decision_made_at as JsonValue;
  const decisionId = decision.decision_id as JsonValue;
  const proof = {
    proof_id: 'justification-1',
    decision_id: decisionId,
    trace: {
      trace_id: 'trace-1',
      decision_id: decisionId,
      agreement_id: decision.agreement_id as JsonValue,
      operator_sovereign_id: 'alpha',
      traced_at: madeAt,
      entries: (decision.gate_results as JsonObject[]).map(({ gate_name, passed, detail }) => ({
        gate_name: gate_name as string,
        gate_type: 'CustomGate',
        evaluated_at: madeAt,
        inputs: { weight: new JsonFloat(1) },
        result: passed as boolean,
        reason: detail as string,
        metadata: {},
      })),
      short_circuited_at: null,
      final_authorized: true,
    },
    proof_issued_at: madeAt,
    issuer_sovereign_id: 'alpha',
  };
  return singlySigned(proof, ourselves(operator).key);
}

test('two authorities agree, decide, disclose, vote and license, and each can prove it to the other', async () => {
  await using network = await twoSovereigns();
  const { clock, alpha, beta } = network;
  const { agreement, shown } = await agreeOn(network);
  const stated = await exchangeEvidence(network, agreement);
  const { authorized, decisions } = await decideOn(network, agreement);
  const disclosure = await disclose(network, agreement);
  const assembly = await reachConsensus(network, authorized);
  const access = await licenseData(network, authorized);

  // Decisions, consensus proofs and intents expire; agreements, evidence and commitments do not.
  clock.advance(5 * MINUTE + 1);
  for (const [at, { path, body, keys }, expected] of [
    ...decisions.map((exhibit) => [beta, exhibit, 'decision_expired'] as const),
    [beta, assembly, 'expired'],
    [alpha, access, 'intent_expired'],
    [beta, shown, 'accepted'],
    [beta, stated, 'accepted'],
    [beta, disclosure, 'valid'],
  ] as const) {
    assert.equal(finding(await post(at, path, { ...body, ...keys })), expected, path);
  }
  clock.advance(HOUR);
  const late = await created(decide(alpha, agreement, 'read'));
  assert.equal(late.denial_reason, 'outside validity window');
  await assertJudged(
    beta,
    decisionExhibit(late, alpha, 'unauthorized_outside_validity_window', { denial_reason: null }),
  );
});

/** Alpha makes an offer, beta narrows it, and alpha accepts. */
async function agreeOn({ clock, alpha, beta }: Network) {
  const offer = await offerToBeta(alpha);
  assert.ok(verifies(offer, alpha.audience));
  assert.ok(!verifies({ ...offer, responder_sovereign_id: 'gamma' }, alpha.audience));
  const offererEvidence = inner(offer, 'offerer_evidence');
  assert.deepEqual(
    [offererEvidence.verdict, offererEvidence.issuer_sovereign_id, offer.graph_digest],
    ['allow', 'alpha', (await get(alpha, '/atlas.json')).body.graph_digest],
  );
  clock.advance(SECOND);
  const counterTerms = { capabilities: ['read', 'audit'], ...window(clock.now()) };
  const counter = await created(
    operate(beta, '/admin/agreements/counter', { offer, ...counterTerms }),
  );
  const responderEvidence = inner(counter, 'responder_evidence');
  assert.deepEqual(
    [responderEvidence.verdict, responderEvidence.issuer_sovereign_id],
    ['allow', 'beta'],
  );
  assert.deepEqual(agreementSigners(counter, alpha.audience, beta.audience), [beta.audience]);
  clock.advance(SECOND);
  const agreement = await created(
    operate(alpha, '/admin/agreements/accept', { counter, original_offer: offer }),
  );
  const signers = agreementSigners(agreement, alpha.audience, beta.audience);
  assert.deepEqual(signers, [beta.audience, alpha.audience]);
  assert.equal(agreedText(agreement), agreedText(counter));
  const agreementKeys = {
    offerer_public_keys: [alpha.audience],
    responder_public_keys: [beta.audience],
  };
  const shown: Exhibit = {
    what: 'the agreement',
    path: '/agreements/verify',
    body: { agreement },
    keys: agreementKeys,
    reason: 'accepted',
    // Both have signed it, so each finds its own signature, which without keys counts for both parties.
    keyless: 'accepted',
    tampered: { agreement: widened(agreement) },
    exposed: 'invalid_offerer_signature',
  };
  await assertJudged(alpha, shown);
  await assertJudged(beta, shown);
  return { agreement, shown };
}

/** Evidence as created for the agreement, and as stated by an operator. */
async function exchangeEvidence({ alpha, beta }: Network, agreement: JsonObject) {
  const offererEvidence = inner(agreement, 'offerer_evidence');
  const responderEvidence = inner(agreement, 'responder_evidence');
  const stated = await created(
    operate(alpha, '/admin/trust-evidence', {
      decision: {
        source_sovereign_id: 'alpha',
        target_sovereign_id: 'beta',
        verdict: 'warn',
        reason: 'treaty_expiring_soon',
        requested_roles: ['role:client'],
        trusted: true,
        hop_count: 1,
        signals: [{ code: 'treaty_expiring_soon', severity: 'warn' }],
        evaluated_at: '2026-01-15T12:00:00+00:00',
      },
    }),
  );
  assert.equal(stated.evaluated_at, '2026-01-15T12:00:00+00:00');
  const exhibit = evidenceExhibit('evidence stated by alpha', stated, alpha);
  await assertJudged(beta, exhibit);
  await assertJudged(beta, evidenceExhibit("alpha's evidence", offererEvidence, alpha));
  await assertJudged(alpha, evidenceExhibit("beta's evidence", responderEvidence, beta));
  return exhibit;
}

/** What was agreed on is authorized; what was only offered is not. */
async function decideOn({ alpha, beta }: Network, agreement: JsonObject) {
  const authorized = await created(decide(alpha, agreement, 'read'));
  const denied = await created(decide(alpha, agreement, 'write'));
  assert.deepEqual([authorized.authorized, authorized.denial_reason], [true, null]);
  assert.deepEqual([denied.authorized, denied.denial_reason], [false, 'capability out of scope']);
  const decisions = [
    decisionExhibit(authorized, alpha, 'authorized', { context_id: 'another' }),
    decisionExhibit(denied, alpha, 'unauthorized_capability_out_of_scope', { authorized: true }),
  ];
  for (const exhibit of decisions) await assertJudged(beta, exhibit);
  return { authorized, decisions };
}

/** Alpha commits to what was agreed on; beta proves one capability of it without disclosing the other. */
async function disclose({ alpha, beta }: Network, agreement: JsonObject) {
  const commitment = await created(
    operate(alpha, '/admin/disclosure/commit', { capabilities: ['read', 'audit'], agreement }),
  );
  const proven = await post(beta, '/disclosure/prove', {
    capability: 'audit',
    capabilities: ['read', 'audit'],
    commitment,
    prover_sovereign_id: 'beta',
  });
  assert.equal(proven.status, 200, proven.text);
  const proof = parsed(proven);
  assert.doesNotMatch(proven.text, /"read"/);
  const disclosure: Exhibit = {
    what: 'the disclosure of one capability',
    path: '/disclosure/verify',
    body: { proof, commitment },
    keys: { issuer_public_keys: [alpha.audience] },
    reason: 'valid',
    keyless: 'commitment_invalid_signature',
    tampered: { commitment: { ...commitment, agreement_id: 'another' } },
    exposed: 'commitment_invalid_signature',
  };
  await assertJudged(beta, disclosure);
  // A proof is nullified only once, regardless of its contents the second time.
  const nullifier = await created(operate(alpha, '/admin/disclosure/nullifier', { proof }));
  assert.ok(singlyVerifies(nullifier, alpha.audience));
  assert.ok(!singlyVerifies({ ...nullifier, proof_id: 'another' }, alpha.audience));
  assert.equal(nullifier.proof_id, proof.proof_id);
  for (const again of [proof, { ...proof, prover_sovereign_id: 'gamma' }]) {
    const refused = await operate(alpha, '/admin/disclosure/nullifier', { proof: again });
    assert.equal(outcomeWithCause(refused), '422 nullifier_failed already_issued');
  }
  return disclosure;
}

/** Both vote on the authorization; alpha assembles the votes. */
async function reachConsensus({ alpha, beta }: Network, authorized: JsonObject) {
  const justification = justificationOf(authorized, alpha);
  const vote = (at: TestAuthority, approves = true) =>
    created(
      operate(at, '/admin/consensus/vote', {
        justification_proof: justification,
        vote: approves,
        reason: 'within the agreement',
      }),
    );
  const votes = [await vote(alpha), await vote(beta)];
  for (const [index, [name, { audience }]] of Object.entries({ alpha, beta }).entries()) {
    const cast = votes[index] as JsonObject;
    assert.deepEqual([cast.validator_sovereign_id, inner(cast, 'signature').key_id], [name, name]);
    assert.ok(singlyVerifies(cast, audience));
    assert.ok(!singlyVerifies({ ...cast, vote: false }, audience));
  }
  const assemble = (cast: readonly JsonObject[]) =>
    operate(alpha, '/admin/consensus/proof', {
      justification_proof: justification,
      votes: cast,
      required_threshold: 2,
      validator_sovereign_ids: ['alpha', 'beta'],
    });
  for (const tooFew of [
    [votes[0] as JsonObject, await vote(alpha)],
    [votes[0] as JsonObject, await vote(beta, false)],
  ]) {
    const refused = await assemble(tooFew);
    assert.equal(outcomeWithCause(refused), '422 proof_assembly_failed threshold_not_met');
  }
  const consensus = await created(assemble(votes));
  const validators = { alpha: alpha.audience, beta: beta.audience };
  const assembly: Exhibit = {
    what: 'the consensus proof',
    path: '/consensus/verify',
    body: { proof: consensus, validator_public_keys: validators },
    keys: { assembler_public_keys: [alpha.audience] },
    reason: 'valid',
    keyless: 'invalid_assembler_signature',
    tampered: { proof: { ...consensus, required_threshold: 1 } },
    exposed: 'invalid_assembler_signature',
  };
  await assertJudged(beta, assembly);
  return assembly;
}

/** Alpha licenses data to beta, and beta declares what it wants to do with it. */
async function licenseData({ clock, alpha, beta }: Network, authorized: JsonObject) {
  const policy = await created(
    operate(alpha, '/admin/data-usage/policy', {
      licensee_sovereign_id: 'beta',
      allowed_source_ids: ['climate'],
      allowed_access_types: ['read'],
      max_volume_bytes_per_session: 1_000_000,
      prohibited_classification_tags: ['secret'],
      ...window(clock.now()),
    }),
  );
  assert.ok(singlyVerifies(policy, alpha.audience));
  assert.ok(!singlyVerifies({ ...policy, allowed_source_ids: ['all'] }, alpha.audience));
  assert.deepEqual(parseJson((await get(alpha, '/data-usage/policy')).text), policy);
  assert.equal(outcome(await get(beta, '/data-usage/policy')), '404 no_policy');
  const source = { source_id: 'climate', source_type: 'public', owner_sovereign_id: 'alpha' };
  const intent = await created(
    operate(beta, '/admin/data-usage/intent', {
      sources: [source],
      access_types: ['read'],
      decision_id: authorized.decision_id as string,
      estimated_volume_bytes: 5000,
    }),
  );
  assert.ok(singlyVerifies(intent, beta.audience));
  const access: Exhibit = {
    what: 'the intent under the license',
    path: '/data-usage/verify',
    body: { intent, policy },
    keys: { agent_public_keys: [beta.audience] },
    reason: 'valid',
    keyless: 'intent_exceeds_license',
    tampered: { intent: { ...intent, estimated_volume_bytes: 1 } },
    exposed: 'intent_exceeds_license',
  };
  await assertJudged(alpha, access);
  return access;
}

test('accepting an offer unchanged binds the offerer once it has signed too', async () => {
  await using network = await twoSovereigns();
  const { clock, alpha, beta } = network;
  const offer = await offerToBeta(alpha);
  const half = await created(operate(beta, '/admin/agreements/accept', { offer }));
  assert.deepEqual(half.agreed_terms, offer.requested_terms);
  assert.deepEqual(agreementSigners(half, alpha.audience, beta.audience), [beta.audience]);
  const keys = {
    offerer_public_keys: [alpha.audience],
    responder_public_keys: [beta.audience],
  };
  const verdict = async (at: TestAuthority, agreement: JsonObject, by: JsonObject = keys) =>
    finding(await post(at, '/agreements/verify', { agreement, ...by }));
  assert.equal(await verdict(alpha, half), 'invalid_offerer_signature');
  assert.equal(await verdict(alpha, half, {}), 'invalid_offerer_signature', 'by its own key');
  const ofBeta = { offerer_public_keys: [beta.audience] };
  assert.equal(await verdict(alpha, half, ofBeta), 'missing_responder_signature');

  const commit = (at: TestAuthority, agreement: JsonObject) =>
    operate(at, '/admin/disclosure/commit', { agreement, capabilities: ['write'] });
  const unsigned = 'agreement_not_signed_here';
  assert.equal(
    outcomeWithCause(await decide(alpha, half, 'write')),
    `422 boundary_eval_failed ${unsigned}`,
  );
  assert.equal(outcomeWithCause(await commit(alpha, half)), `422 commit_failed ${unsigned}`);
  const alone = 'agreement_not_signed_by_other';
  assert.equal(
    outcomeWithCause(await decide(beta, half, 'write')),
    `422 boundary_eval_failed ${alone}`,
  );
  assert.equal(outcomeWithCause(await commit(beta, half)), `422 commit_failed ${alone}`);

  const sig = ourselves(alpha).key.sign(agreedText(half));
  const ours = { key_id: alpha.audience, sig };
  const whole = { ...half, signatures: [...signaturesOf(half), ours] };
  for (const at of [alpha, beta]) {
    assert.equal(await verdict(at, whole), 'accepted');
    assert.equal(await verdict(at, widened(whole)), 'invalid_offerer_signature');
    const turned = { ...whole, signatures: whole.signatures.toReversed() };
    assert.equal(await verdict(at, turned), 'accepted', 'in either order');
  }
  const withoutBeta = { ...whole, signatures: [ours] };
  assert.equal(await verdict(beta, withoutBeta), 'missing_responder_signature');
  assert.equal(await verdict(beta, withoutBeta, {}), 'invalid_offerer_signature', 'by its own key');

  const decision = await created(decide(alpha, whole, 'write'));
  await assertJudged(beta, decisionExhibit(decision, alpha, 'authorized', { agreement_id: 'a' }));
  const theirs = await created(decide(beta, whole, 'write'));
  await assertJudged(alpha, decisionExhibit(theirs, beta, 'authorized', { agreement_id: 'a' }));
  await created(commit(alpha, whole));

  clock.advance(MINUTE);
  const again = () => operate(beta, '/admin/agreements/accept', { offer });
  await created(again());
  clock.advance(1);
  assert.equal(outcomeWithCause(await again()), '422 accept_rejected offer_expired');
});

/** The record with a capability that was not agreed on. */
function widened(record: JsonObject): JsonObject {
  const terms = inner(record, 'agreed_terms');
  const capabilities = [...(terms.capabilities as string[]), 'write'];
  return { ...record, agreed_terms: { ...terms, capabilities } };
}
