/** Trust evidence over HTTP: build, verify [trust-2-1], [trust-2-2], [trust-3-2], [trust-5-5], [trust-6-3]. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyEvidence } from '../src/protocol/api/verifications.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  get,
  newKey,
  operate,
  operatorRequest,
  outcome,
  send,
  sendSigned,
} from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';
import { checkChanges, checkTable, inEach } from './support/tables.ts';
import {
  audited,
  importFeed,
  post,
  revokeTreaty,
  sovereign,
  startUnlimited,
  UUID,
  verifies,
} from './support/trust.ts';
import {
  type Change,
  created,
  drop,
  eachOf,
  evidence,
  inner,
  MISSING,
  mutationsOf,
  outcomeWithCause,
  recognized,
  resigned,
  set,
  signaturesOf,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW } from './support/verifications.ts';

const shared = sharedAuthority();

const BUILD = '/admin/trust-evidence';
const VERIFY = '/trust-evidence/verify';

function decision(changes: JsonObject = {}): JsonObject {
  return {
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: 'active_treaty_path',
    requested_roles: ['role:client', 'role:client'],
    trusted: true,
    trust_path: [{ from: 'alpha', to: 'beta', status: 'active', treaty_id: 't-1' }],
    hop_count: 2,
    signals: [{ code: 'seen', severity: 'info', detail: 'Zürich' }],
    evaluated_at: '2026-01-15T12:00:00+00:00',
    ...changes,
  };
}

async function servedGraphDigest(na: TestAuthority): Promise<string> {
  const { text } = await get(na, '/recognition-graph');
  return createHash('sha256').update(text).digest('hex');
}

// Evidence from a decision

test('evidence is the decision as stated; it is signed and audited', async () => {
  const na = await shared();
  const request = { decision: decision() };
  const record = await created(operate(na, BUILD, request, { operator: na.standard }));
  const { evidence_id, signatures, ...rest } = record;
  assert.match(String(evidence_id), UUID);
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
    reason: 'active_treaty_path',
    requested_roles: ['role:client', 'role:client'],
    trusted: true,
    hop_count: 2,
    signals: [{ code: 'seen', severity: 'info', detail: 'Zürich' }],
    graph_digest: await servedGraphDigest(na),
    evaluated_at: '2026-01-15T12:00:00+00:00',
    issued_at: formatInstant(na.clock.now()),
    issued_by: na.audience,
    metadata: {},
  });
  assert.deepEqual(
    signaturesOf(record).map(({ key_id }) => key_id),
    [na.audience],
  );
  assert.ok(verifies(record, na.audience));
  assert.deepEqual(audited(na, 'trust_evidence_built').at(-1), {
    evidence_id,
    source_sovereign_id: 'alpha',
    target_sovereign_id: 'beta',
    verdict: 'allow',
  });
  const again = await created(operate(na, BUILD, request));
  assert.notEqual(again.evidence_id, evidence_id);
});

test('only the two parties and the verdict of a decision are required', async () => {
  const na = await shared();
  const least = { source_sovereign_id: 'gamma', target_sovereign_id: 'gamma', verdict: 'block' };
  const record = await created(operate(na, BUILD, { decision: least }));
  const { evidence_id, signatures, graph_digest, ...rest } = record;
  assert.deepEqual(rest, {
    issuer_sovereign_id: 'alpha',
    ...least,
    reason: '',
    requested_roles: [],
    trusted: false,
    hop_count: 0,
    signals: [],
    evaluated_at: '',
    issued_at: formatInstant(na.clock.now()),
    issued_by: na.audience,
    metadata: {},
  });
  assert.ok(verifies(record, na.audience));
});

test('the configured label of the authority key is in evidence and its signature', async () => {
  await using na = await startUnlimited({ environment: { NA_KEY_ID: 'na-2026' } });
  const record = await created(operate(na, BUILD, { decision: decision() }));
  assert.equal(record.issued_by, 'na-2026');
  assert.equal(signaturesOf(record)[0]?.key_id, 'na-2026');
  assert.ok(verifies(record, na.audience));
});

test('the verdict of the operator is signed whatever the graph says', async () => {
  const na = await shared();
  for (const verdict of ['allow', 'warn', 'block', 'escalate']) {
    const record = await created(operate(na, BUILD, { decision: decision({ verdict }) }));
    assert.equal(record.verdict, verdict);
    const { body } = await post(na, VERIFY, { evidence: record });
    assert.deepEqual(body, {
      accepted: true,
      reason: 'accepted',
      evidence_id: record.evidence_id,
      issuer_sovereign_id: 'alpha',
      verdict,
    });
  }
});

test('members that a decision or a signal does not have are dropped', async () => {
  const na = await shared();
  const claims = {
    evidence_id: 'chosen',
    issuer_sovereign_id: 'beta',
    issued_by: 'chosen',
    issued_at: '2020-01-01T00:00:00Z',
    metadata: { chosen: true },
    signatures: [{ key_id: 'k', sig: 's' }],
  };
  const signals = [{ code: 'c', severity: 's', extra: 5 }];
  const record = await created(
    operate(na, BUILD, { decision: decision({ ...claims, signals }), ...claims }),
  );
  assert.notEqual(record.evidence_id, 'chosen');
  assert.equal(record.issuer_sovereign_id, 'alpha');
  assert.equal(record.issued_by, na.audience);
  assert.deepEqual(record.metadata, {});
  assert.deepEqual(record.signals, [{ code: 'c', severity: 's', detail: '' }]);
  assert.equal('trust_path' in record, false);
  assert.ok(verifies(record, na.audience));
});

test('a hop count may be an integral float, and text may be any text', async () => {
  const na = await shared();
  const record = await created(
    operate(na, BUILD, {
      decision: decision({
        hop_count: new JsonFloat(3),
        source_sovereign_id: '\u{1f680}',
        reason: '\u007f\u2028',
        evaluated_at: 'yesterday',
        signals: [{ code: '', severity: 'unheard of' }],
      }),
    }),
  );
  assert.equal(record.hop_count, 3);
  assert.equal(record.evaluated_at, 'yesterday');
  assert.deepEqual(record.signals, [{ code: '', severity: 'unheard of', detail: '' }]);
  assert.ok(verifies(record, na.audience));
});

// The graph that it is based on

test('the graph digest is the given one, or else that of the graph as it is served', async () => {
  const na = await shared();
  await recognized(na, sovereign('beta'));
  const own = await servedGraphDigest(na);
  const digestOf = async (changes: JsonObject) => {
    const answer = await operate(na, BUILD, { decision: decision(), ...changes });
    return answer.status === 201 ? answer.body.graph_digest : outcomeWithCause(answer);
  };
  await checkTable(
    {
      [own]: { 'left out': {}, ...inEach('graph_digest', MISSING) },
      ['AB'.repeat(32)]: { '64 digits': { graph_digest: 'AB'.repeat(32) } },
      'sha256:whatever ': { 'any text': { graph_digest: 'sha256:whatever ' } },
      '422 evidence_build_failed invalid_graph_digest': inEach('graph_digest', [
        ...valuesExcept('null', 'false', 'an empty string', 'a string').filter(
          ([name]) => !/an empty (list|object)/.test(name),
        ),
      ]),
    },
    digestOf,
  );
});

test('the graph digest follows the graph: treaties come, end and expire, feeds arrive', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const seen: string[] = [];
  const look = async () => {
    const { graph_digest } = await created(operate(na, BUILD, { decision: decision() }));
    assert.equal(graph_digest, await servedGraphDigest(na));
    assert.equal(graph_digest, (await get(na, '/atlas.json')).body.graph_digest);
    const again = await created(operate(na, BUILD, { decision: decision() }));
    assert.equal(again.graph_digest, graph_digest, 'building evidence does not change it');
    seen.push(String(graph_digest));
  };
  await look();
  const { treaty_id } = await recognized(na, beta, { validity_hours: 96 });
  await look();
  await recognized(na, sovereign('gamma'), { validity_hours: 1 });
  await look();
  na.clock.advance(HOUR);
  await look();
  na.clock.advance(24 * HOUR);
  await look();
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['a-1'] });
  assert.equal((await importFeed(na, feed)).status, 200);
  await look();
  assert.equal((await revokeTreaty(na, treaty_id)).status, 200);
  await look();
  assert.equal(seen[0], '63971e8c90f3b65e059883ba09745e8b4c57146e78ee4d2dbbd54a02b311c331');
  assert.equal(new Set(seen).size, seen.length);
});

// Faults of a request, in the order of the checks

const FAULTS: readonly (readonly [expected: string, change: Change])[] = [
  ['400 missing_decision missing_decision', drop('decision')],
  ['400 invalid_decision invalid_verdict', inDecision(drop('verdict'))],
  ['400 invalid_decision missing_source_sovereign_id', inDecision(drop('source_sovereign_id'))],
  ['400 invalid_decision invalid_signals', inDecision(set({ signals: [{ severity: 'info' }] }))],
  ['400 invalid_decision invalid_hop_count', inDecision(set({ hop_count: '1' }))],
  ['400 invalid_decision invalid_trusted', inDecision(set({ trusted: 'false' }))],
  ['422 evidence_build_failed invalid_decision', inDecision(set({ reason: 5 }))],
  ['422 evidence_build_failed invalid_graph_digest', set({ graph_digest: 5 })],
];

function inDecision(change: Change): Change {
  return (body) =>
    body.decision === undefined ? body : { ...body, decision: change(inner(body, 'decision')) };
}

test('a request that is wrong is refused with the code of the first thing wrong with it', async () => {
  const na = await shared();
  const before = audited(na, 'trust_evidence_built').length;
  await checkChanges(FAULTS, { decision: decision() }, async (body) =>
    outcomeWithCause(await operate(na, BUILD, body)),
  );
  assert.equal(audited(na, 'trust_evidence_built').length, before);
});

test('each member of a decision has a type', async () => {
  const na = await shared();
  const FAILED = '422 evidence_build_failed invalid_decision';
  const invalid = (member: string) => `400 invalid_decision invalid_${member}`;
  const listed = (values: readonly (readonly [string, JsonValue])[]) =>
    values.map(([name, value]) => [`[${name}]`, [value]] as const);
  const noText = valuesExcept('a string', 'an empty string');
  const noList = valuesExcept('a list', 'an empty list');
  const signal = { code: 'c', severity: 's' };
  const table: Record<string, Readonly<Record<string, JsonObject>>> = {
    [invalid('verdict')]: inEach('verdict', [
      ...valuesExcept(),
      ...['Allow', 'allow ', 'ALLOW', 'deny', 'active_treaty_path'].map(
        (text) => [text, text] as const,
      ),
    ]),
    [invalid('requested_roles')]: inEach('requested_roles', noList),
    [invalid('signals')]: inEach('signals', [
      ...noList,
      ...listed(valuesExcept()),
      ['without severity', [{ code: 'c' }]],
      ['without code', [{ severity: 's' }]],
      ['with null for its code', [{ ...signal, code: null }]],
      ['with null for its severity', [{ ...signal, severity: null }]],
      ['of which the second is wrong', [signal, { code: 'c' }]],
    ]),
    [invalid('hop_count')]: inEach('hop_count', [
      ...valuesExcept('the integer 7'),
      ['2 to the 53', 2n ** 53n],
      ['1e300', new JsonFloat(1e300)],
    ]),
    [invalid('trusted')]: inEach('trusted', valuesExcept('true', 'false')),
    [FAILED]: {
      ...inEach('reason', noText),
      ...inEach('evaluated_at', noText),
      ...inEach('requested_roles', listed(noText)),
      ...inEach('signals', [
        ...['code', 'severity', 'detail'].flatMap((member) =>
          valuesExcept('null', 'a string', 'an empty string').map(
            ([name, value]) => [`${member} ${name}`, [{ ...signal, [member]: value }]] as const,
          ),
        ),
        ['with null for its detail', [{ ...signal, detail: null }]],
      ]),
      ...inEach('hop_count', [
        ['-1', -1],
        ['-1.0', new JsonFloat(-1)],
      ]),
    },
    201: {
      ...inEach('reason', [['an empty string', '']]),
      ...inEach('evaluated_at', [['an empty string', '']]),
      'no roles': { requested_roles: [] },
      'a role without a name': { requested_roles: [''] },
      'no signals': { signals: [] },
      ...inEach('hop_count', [
        ['0', 0],
        ['-0.0', new JsonFloat(-0)],
        ['the largest', Number.MAX_SAFE_INTEGER],
      ]),
      trusted: { trusted: true },
      'not trusted': { trusted: false },
      ...inEach('trust_path', valuesExcept()),
    },
  };
  for (const member of ['source_sovereign_id', 'target_sovereign_id']) {
    const wrong = valuesExcept('null', 'a string', 'an empty string');
    table[`400 invalid_decision missing_${member}`] = inEach(member, [['null', null]]);
    table[FAILED] = { ...table[FAILED], ...inEach(member, wrong) };
    table[201] = { ...table[201], ...inEach(member, [['a string', 'x']]) };
  }
  await checkTable(table, async (changes) => {
    const answer = await operate(na, BUILD, { decision: decision(changes) });
    if (answer.status === 201) assert.ok(verifies(answer.body, na.audience));
    return outcomeWithCause(answer);
  });
  const missing = [...MISSING, ...valuesExcept('an object')];
  await checkTable(
    { '400 missing_decision missing_decision': inEach('decision', missing) },
    async (body) => outcomeWithCause(await operate(na, BUILD, body)),
  );
});

test('hostile decisions are refused or signed, and what is signed verifies', async () => {
  const na = await shared();
  await eachOf(mutationsOf(decision()), async ({ name, record }) => {
    const answer = await operate(na, BUILD, { decision: record });
    if (answer.status !== 201) {
      assert.match(outcome(answer), /^(400 invalid_decision|422 evidence_build_failed)$/, name);
    } else {
      const { body } = await send(na, 'POST', VERIFY, { body: `{"evidence":${answer.text}}` });
      assert.equal(body.accepted, true, name);
    }
  });
});

test('a refused request spends its nonce and changes nothing else', async () => {
  const na = await shared();
  const events = auditEvents(na).length;
  const request = operatorRequest(na, BUILD, { decision: decision({ reason: 5 }) });
  assert.equal(outcome(await sendSigned(na, request)), '422 evidence_build_failed');
  assert.equal(auditEvents(na).length, events);
  assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
});

// Verification [trust-6-3]; `verifications.test.ts` has what all verifications share.

test('verifying evidence reports the first reason', async () => {
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const genuine = evidence(beta, gamma, NOW);
  const digest = String(genuine.graph_digest);
  const made = (changes: JsonObject) => evidence(beta, gamma, NOW, changes);
  const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
  const byStranger = resigned(genuine, newKey());
  const [signature] = signaturesOf(byStranger);
  const others = (count: number) => [...Array(count).fill(signature), ...signaturesOf(genuine)];
  const expecting = (record: JsonObject, expected_graph_digest: JsonValue) => ({
    evidence: record,
    expected_graph_digest,
  });
  const unsigned = altered({ signatures: [] });
  const mislabeled = signaturesOf(genuine).map(({ sig }) => ({ key_id: '', sig }));
  const laterSpelling = String(genuine.issued_at).replace('Z', '+00:00');
  await checkVerdicts(
    verifyEvidence,
    {
      accepted: {
        ...eachAs('evidence', {
          genuine,
          'of a block': made({ verdict: 'block', trusted: false }),
          'with a verdict of its own': made({ verdict: 'perhaps' }),
          'of long ago': evidence(beta, gamma, 0),
          'in the name of another': made({ issuer_sovereign_id: 'gamma' }),
          'with signals of other members': made({ signals: [{ any: 'text', more: '' }, {}] }),
          'labeled wrong': altered({ signatures: mislabeled }),
          'whose sixteenth signature is right': altered({ signatures: others(15) }),
          'with members nobody knows': altered({ trust_path: [], status: 'revoked' }),
          'whose hop count is an integral float': altered({ hop_count: new JsonFloat(1) }),
          'whose time is spelt with +00:00': altered({ issued_at: laterSpelling }),
        }),
        'with a prefixed digest': expecting(made({ graph_digest: 'sha256:ab' }), 'sha256:ab'),
        'that never expects a digest': expecting(genuine, null),
        'of the expected digest': expecting(genuine, digest),
        'of no digest, as expected': expecting(made({ graph_digest: '' }), ''),
      },
      graph_digest_mismatch: {
        'of the expected digest in capitals': expecting(genuine, digest.toUpperCase()),
        'of another digest': expecting(genuine, 'cd'.repeat(32)),
        'of no digest': expecting(genuine, ''),
      },
      missing_signature: {
        unsigned: { evidence: unsigned },
        'unsigned, the member left out': { evidence: without(genuine, 'signatures') },
        'unsigned and of another digest': expecting(unsigned, ''),
      },
      invalid_signature: {
        ...eachAs('evidence', {
          'of a stranger': byStranger,
          'turned from a block': { ...made({ verdict: 'block' }), verdict: 'allow' },
          'whose evaluation time is respelt': altered({ evaluated_at: '2026-01-15T12:00:00Z' }),
          'whose metadata has 1 for 1.0': altered({ metadata: { weight: 1, kept: ['\u00e9'] } }),
          'without its id, which each reader makes up': without(genuine, 'evidence_id'),
          'without its time, which each reader makes up': without(genuine, 'issued_at'),
        }),
        'of a stranger and of another digest': expecting(byStranger, ''),
      },
      '400 invalid_evidence invalid_expected_graph_digest': inEach(
        'expected_graph_digest',
        valuesExcept('null', 'a string', 'an empty string'),
      ),
      '400 invalid_evidence invalid_evidence': eachAs('evidence', {
        ...Object.fromEntries(
          REQUIRED.map((member) => [`without ${member}`, without(genuine, member)]),
        ),
        'a signal with a number': altered({ signals: [{ code: 5 }] }),
        'a signal with null': altered({ signals: [{ code: 'c', detail: null }] }),
        'a signal with a list': altered({ signals: [{ code: ['c'] }] }),
        'a signal that is a float': altered({ signals: [new JsonFloat(1)] }),
        'metadata that is a float': altered({ metadata: new JsonFloat(1) }),
        'metadata that is null': altered({ metadata: null }),
        'a time without offset': altered({ issued_at: '2026-01-01T00:00:00' }),
        'a negative hop count': altered({ hop_count: -1 }),
        '17 signatures': altered({ signatures: Array(17).fill(signature) }),
      }),
    },
    { evidence: genuine, issuer_public_keys: [beta.key.publicKey] },
  );
});

const REQUIRED = [
  ...['issuer_sovereign_id', 'source_sovereign_id', 'target_sovereign_id', 'verdict', 'reason'],
  ...['trusted', 'hop_count', 'graph_digest', 'evaluated_at', 'issued_by'],
];

test('evidence passed on by others still verifies', async () => {
  const na = await shared();
  const record = await created(operate(na, BUILD, { decision: decision() }));
  const reordered = Object.fromEntries(Object.entries(record).reverse());
  assert.equal((await post(na, VERIFY, { evidence: reordered })).body.accepted, true);
  const escaped = canonicalJson(record).replaceAll('o', '\\u006f').replaceAll(',', ' ,\n');
  const answer = await send(na, 'POST', VERIFY, { body: `{"evidence":${escaped}}` });
  assert.equal(answer.body.accepted, true);
});
