/** Trust evidence over HTTP: build, verify [trust-2-1], [trust-2-2], [trust-3-2], [trust-5-5], [trust-6-3]. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { JsonFloat, type JsonObject, type JsonValue } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { FORGED_SIGNATURE, valuesExcept, WEAK_KEYS } from './support/hostile.ts';
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
import { stateDigest } from './support/test-stores.ts';
import {
  audited,
  importFeed,
  misspellableKey,
  post,
  revokeTreaty,
  sovereign,
  startUnlimited,
  UUID,
  verifies,
} from './support/trust.ts';
import {
  agreementBetween,
  type Change,
  combinationsOf,
  created,
  decisionBy,
  drop,
  eachOf,
  evidence,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  recognized,
  resigned,
  set,
  signaturesOf,
  without,
} from './support/trust-protocol.ts';

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
  await using na = await startUnlimited();
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
  assert.deepEqual(audited(na, 'trust_evidence_built'), [
    {
      evidence_id,
      source_sovereign_id: 'alpha',
      target_sovereign_id: 'beta',
      verdict: 'allow',
    },
  ]);
  const again = await created(operate(na, BUILD, request));
  assert.notEqual(again.evidence_id, evidence_id);
});

test('only the two parties and the verdict of a decision are required', async () => {
  await using na = await startUnlimited();
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

test('the verdict of the operator is signed whatever the graph says', async (t) => {
  await using na = await startUnlimited();
  for (const verdict of ['allow', 'warn', 'block', 'escalate']) {
    await t.test(verdict, async () => {
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
    });
  }
});

test('members that a decision or a signal does not have are dropped', async () => {
  await using na = await startUnlimited();
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
  await using na = await startUnlimited();
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

test('the graph digest is the given one, or else that of the graph as it is served', async (t) => {
  await using na = await startUnlimited();
  await recognized(na, sovereign('beta'));
  const own = await servedGraphDigest(na);
  for (const [name, body, expected] of [
    ['left out', {}, own],
    ...MISSING.map(([missing, graph_digest]) => [missing, { graph_digest }, own] as const),
    ['64 digits', { graph_digest: 'AB'.repeat(32) }, 'AB'.repeat(32)],
    ['any text', { graph_digest: 'sha256:whatever ' }, 'sha256:whatever '],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      const record = await created(operate(na, BUILD, { decision: decision(), ...body }));
      assert.equal(record.graph_digest, expected);
    });
  }
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

type Fault = readonly [code: string, cause: string, change: Change];

function inDecision(change: Change): Change {
  return (body) =>
    body.decision === undefined ? body : { ...body, decision: change(inner(body, 'decision')) };
}

const FAULTS = {
  'no decision': ['400 missing_decision', 'missing_decision', drop('decision')],
  'no verdict': ['400 invalid_decision', 'invalid_verdict', inDecision(drop('verdict'))],
  'no source': [
    '400 invalid_decision',
    'missing_source_sovereign_id',
    inDecision(drop('source_sovereign_id')),
  ],
  'a signal without code': [
    '400 invalid_decision',
    'invalid_signals',
    inDecision(set({ signals: [{ severity: 'info' }] })),
  ],
  'text for a count': [
    '400 invalid_decision',
    'invalid_hop_count',
    inDecision(set({ hop_count: '1' })),
  ],
  'text for a flag': [
    '400 invalid_decision',
    'invalid_trusted',
    inDecision(set({ trusted: 'false' })),
  ],
  'a reason that is no text': [
    '422 evidence_build_failed',
    'invalid_decision',
    inDecision(set({ reason: 5 })),
  ],
  'a digest that is no text': [
    '422 evidence_build_failed',
    'invalid_graph_digest',
    set({ graph_digest: 5 }),
  ],
} as const satisfies { readonly [name: string]: Fault };

test('a request that is wrong is refused with the code of the first thing wrong with it', async (t) => {
  await using na = await startUnlimited();
  const faults: { readonly [name: string]: Fault } = FAULTS;
  for (const { first, names } of combinationsOf(Object.keys(faults))) {
    await t.test(`${first}, of ${names.join(', ')}`, async () => {
      const spoilt = names
        .toReversed()
        .reduce<JsonObject>((spoiling, name) => faults[name]?.[2](spoiling) ?? spoiling, {
          decision: decision(),
        });
      const [code, cause] = faults[first] ?? [];
      assert.equal(outcomeWithCause(await operate(na, BUILD, spoilt)), `${code} ${cause}`);
    });
  }
  assert.deepEqual(audited(na, 'trust_evidence_built'), []);
});

test('each member of a decision has a type', async (t) => {
  await using na = await startUnlimited();
  const BUILD_FAILED = '422 evidence_build_failed invalid_decision';
  const invalid = (member: string) => `400 invalid_decision invalid_${member}`;
  const every = (
    member: string,
    values: readonly (readonly [string, JsonValue])[],
    expected: string,
  ): [string, JsonObject, string][] =>
    values.map(([name, value]) => [`${member} ${name}`, { [member]: value }, expected]);
  const rows: [string, JsonObject, string][] = [
    ...every('verdict', valuesExcept(), invalid('verdict')),
    ...['Allow', 'allow ', 'ALLOW', 'deny', 'active_treaty_path'].map(
      (verdict): [string, JsonObject, string] => [verdict, { verdict }, invalid('verdict')],
    ),
    ...['source_sovereign_id', 'target_sovereign_id'].flatMap((member) => [
      ...every(member, [['null', null]], `400 invalid_decision missing_${member}`),
      ...every(member, valuesExcept('null', 'a string', 'an empty string'), BUILD_FAILED),
      ...every(member, [['a string', 'x']], '201'),
    ]),
    ...['reason', 'evaluated_at'].flatMap((member) => [
      ...every(member, valuesExcept('a string', 'an empty string'), BUILD_FAILED),
      ...every(member, [['an empty string', '']], '201'),
    ]),
    ...every(
      'requested_roles',
      valuesExcept('a list', 'an empty list'),
      invalid('requested_roles'),
    ),
    ...every(
      'requested_roles',
      [
        ['an empty list', []],
        ['a list', ['']],
      ],
      '201',
    ),
    ...every(
      'requested_roles',
      valuesExcept('a string', 'an empty string').map(([name, value]) => [`[${name}]`, [value]]),
      BUILD_FAILED,
    ),
    ...every('signals', valuesExcept('a list', 'an empty list'), invalid('signals')),
    ...every('signals', [['an empty list', []]], '201'),
    ...every(
      'signals',
      valuesExcept().map(([name, value]) => [`[${name}]`, [value]]),
      invalid('signals'),
    ),
    ...every(
      'signals',
      [
        ['without severity', [{ code: 'c' }]],
        ['without code', [{ severity: 's' }]],
        ['with null for its code', [{ code: null, severity: 's' }]],
        ['with null for its severity', [{ code: 'c', severity: null }]],
        ['of which the second is wrong', [{ code: 'c', severity: 's' }, { code: 'c' }]],
      ],
      invalid('signals'),
    ),
    ...['code', 'severity', 'detail'].flatMap((member) =>
      valuesExcept('null', 'a string', 'an empty string').map(
        ([name, value]): [string, JsonObject, string] => [
          `signals with ${member} ${name}`,
          { signals: [{ code: 'c', severity: 's', [member]: value }] },
          BUILD_FAILED,
        ],
      ),
    ),
    ...every(
      'signals',
      [['with null for its detail', [{ code: 'c', severity: 's', detail: null }]]],
      BUILD_FAILED,
    ),
    ...every('hop_count', valuesExcept('the integer 7'), invalid('hop_count')),
    ...every(
      'hop_count',
      [
        ['2 to the 53', 2n ** 53n],
        ['1e300', new JsonFloat(1e300)],
      ],
      invalid('hop_count'),
    ),
    ...every(
      'hop_count',
      [
        ['-1', -1],
        ['-1.0', new JsonFloat(-1)],
      ],
      BUILD_FAILED,
    ),
    ...every(
      'hop_count',
      [
        ['0', 0],
        ['-0.0', new JsonFloat(-0)],
        ['the largest', Number.MAX_SAFE_INTEGER],
      ],
      '201',
    ),
    ...every('trusted', valuesExcept('true', 'false'), invalid('trusted')),
    ...every(
      'trusted',
      [
        ['true', true],
        ['false', false],
      ],
      '201',
    ),
    ...every('trust_path', valuesExcept(), '201'),
  ];
  for (const [name, changes, expected] of rows) {
    await t.test(name, async () => {
      const answer = await operate(na, BUILD, { decision: decision(changes) });
      assert.equal(outcomeWithCause(answer), expected);
      if (expected === '201') assert.ok(verifies(answer.body, na.audience));
    });
  }
  for (const [name, value] of [...MISSING, ...valuesExcept('an object')]) {
    await t.test(`a decision that is ${name}`, async () => {
      const answer = await operate(na, BUILD, { decision: value });
      assert.equal(outcomeWithCause(answer), '400 missing_decision missing_decision');
    });
  }
  for (const [name, value] of valuesExcept(
    'null',
    'false',
    'an empty string',
    'a string',
    'an empty list',
    'an empty object',
  )) {
    await t.test(`a graph digest that is ${name}`, async () => {
      const answer = await operate(na, BUILD, { decision: decision(), graph_digest: value });
      assert.equal(outcomeWithCause(answer), '422 evidence_build_failed invalid_graph_digest');
    });
  }
});

test('hostile decisions are refused or signed, and what is signed verifies', async () => {
  await using na = await startUnlimited();
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
  await using na = await startUnlimited();
  const events = auditEvents(na).length;
  const request = operatorRequest(na, BUILD, { decision: decision({ reason: 5 }) });
  assert.equal(outcome(await sendSigned(na, request)), '422 evidence_build_failed');
  assert.equal(auditEvents(na).length, events);
  assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
});

// Verification [trust-6-3]

test('verifying evidence reports the first reason', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const now = na.clock.now();
  const genuine = evidence(beta, gamma, now);
  const digest = String(genuine.graph_digest);
  const [signature] = signaturesOf(resigned(genuine, newKey()));
  const others = (count: number) => [...Array(count).fill(signature), ...signaturesOf(genuine)];
  const altered = (changes: JsonObject) => ({ ...genuine, ...changes });
  for (const [name, record, expected, reason] of [
    ['genuine', genuine, undefined, 'accepted'],
    [
      'of a block',
      evidence(beta, gamma, now, { verdict: 'block', trusted: false }),
      undefined,
      'accepted',
    ],
    [
      'with a verdict of its own',
      evidence(beta, gamma, now, { verdict: 'perhaps' }),
      undefined,
      'accepted',
    ],
    ['of long ago', evidence(beta, gamma, 0), undefined, 'accepted'],
    [
      'in the name of another',
      evidence(beta, gamma, now, { issuer_sovereign_id: 'gamma' }),
      undefined,
      'accepted',
    ],
    [
      'with signals of other members',
      evidence(beta, gamma, now, { signals: [{ any: 'text', more: '' }, {}] }),
      undefined,
      'accepted',
    ],
    [
      'with a prefixed digest',
      evidence(beta, gamma, now, { graph_digest: 'sha256:ab' }),
      'sha256:ab',
      'accepted',
    ],
    [
      'labeled wrong',
      altered({ signatures: signaturesOf(genuine).map(({ sig }) => ({ key_id: '', sig })) }),
      undefined,
      'accepted',
    ],
    [
      'whose sixteenth signature is right',
      altered({ signatures: others(15) }),
      undefined,
      'accepted',
    ],
    [
      'with members nobody knows',
      altered({ trust_path: [], status: 'revoked' }),
      undefined,
      'accepted',
    ],
    [
      'whose hop count is an integral float',
      altered({ hop_count: new JsonFloat(1) }),
      undefined,
      'accepted',
    ],
    [
      'whose time is spelt with +00:00',
      altered({ issued_at: String(genuine.issued_at).replace('Z', '+00:00') }),
      undefined,
      'accepted',
    ],
    ['that never expects a digest', genuine, null, 'accepted'],
    ['of the expected digest', genuine, digest, 'accepted'],
    ['of the expected digest in capitals', genuine, digest.toUpperCase(), 'graph_digest_mismatch'],
    ['of another digest', genuine, 'cd'.repeat(32), 'graph_digest_mismatch'],
    ['of no digest', genuine, '', 'graph_digest_mismatch'],
    ['of no digest, as expected', evidence(beta, gamma, now, { graph_digest: '' }), '', 'accepted'],
    ['unsigned', altered({ signatures: [] }), undefined, 'missing_signature'],
    [
      'unsigned, the member left out',
      without(genuine, 'signatures'),
      undefined,
      'missing_signature',
    ],
    ['unsigned and of another digest', altered({ signatures: [] }), '', 'missing_signature'],
    ['of a stranger', resigned(genuine, newKey()), undefined, 'invalid_signature'],
    ['of a stranger and of another digest', resigned(genuine, newKey()), '', 'invalid_signature'],
    [
      'turned from a block',
      { ...evidence(beta, gamma, now, { verdict: 'block' }), verdict: 'allow' },
      undefined,
      'invalid_signature',
    ],
    [
      'whose evaluation time is respelt',
      altered({ evaluated_at: '2026-01-15T12:00:00Z' }),
      undefined,
      'invalid_signature',
    ],
    [
      'whose metadata has 1 for 1.0',
      altered({ metadata: { weight: 1, kept: ['\u00e9'] } }),
      undefined,
      'invalid_signature',
    ],
    [
      'without its id, which each reader makes up',
      without(genuine, 'evidence_id'),
      undefined,
      'invalid_signature',
    ],
    [
      'without its time, which each reader makes up',
      without(genuine, 'issued_at'),
      undefined,
      'invalid_signature',
    ],
  ] as [string, JsonObject, JsonValue | undefined, string][]) {
    await t.test(`${name}: ${reason}`, async () => {
      const answer = await post(na, VERIFY, {
        evidence: record,
        issuer_public_keys: [beta.key.publicKey],
        ...(expected === undefined ? {} : { expected_graph_digest: expected }),
      });
      assert.equal(answer.status, 200, answer.text);
      const { evidence_id, ...rest } = answer.body;
      assert.deepEqual(rest, {
        accepted: reason === 'accepted',
        reason,
        issuer_sovereign_id: record.issuer_sovereign_id,
        verdict: record.verdict,
      });
      if (record.evidence_id === undefined) assert.match(evidence_id, UUID);
      else assert.equal(evidence_id, record.evidence_id);
    });
  }
});

test('without keys, evidence is verified with the authority’s own key', async (t) => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  await recognized(na, beta);
  const now = na.clock.now();
  const [ours, theirs] = [evidence(alpha, beta, now), evidence(beta, alpha, now)];
  for (const [name, body, reason] of [
    ['ours', { evidence: ours }, 'accepted'],
    ['ours, null for keys', { evidence: ours, issuer_public_keys: null }, 'accepted'],
    ['ours, no key accepted', { evidence: ours, issuer_public_keys: [] }, 'invalid_signature'],
    ['theirs, though a treaty names their key', { evidence: theirs }, 'invalid_signature'],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal((await post(na, VERIFY, body)).body.reason, reason);
    });
  }
});

test('a verification uses only the key list that it is given', async (t) => {
  await using na = await startUnlimited();
  const beta = sovereign('beta', misspellableKey());
  const record = evidence(beta, sovereign('gamma'), na.clock.now());
  for (const [name, keys, result] of keyListCases(beta.key)) {
    await t.test(name, async () => {
      const answer = await post(na, VERIFY, { evidence: record, issuer_public_keys: keys });
      if (result === 'malformed') {
        assert.match(outcomeWithCause(answer), /^400 invalid_evidence (invalid|too_many)_keys$/);
      } else {
        const reason = result === 'verifies' ? 'accepted' : 'invalid_signature';
        assert.equal(answer.body.reason, reason);
      }
    });
  }
  const forged = { ...record, signatures: [{ key_id: 'w', sig: FORGED_SIGNATURE }] };
  for (const weak of WEAK_KEYS) {
    const { body } = await post(na, VERIFY, { evidence: forged, issuer_public_keys: [weak] });
    assert.equal(body.reason, 'invalid_signature');
  }
});

test('invalid evidence is refused', async (t) => {
  await using na = await startUnlimited();
  const record = evidence(sovereign('beta'), sovereign('gamma'), na.clock.now());
  const [signature] = signaturesOf(record);
  const MISSES = '400 missing_evidence missing_evidence';
  const INVALID = '400 invalid_evidence invalid_evidence';
  const required = [
    'issuer_sovereign_id',
    'source_sovereign_id',
    'target_sovereign_id',
    'verdict',
    'reason',
    'trusted',
    'hop_count',
    'graph_digest',
    'evaluated_at',
    'issued_by',
  ];
  for (const [name, body, expected] of [
    ['nothing', {}, MISSES],
    ...MISSING.map(([missing, value]) => [missing, { evidence: value }, MISSES] as const),
    ['nothing, and a wrong key list', { issuer_public_keys: 5 }, MISSES],
    ['text', { evidence: 'text' }, INVALID],
    ['a list', { evidence: [record] }, INVALID],
    ['true', { evidence: true }, INVALID],
    ['of one member, and a wrong key list', { evidence: { a: 1 }, issuer_public_keys: 5 }, INVALID],
    ...required.map(
      (member) => [`without ${member}`, { evidence: without(record, member) }, INVALID] as const,
    ),
    ['a signal with a number', { evidence: { ...record, signals: [{ code: 5 }] } }, INVALID],
    [
      'a signal with null',
      { evidence: { ...record, signals: [{ code: 'c', detail: null }] } },
      INVALID,
    ],
    ['a signal with a list', { evidence: { ...record, signals: [{ code: ['c'] }] } }, INVALID],
    ['a signal that is a float', { evidence: { ...record, signals: [new JsonFloat(1)] } }, INVALID],
    ['metadata that is a float', { evidence: { ...record, metadata: new JsonFloat(1) } }, INVALID],
    ['metadata that is null', { evidence: { ...record, metadata: null } }, INVALID],
    [
      'a time without offset',
      { evidence: { ...record, issued_at: '2026-01-01T00:00:00' } },
      INVALID,
    ],
    ['a negative hop count', { evidence: { ...record, hop_count: -1 } }, INVALID],
    ['17 signatures', { evidence: { ...record, signatures: Array(17).fill(signature) } }, INVALID],
    ...valuesExcept('null', 'a string', 'an empty string').map(
      ([given, value]) =>
        [
          `genuine, its expected digest ${given}`,
          { evidence: record, expected_graph_digest: value },
          '400 invalid_evidence invalid_expected_graph_digest',
        ] as const,
    ),
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal(outcomeWithCause(await post(na, VERIFY, body)), expected);
    });
  }
});

test('no member of evidence can be changed unnoticed', async () => {
  await using na = await startUnlimited();
  const beta = sovereign('beta');
  const record = evidence(beta, sovereign('gamma'), na.clock.now());
  const keys = { issuer_public_keys: [beta.key.publicKey] };
  assert.equal((await post(na, VERIFY, { evidence: record, ...keys })).body.accepted, true);
  await eachOf(mutationsOf(record), async ({ name, path, record: altered }) => {
    const answer = await post(na, VERIFY, { evidence: altered, ...keys });
    if (answer.status === 200) {
      assert.equal(answer.body.accepted, /^signatures\.\d+\.key_id$/.test(path), name);
    } else {
      assert.equal(outcomeWithCause(answer), '400 invalid_evidence invalid_evidence', name);
    }
  });
});

test('verifying writes only to the log', async () => {
  await using na = await startUnlimited();
  const record = evidence(ourselves(na), sovereign('beta'), na.clock.now());
  await na.flush();
  const before = await stateDigest(na);
  await post(na, VERIFY, { evidence: record });
  await post(na, VERIFY, { evidence: record, issuer_public_keys: [] });
  await post(na, VERIFY, { evidence: 'text' });
  await na.flush();
  assert.equal(await stateDigest(na), before);
  assert.deepEqual(
    audited(na, 'trust_evidence_verified').map(({ evidence_id, accepted }) => [
      evidence_id,
      accepted,
    ]),
    [
      [record.evidence_id, true],
      [record.evidence_id, false],
    ],
  );
});

test('evidence passed on by others still verifies', async () => {
  await using na = await startUnlimited();
  const record = await created(operate(na, BUILD, { decision: decision() }));
  const reordered = Object.fromEntries(Object.entries(record).reverse());
  assert.equal((await post(na, VERIFY, { evidence: reordered })).body.accepted, true);
  const escaped = canonicalJson(record).replaceAll('o', '\\u006f').replaceAll(',', ' ,\n');
  const answer = await send(na, 'POST', VERIFY, { body: `{"evidence":${escaped}}` });
  assert.equal(answer.body.accepted, true);
});

test('each public verification has its own limit, 60 in a minute', async () => {
  await using na = await startUnlimited({ environment: { MESH_RATE_LIMIT_VERIFY: '' } });
  const [alpha, beta, now] = [ourselves(na), sovereign('beta'), na.clock.now()];
  for (const [path, body, empty] of [
    [VERIFY, { evidence: evidence(alpha, beta, now) }, '400 missing_evidence'],
    [
      '/agreements/verify',
      { agreement: agreementBetween(alpha, beta, now) },
      '400 missing_agreement',
    ],
    ['/boundary/verify', { decision: decisionBy(alpha, now) }, '400 missing_decision'],
  ] as [string, JsonObject, string][]) {
    for (let asked = 0; asked < 30; asked += 1) {
      assert.equal(outcome(await post(na, path, body)), '200');
      assert.equal(outcome(await post(na, path, {})), empty, 'refusals count too');
    }
    assert.equal(outcome(await post(na, path, body)), '429 rate_limit_exceeded');
    const unreadable = await send(na, 'POST', path, { body: '{' });
    assert.equal(outcome(unreadable), '429 rate_limit_exceeded', 'before the body');
  }
  assert.equal((await operate(na, BUILD, { decision: decision() })).status, 201);
  na.clock.advance(60 * SECOND);
  assert.equal(outcome(await post(na, VERIFY, {})), '400 missing_evidence');
});
