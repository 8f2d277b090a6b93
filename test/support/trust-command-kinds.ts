/** The operators' commands of the trust protocol, each with a request that is accepted and everything that is refused. */
import { JsonFloat, type JsonObject, type JsonValue } from '../../src/base/json/value.ts';
import { MAX_ACCESS_TYPES } from '../../src/protocol/records/record.ts';
import { LONG_LIST, offerRequest, termsRequest } from './agreements.ts';
import { assembly, justification } from './consensus.ts';
import { ACCESS, policyTerms, SOURCE } from './data-usage.ts';
import { PADDING, proofOf, repeated, SET } from './disclosure.ts';
import { valuesExcept, WRONG_TIMESTAMPS } from './hostile.ts';
import { type Cases, inEach, type Table } from './tables.ts';
import { sovereign } from './trust.ts';
import type { TrustCommand } from './trust-commands.ts';
import {
  agreedTerms,
  agreementBetween,
  type Change,
  counterTo,
  drop,
  inner,
  MISSING,
  offerBetween,
  type Party,
  set,
  without,
} from './trust-protocol.ts';

type Values = readonly (readonly [string, JsonValue])[];

export interface CommandKind {
  readonly name: TrustCommand;
  readonly what?: string;
  /** A request that is accepted by `alpha`, which recognizes `beta`. */
  bodyFor(alpha: Party, now: number): JsonObject;
  /** What is wrong with a request, in the order of the checks. */
  readonly faults: readonly Fault[];
  /** Changes of the request by their outcome. */
  readonly table: Table;
  /** If the name of the sovereign is the label of the signature, not that of its key. */
  readonly signedBy?: 'sovereign';
  /** The details of the audit entry that are no members of the same name of the record, or else of the request. */
  details?(record: JsonObject, body: JsonObject): JsonObject;
  /** The members of which altered values may be accepted, each followed by a blank; all if absent. */
  readonly mayPass?: RegExp;
}

export const beta = sovereign('beta');

const NOT_MISSING = valuesExcept(
  ...(['null', 'false', 'an empty string', 'an empty list', 'an empty object'] as const),
);

function except(taken: string): Values {
  return NOT_MISSING.filter(([name]) => name !== taken);
}

const NO_TEXT = valuesExcept('null', 'a string', 'an empty string');
const NO_LIST = valuesExcept('a list', 'an empty list');
const NO_COUNT: Values = [
  ...valuesExcept('the integer 7'),
  ['2 to the 53', 2n ** 53n],
  ['1e300', new JsonFloat(1e300)],
  ['"7"', '7'],
];
const NEGATIVE: Values = [
  ['-1', -1],
  ['-1.0', new JsonFloat(-1)],
];
const NO_VOLUME = [...NO_COUNT, ...NEGATIVE].filter(([name]) => name !== 'null');

// Faults, and tables by outcome: of what a member is, and how the code of the route and its cause say so

type Fault = readonly [expected: string, change: Change];

function lacking(code: string, member: string): Fault {
  return [`${code} missing_${member}`, drop(member)];
}

/** Whatever is wrong with the member by default: it is left out. */
function wrong(code: string, member: string, change: Change = drop(member)): Fault {
  return [`${code} invalid_${member}`, change];
}

function being(code: string, member: string, value: JsonValue): Fault {
  return wrong(code, member, set({ [member]: value }));
}

function inside(code: string, member: string, change: Change, cause = `invalid_${member}`): Fault {
  return [`${code} ${cause}`, within(member, change)];
}

/** Each value that counts as missing [trust-1-1]. */
function missing(code: string, ...members: readonly string[]): Table {
  const entries = members.map((member) => [`${code} missing_${member}`, inEach(member, MISSING)]);
  return Object.fromEntries(entries);
}

function invalid(code: string, member: string, values: Values): Table {
  return { [`${code} invalid_${member}`]: inEach(member, values) };
}

/** Changes the member, unless the body has none. */
function within(member: string, change: Change): Change {
  return (body) =>
    body[member] === undefined ? body : { ...body, [member]: change(inner(body, member)) };
}

// Timestamps of requests [trust-1-3]

const UNREADABLE: Values = [
  ...[
    ...WRONG_TIMESTAMPS,
    ...['9999-12-31T23:59:59-05:00', '0001-01-01T00:00:00+00:01', '2030-01-01T00:00:00+2:00'],
    ...['10000-01-01T00:00:00Z', '+12030-01-01T00:00:00Z', ' 2030-01-01', '2030-01-01Z '],
  ].map((text) => [text, text] as const),
  ['seconds since the epoch', 1_893_456_000],
  ['seconds as a float', new JsonFloat(1_893_456_000.5)],
  ...valuesExcept('a string'),
];

const FIRST = '2030-01-01T00:00:00Z';
const window = (valid_from: string, valid_until: string) => ({ valid_from, valid_until });
const IN_ORDER: Cases<JsonObject> = {
  'ends a microsecond after': window(FIRST, '2030-01-01T00:00:00.000001Z'),
  'ends before as text, after as time': window('2030-01-01T02:00:00+02:00', '2030-01-01T01:00:00Z'),
  'ends centuries after': window('0001-01-01', '9999-12-31'),
};
const OUT_OF_ORDER: Cases<JsonObject> = {
  'ends at once': window(FIRST, FIRST),
  'ends at once in another offset': window(FIRST, '2030-01-01T02:00:00+02:00'),
  'ends a microsecond before': window('2030-01-01T00:00:00.000001Z', FIRST),
  'ends after as text, before as time': window(FIRST, '2030-01-01T01:00:00+02:00'),
};

function windowFaults(code: string): readonly Fault[] {
  return [
    wrong(code, 'valid_from'),
    wrong(code, 'valid_until'),
    [`${code} timestamp_order`, set(window('2030-01-02', '2030-01-01'))],
  ];
}

function windowTable(code: string): Table {
  return {
    ...invalid(code, 'valid_from', UNREADABLE),
    ...invalid(code, 'valid_until', UNREADABLE),
    [`${code} timestamp_order`]: OUT_OF_ORDER,
  };
}

/** Of a request with terms. */
function termsTable(absent: string, rejected: string): Table {
  return {
    ...invalid(absent, 'capabilities', [...valuesExcept('a list'), ['4097', LONG_LIST]]),
    ...invalid(rejected, 'capabilities', [
      ['with a number', ['read', 5]],
      ['with null', ['read', null]],
      ['with an empty string', ['read', '']],
      ['with a list', [['read']]],
      ['with an object', [{ read: true }]],
    ]),
    ...invalid(rejected, 'scope', except('an object')),
  };
}

/** An answer to our own offer, about these capabilities and without a requirement of freshness. */
function agreementOf(alpha: Party, now: number, capabilities: readonly string[]): JsonObject {
  const agreed_terms = agreedTerms(now, { capabilities, freshness_commitment: 0 });
  return agreementBetween(alpha, beta, now, { agreed_terms }, [alpha.key]);
}

const CONTEXT_MEMBERS = {
  context_id: 'a string',
  parent_kind: 'a string',
  requester_sovereign_id: 'a string',
  provider_sovereign_id: 'a string',
  request_parameters: 'an object',
  context_freshness_seq: 'the integer 7',
} as const;

function inContext(member: string, values: Values): Cases<JsonObject> {
  const named = values.map(([name, value]) => [`${member} ${name}`, { [member]: value }] as const);
  return inEach('context', named);
}

function contextTable(): Table {
  const accepted: Cases<JsonObject>[] = [inEach('context', MISSING)];
  const table: Record<string, Cases<JsonObject>> = {};
  for (const [member, taken] of Object.entries(CONTEXT_MEMBERS)) {
    const code = `400 missing_boundary_fields invalid_${member}`;
    table[code] = inContext(member, except(taken));
    accepted.push(inContext(member, MISSING));
    const fitting = inContext(
      member,
      NOT_MISSING.filter(([name]) => name === taken),
    );
    // A sovereign must be a party of the agreement, too.
    const isParty = member.endsWith('_sovereign_id');
    if (!isParty) accepted.push(fitting);
    else table[MISMATCH] = { ...table[MISMATCH], ...fitting };
  }
  const counts = 'context_freshness_seq';
  const noCounts = inContext(counts, [
    ...NEGATIVE,
    ...NO_COUNT.slice(-3),
    ['2 to the 80', 2n ** 80n],
  ]);
  const unknown = { context: { requested_at: '2020-01-01T00:00:00Z', other: 5 } };
  return {
    ...table,
    [`400 missing_boundary_fields invalid_${counts}`]: {
      ...table[`400 missing_boundary_fields invalid_${counts}`],
      ...noCounts,
    },
    201: Object.assign({ 'members nobody knows': unknown }, ...accepted),
  };
}

const MISMATCH = '422 boundary_eval_failed context_party_mismatch';

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

function deciding(member: string, values: Values): Cases<JsonObject> {
  const named = values.map(
    ([name, value]) => [`${member} ${name}`, decision({ [member]: value })] as const,
  );
  return inEach('decision', named);
}

function evidenceTable(code: string, failed: string): Table {
  const listed = (values: Values) => values.map(([name, value]) => [`[${name}]`, [value]] as const);
  const signal = { code: 'c', severity: 's' };
  const misspelled = ['Allow', 'allow ', 'ALLOW', 'deny', 'active_treaty_path'];
  const noSignals: Values = [
    ...NO_LIST,
    ...listed(valuesExcept()),
    ['without severity', [{ code: 'c' }]],
    ['without code', [{ severity: 's' }]],
    ['with null for its code', [{ ...signal, code: null }]],
    ['with null for its severity', [{ ...signal, severity: null }]],
    ['of which the second is wrong', [signal, { code: 'c' }]],
  ];
  const oddSignals: Values = [
    ...['code', 'severity', 'detail'].flatMap((member) =>
      NO_TEXT.map(
        ([name, value]) => [`${member} ${name}`, [{ ...signal, [member]: value }]] as const,
      ),
    ),
    ['with null for its detail', [{ ...signal, detail: null }]],
  ];
  const names = ['source_sovereign_id', 'target_sovereign_id'];
  const texts = ['reason', 'evaluated_at'];
  return {
    '400 missing_decision missing_decision': inEach('decision', [
      ...MISSING,
      ...valuesExcept('an object'),
    ]),
    [`${code} invalid_verdict`]: deciding('verdict', [
      ...valuesExcept(),
      ...misspelled.map((text) => [text, text] as const),
    ]),
    [`${code} invalid_requested_roles`]: deciding('requested_roles', NO_LIST),
    [`${code} invalid_signals`]: deciding('signals', noSignals),
    [`${code} invalid_hop_count`]: deciding('hop_count', NO_COUNT),
    [`${code} invalid_trusted`]: deciding('trusted', valuesExcept('true', 'false')),
    [`${code} missing_${names[0]}`]: deciding('source_sovereign_id', [['null', null]]),
    [`${code} missing_${names[1]}`]: deciding('target_sovereign_id', [['null', null]]),
    [`${failed} invalid_decision`]: Object.assign(
      {},
      ...[...names, ...texts].map((name) => deciding(name, NO_TEXT)),
      ...texts.map((name) => deciding(name, [['null', null]])),
      deciding('requested_roles', listed([...NO_TEXT, ['null', null]])),
      deciding('signals', oddSignals),
      deciding('hop_count', NEGATIVE),
    ),
    ...invalid(failed, 'graph_digest', except('a string')),
    201: Object.assign(
      inEach('graph_digest', MISSING),
      ...names.map((name) => deciding(name, [['a string', 'x']])),
      ...texts.map((name) => deciding(name, [['an empty string', '']])),
      deciding('requested_roles', [
        ['none', []],
        ['without a name', ['']],
      ]),
      deciding('signals', [['none', []]]),
      deciding('hop_count', [
        ['0', 0],
        ['-0.0', new JsonFloat(-0)],
        ['the largest', Number.MAX_SAFE_INTEGER],
      ]),
      deciding('trusted', [
        ['true', true],
        ['false', false],
      ]),
      deciding('trust_path', valuesExcept()),
    ),
  };
}

/** What no signature on an agreement covers, or what has its default value. */
const UNSIGNED =
  /^(requested_capability|capabilities|agreement\.(agreement_id|established_at|expires_at|signatures\.0\.key_id|agreed_terms\.freshness_commitment left out$))/;
const PATH_NODE = { sibling_hash: PADDING, is_left: true };
const read = (changes: JsonObject) => proofOf(SET, 'read', changes);

export const COMMAND_KINDS: readonly CommandKind[] = [
  kind('offerCapabilities', ['400 missing_offer_fields', '422 offer_rejected'], (code, failed) => ({
    bodyFor: (_, now) => offerRequest(now),
    faults: [
      lacking(code, 'responder_sovereign_id'),
      wrong(code, 'capabilities'),
      ...windowFaults('400 invalid_timestamps'),
      wrong('400 invalid_timestamps', 'expires_at'),
      being(failed, 'scope', ['eu']),
    ],
    table: {
      ...missing(code, 'responder_sovereign_id'),
      ...invalid(failed, 'responder_sovereign_id', except('a string')),
      ...windowTable('400 invalid_timestamps'),
      ...invalid('400 invalid_timestamps', 'expires_at', UNREADABLE),
      ...termsTable(code, failed),
      201: {
        ...IN_ORDER,
        ...inEach('scope', MISSING),
        '4096 capabilities': { capabilities: LONG_LIST.slice(1) },
      },
    },
  })),
  kind('counterOffer', ['400 missing_counter_fields', '422 counter_rejected'], (code, failed) => ({
    bodyFor: (alpha, now) => termsRequest(now, { offer: offerBetween(beta, alpha, now) }),
    details: ({ offer_id = null }) => ({
      original_offer_id: offer_id,
      counter_offer_id: offer_id,
      offerer_sovereign_id: 'alpha',
    }),
    faults: [
      lacking(code, 'offer'),
      wrong(code, 'capabilities'),
      inside('400 invalid_offer', 'offer', drop('graph_digest')),
      ...windowFaults(code),
      being(failed, 'scope', ['eu']),
      [`${failed} capabilities_not_offered`, set({ capabilities: ['read', 'delete'] })],
      inside(failed, 'offer', set({ created_at: FIRST }), 'invalid_offer_signature'),
    ],
    table: {
      ...missing(code, 'offer'),
      ...invalid('400 invalid_offer', 'offer', NOT_MISSING),
      ...windowTable(code),
      ...termsTable(code, failed),
      201: { ...IN_ORDER, ...inEach('scope', MISSING) },
    },
    mayPass: /^(offer\.signatures\.\d+\.key_id|capabilities|scope|valid_from|valid_until)/,
  })),
  kind('acceptAgreement', ['400 missing_accept_fields', '422 accept_rejected'], (code, failed) => ({
    what: 'of an offer',
    bodyFor: (alpha, now) => ({ offer: offerBetween(beta, alpha, now) }),
    faults: [lacking(code, 'offer'), being(failed, 'offer', null)],
    table: {},
    mayPass: /^offer\.signatures\.\d+\.key_id /,
  })),
  kind('acceptAgreement', ['400 missing_accept_fields', '422 accept_rejected'], (code, failed) => ({
    what: 'of a counter',
    bodyFor(alpha, now) {
      const original_offer = offerBetween(alpha, beta, now);
      return { counter: counterTo(original_offer, beta, now), original_offer };
    },
    faults: [
      [`${code} missing_offer`, drop('original_offer')],
      being(failed, 'counter', null),
      [`${failed} invalid_offer`, set({ original_offer: null })],
    ],
    table: {},
    mayPass: /^(counter|original_offer)\.signatures\.\d+\.key_id /,
  })),
  kind(
    'decideBoundary',
    ['400 missing_boundary_fields', '422 boundary_eval_failed'],
    (code, failed) => ({
      bodyFor: (alpha, now) => ({
        agreement: agreementOf(alpha, now, ['read', 'write']),
        requested_capability: 'read',
      }),
      faults: [
        lacking(code, 'agreement'),
        lacking(code, 'requested_capability'),
        inside('400 invalid_agreement', 'agreement', drop('agreed_terms')),
        being(code, 'context', 'x'),
        inside(failed, 'agreement', set({ signatures: [] }), 'agreement_not_signed_here'),
      ],
      table: {
        ...missing(code, 'agreement', 'requested_capability'),
        ...invalid('400 invalid_agreement', 'agreement', NOT_MISSING),
        ...invalid(code, 'requested_capability', except('a string')),
        ...invalid(code, 'context', except('an object')),
        ...contextTable(),
      },
      mayPass: UNSIGNED,
    }),
  ),
  kind('buildEvidence', ['400 invalid_decision', '422 evidence_build_failed'], (code, failed) => ({
    bodyFor: () => ({ decision: decision() }),
    faults: [
      lacking('400 missing_decision', 'decision'),
      inside(code, 'decision', drop('verdict'), 'invalid_verdict'),
      inside(code, 'decision', drop('source_sovereign_id'), 'missing_source_sovereign_id'),
      inside(code, 'decision', set({ signals: [{ severity: 'info' }] }), 'invalid_signals'),
      inside(code, 'decision', set({ hop_count: '1' }), 'invalid_hop_count'),
      inside(code, 'decision', set({ trusted: 'false' }), 'invalid_trusted'),
      inside(failed, 'decision', set({ reason: 5 })),
      being(failed, 'graph_digest', 5),
    ],
    table: evidenceTable(code, failed),
  })),
  kind(
    'commitCapabilities',
    ['400 missing_commit_fields', '422 commit_failed'],
    (code, failed) => ({
      bodyFor: (alpha, now) => ({
        capabilities: ['read'],
        agreement: agreementOf(alpha, now, SET),
      }),
      faults: [
        wrong(code, 'capabilities'),
        lacking(code, 'agreement'),
        inside(code, 'agreement', drop('agreed_terms')),
        being(failed, 'capabilities', ['read', 7]),
        [`${failed} empty_capability`, set({ capabilities: ['', 'delete'] })],
        [`${failed} capability_not_agreed`, set({ capabilities: ['delete'] })],
        inside(failed, 'agreement', set({ signatures: [] }), 'agreement_not_signed_here'),
      ],
      table: {
        ...invalid(code, 'capabilities', [...valuesExcept('a list'), ['4097', repeated(4097)]]),
        ...missing(code, 'agreement'),
        ...invalid(code, 'agreement', NOT_MISSING),
        ...invalid(failed, 'capabilities', [
          ['with a list', [['read']]],
          ['with null', ['read', null]],
        ]),
        201: { '4096 capabilities': { capabilities: repeated(4096) } },
      },
      mayPass: UNSIGNED,
    }),
  ),
  kind('nullifyProof', ['400 missing_proof', '422 nullifier_failed'], (code, failed) => ({
    bodyFor: () => ({ proof: read({}) }),
    details: (_, { proof }) => ({ commitment_id: (proof as JsonObject).commitment_id ?? null }),
    faults: [
      lacking(code, 'proof'),
      inside(code, 'proof', drop('merkle_path')),
      inside(failed, 'proof', set({ leaf_hash: PADDING }), 'leaf_hash_mismatch'),
    ],
    table: {
      ...missing(code, 'proof'),
      ...invalid(code, 'proof', [
        ...NOT_MISSING,
        ['an id that is a number', read({ proof_id: 7 })],
        ['an id that is null', read({ proof_id: null })],
        ['65 path nodes', read({ merkle_path: Array(65).fill(PATH_NODE) })],
        ['a side that is a number', read({ merkle_path: [{ ...PATH_NODE, is_left: 1 }] })],
        ['a naive time', read({ proved_at: '2026-01-15T12:00:00' })],
      ]),
    },
  })),
  kind('castVote', ['400 missing_vote_fields', '422 vote_failed'], (code, failed) => ({
    bodyFor: (_, now) => ({ justification_proof: justification(now), vote: true, reason: 'r' }),
    signedBy: 'sovereign',
    faults: [
      lacking(code, 'justification_proof'),
      wrong(code, 'vote'),
      inside(
        '400 invalid_justification',
        'justification_proof',
        drop('trace'),
        'invalid_justification',
      ),
      being(failed, 'reason', 7),
    ],
    table: {
      ...missing(code, 'justification_proof'),
      ...invalid(code, 'vote', [...valuesExcept('true', 'false'), ['"true"', 'true']]),
      ...invalid(failed, 'reason', NO_TEXT),
    },
  })),
  kind(
    'assembleConsensus',
    ['400 missing_proof_fields', '422 proof_assembly_failed'],
    (code, failed) => ({
      bodyFor: (_, now) => assembly(now),
      details: (_, { votes }) => ({ vote_count: (votes as JsonValue[]).length }),
      faults: [
        lacking(code, 'justification_proof'),
        wrong(code, 'votes'),
        wrong(code, 'validator_sovereign_ids'),
        wrong(code, 'required_threshold'),
        inside(code, 'justification_proof', drop('trace'), 'invalid_justification'),
        [`${code} invalid_vote`, set({ votes: [{ vote_id: 'v' }] })],
        being(failed, 'validator_sovereign_ids', [7]),
        inside(
          failed,
          'justification_proof',
          set({ issuer_sovereign_id: 'alpha' }),
          'justification_not_signed_here',
        ),
        [`${failed} threshold_out_of_range`, set({ required_threshold: 0 })],
        [`${failed} threshold_not_met`, set({ votes: [] })],
      ],
      table: {
        ...missing(code, 'justification_proof'),
        ...invalid(code, 'votes', NO_LIST),
        ...invalid(code, 'validator_sovereign_ids', NO_LIST),
        ...invalid(code, 'required_threshold', NO_COUNT),
      },
    }),
  ),
  kind(
    'createLicensePolicy',
    ['400 missing_policy_fields', '422 request_validation_failed'],
    (code, failed) => ({
      bodyFor: (_, now) => policyTerms(now),
      faults: [
        lacking(code, 'licensee_sovereign_id'),
        wrong(code, 'allowed_source_ids'),
        wrong(code, 'allowed_access_types'),
        ...windowFaults('400 invalid_timestamps'),
        being(failed, 'licensee_sovereign_id', 7),
        being(failed, 'allowed_source_ids', [7]),
        being(failed, 'allowed_access_types', [null]),
        being(failed, 'max_volume_bytes_per_session', -1),
        being(failed, 'prohibited_classification_tags', [['secret']]),
      ],
      table: {
        ...missing(code, 'licensee_sovereign_id'),
        ...invalid(code, 'allowed_source_ids', NO_LIST),
        ...invalid(code, 'allowed_access_types', NO_LIST),
        ...windowTable('400 invalid_timestamps'),
        ...invalid(failed, 'max_volume_bytes_per_session', NO_VOLUME),
        201: IN_ORDER,
      },
    }),
  ),
  kind(
    'declareIntent',
    ['400 missing_intent_fields', '422 intent_create_failed'],
    (code, failed) => ({
      bodyFor: () => ACCESS,
      signedBy: 'sovereign',
      details: ({ declared_sources }) => ({
        source_count: (declared_sources as JsonValue[]).length,
      }),
      faults: [
        lacking(code, 'sources'),
        lacking(code, 'access_types'),
        [`${code} too_many_access_types`, set({ access_types: repeated(MAX_ACCESS_TYPES + 1) })],
        ['400 invalid_source too_many_sources', set({ sources: Array(1025).fill(SOURCE) })],
        ['400 invalid_source invalid_source', set({ sources: [SOURCE, { source_id: 's-2' }] })],
        being(failed, 'access_types', ['read', 7]),
        being(failed, 'decision_id', 7),
        being(failed, 'estimated_volume_bytes', -1),
      ],
      table: {
        [`${code} missing_sources`]: inEach('sources', valuesExcept('a list')),
        [`${code} missing_access_types`]: inEach('access_types', valuesExcept('a list')),
        '400 invalid_source invalid_source': inEach(
          'sources',
          [
            ...valuesExcept('an object').map(([, value]) => value),
            ...['source_id', 'source_type', 'owner_sovereign_id'].flatMap((member) => [
              without(SOURCE, member),
              { ...SOURCE, [member]: 7 },
              { ...SOURCE, [member]: null },
            ]),
            { ...SOURCE, classification_tags: 'secret' },
            { ...SOURCE, classification_tags: null },
            { ...SOURCE, classification_tags: ['a', 7] },
          ].map((source) => [JSON.stringify(source), [SOURCE, source]] as const),
        ),
        ...invalid(failed, 'estimated_volume_bytes', NO_VOLUME),
        201: { '1024 sources': { sources: Array(1024).fill(SOURCE) } },
      },
    }),
  ),
];

/** A kind whose requests are refused with these two codes, if not with others. */
function kind(
  name: TrustCommand,
  [code, failed]: readonly [string, string],
  make: (code: string, failed: string) => Omit<CommandKind, 'name'>,
): CommandKind {
  return { name, ...make(code, failed) };
}
