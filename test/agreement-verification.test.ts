/** Verification of agreements [trust-6-1]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import {
  ACCEPT,
  COUNTER,
  LONG_LIST,
  OFFER,
  offerRequest,
  parties,
  termsRequest,
  VERIFY,
} from './support/agreements.ts';
import { HOUR } from './support/clock.ts';
import { FORGED_SIGNATURE, WEAK_KEYS } from './support/hostile.ts';
import { newKey, operate } from './support/requests.ts';
import { stateDigest } from './support/test-stores.ts';
import {
  audited,
  misspellableKey,
  parsed,
  post,
  sovereign,
  startUnlimited,
  UUID,
} from './support/trust.ts';
import {
  agreedTerms,
  agreementBetween,
  created,
  eachOf,
  inner,
  keyListCases,
  MISSING,
  mutationsOf,
  ourselves,
  outcomeWithCause,
  resigned,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';

test('verifying an agreement returns who signed it', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma, stranger] = [sovereign('beta'), sovereign('gamma'), newKey()];
  const now = na.clock.now();
  const agreement = agreementBetween(beta, gamma, now);
  const signed = (...signers: (typeof stranger)[]) => signedAgreement(agreement, ...signers);
  const [{ sig } = { sig: '' }] = signaturesOf(signed(stranger));
  const junk = (text: string) => ({ key_id: 'x', sig: text });
  const own = signaturesOf(agreement);
  const sixteen = [...Array(14).fill(junk(sig)), ...own];
  const long = agreementBetween(beta, gamma, now, {
    agreed_terms: agreedTerms(now, { capabilities: LONG_LIST.slice(0, 4096) }),
  });
  for (const [name, record, reason] of [
    ['both', agreement, 'accepted'],
    ['both the other way round', signed(beta.key, gamma.key), 'accepted'],
    ['a stranger too', signed(stranger, gamma.key, stranger, beta.key), 'accepted'],
    ['both, with 14 others before', { ...agreement, signatures: sixteen }, 'accepted'],
    [
      'both, labeled wrong',
      { ...agreement, signatures: own.map(({ sig: text }) => junk(text)) },
      'accepted',
    ],
    [
      'both, and text that is no signature',
      { ...agreement, signatures: [junk(''), junk('%'), ...own] },
      'accepted',
    ],
    ['both, over 4096 capabilities', long, 'accepted'],
    ['nobody', { ...agreement, signatures: [] }, 'missing_offerer_signature'],
    ['nobody, the member left out', without(agreement, 'signatures'), 'missing_offerer_signature'],
    ['a stranger', signed(stranger), 'invalid_offerer_signature'],
    ['two strangers', signed(stranger, newKey()), 'invalid_offerer_signature'],
    ['the responder', signed(gamma.key), 'invalid_offerer_signature'],
    ['the responder and a stranger', signed(gamma.key, stranger), 'invalid_offerer_signature'],
    ['the offerer', signed(beta.key), 'missing_responder_signature'],
    ['the offerer twice', signed(beta.key, beta.key), 'invalid_responder_signature'],
    ['the offerer and a stranger', signed(beta.key, stranger), 'invalid_responder_signature'],
    [
      'both over the whole record',
      resigned(agreement, beta.key, gamma.key),
      'invalid_offerer_signature',
    ],
    ['an expired agreement', agreementBetween(beta, gamma, now - 9 * HOUR), 'accepted'],
    [
      'blocking evidence',
      agreementBetween(beta, gamma, now, {
        offerer_evidence: { verdict: 'block' },
        responder_evidence: {},
      }),
      'accepted',
    ],
    [
      'other members outside the signed seven',
      { ...agreement, expires_at: '2090-01-01T00:00:00Z', established_at: '2000-01-01T00:00:00Z' },
      'accepted',
    ],
    ['without the time it was established', without(agreement, 'established_at'), 'accepted'],
    ['with members nobody knows', { ...agreement, status: 'revoked' }, 'accepted'],
    [
      'a freshness as an integral float',
      {
        ...agreement,
        agreed_terms: {
          ...inner(agreement, 'agreed_terms'),
          freshness_commitment: new JsonFloat(3),
        },
      },
      'accepted',
    ],
    [
      'the same end in another offset',
      {
        ...agreement,
        agreed_terms: {
          ...inner(agreement, 'agreed_terms'),
          valid_until: formatInstant(now + 3 * HOUR).replace('Z', '+02:00'),
        },
      },
      'invalid_offerer_signature',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(`${name}: ${reason}`, async () => {
      const answer = await post(na, VERIFY, {
        agreement: record,
        offerer_public_keys: [beta.key.publicKey],
        responder_public_keys: [gamma.key.publicKey],
      });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, {
        accepted: reason === 'accepted',
        reason,
        agreement_id: record.agreement_id,
      });
    });
  }
});

test('an agreement without an id gets one from its reader, and its signatures still count', async () => {
  await using na = await startUnlimited();
  const alpha = ourselves(na);
  const agreement = without(agreementBetween(alpha, alpha, na.clock.now()), 'agreement_id');
  const { body } = await post(na, VERIFY, { agreement });
  assert.match(body.agreement_id, UUID);
  assert.equal(body.accepted, true);
});

test('one signature counts for both parties if the caller names the same key for both', async (t) => {
  await using na = await startUnlimited();
  const [alpha, beta] = [ourselves(na), sovereign('beta')];
  const now = na.clock.now();
  const ours = agreementBetween(alpha, beta, now, {}, [alpha.key]);
  const theirs = agreementBetween(alpha, beta, now, {}, [beta.key]);
  const both = agreementBetween(alpha, beta, now);
  const [a, b] = [[alpha.key.publicKey], [beta.key.publicKey]];
  for (const [name, body, reason] of [
    ['ours, no keys given', { agreement: ours }, 'accepted'],
    [
      'ours, null for keys',
      { agreement: ours, offerer_public_keys: null, responder_public_keys: null },
      'accepted',
    ],
    ['theirs, no keys given', { agreement: theirs }, 'invalid_offerer_signature'],
    [
      'theirs, their key for both',
      { agreement: theirs, offerer_public_keys: b, responder_public_keys: b },
      'accepted',
    ],
    [
      'ours, their key for the responder',
      { agreement: ours, responder_public_keys: b },
      'missing_responder_signature',
    ],
    [
      'ours, no key for the responder',
      { agreement: ours, responder_public_keys: [] },
      'missing_responder_signature',
    ],
    [
      'ours, no key for the offerer',
      { agreement: ours, offerer_public_keys: [] },
      'invalid_offerer_signature',
    ],
    [
      'both, their key for the responder',
      { agreement: both, responder_public_keys: b },
      'accepted',
    ],
    [
      'both, no key for the responder',
      { agreement: both, responder_public_keys: [] },
      'invalid_responder_signature',
    ],
    [
      'both, keys the wrong way round',
      { agreement: both, offerer_public_keys: b, responder_public_keys: a },
      'accepted',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal((await post(na, VERIFY, body)).body.reason, reason);
    });
  }
});

test('a verification uses only the key lists that it is given', async (t) => {
  await using na = await startUnlimited();
  const [beta, gamma] = [
    sovereign('beta', misspellableKey()),
    sovereign('gamma', misspellableKey()),
  ];
  const agreement = agreementBetween(beta, gamma, na.clock.now());
  const right = {
    offerer_public_keys: [beta.key.publicKey],
    responder_public_keys: [gamma.key.publicKey],
  };
  for (const [member, key, failure] of [
    ['offerer_public_keys', beta.key, 'invalid_offerer_signature'],
    ['responder_public_keys', gamma.key, 'invalid_responder_signature'],
  ] as const) {
    for (const [name, keys, result] of keyListCases(key)) {
      await t.test(`${member}: ${name}`, async () => {
        const answer = await post(na, VERIFY, { agreement, ...right, [member]: keys });
        if (result === 'malformed') {
          assert.match(outcomeWithCause(answer), /^400 invalid_agreement (invalid|too_many)_keys$/);
        } else {
          assert.equal(answer.body.reason, result === 'verifies' ? 'accepted' : failure);
        }
      });
    }
  }
});

test('a signature that any weak key would verify proves nothing', async () => {
  await using na = await startUnlimited();
  const agreement = {
    ...agreementBetween(sovereign('beta'), sovereign('gamma'), na.clock.now()),
    signatures: [{ key_id: 'weak', sig: FORGED_SIGNATURE }],
  };
  for (const weak of WEAK_KEYS) {
    const keys = { offerer_public_keys: [weak], responder_public_keys: [weak] };
    const { body } = await post(na, VERIFY, { agreement, ...keys });
    assert.equal(body.reason, 'invalid_offerer_signature');
  }
});

test('invalid agreements are refused', async (t) => {
  await using na = await startUnlimited();
  const now = na.clock.now();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const agreement = agreementBetween(beta, gamma, now);
  const [signature] = signaturesOf(agreement);
  const long = agreementBetween(beta, gamma, now, {
    agreed_terms: agreedTerms(now, { capabilities: LONG_LIST }),
  });
  for (const [name, body, expected] of [
    ['nothing', {}, '400 missing_agreement missing_agreement'],
    ...MISSING.map(
      ([missing, value]) =>
        [missing, { agreement: value }, '400 missing_agreement missing_agreement'] as const,
    ),
    [
      'nothing, and a wrong key list',
      { offerer_public_keys: 5 },
      '400 missing_agreement missing_agreement',
    ],
    ['text', { agreement: 'text' }, '400 invalid_agreement invalid_agreement'],
    ['a list', { agreement: [agreement] }, '400 invalid_agreement invalid_agreement'],
    ['true', { agreement: true }, '400 invalid_agreement invalid_agreement'],
    ['a float', { agreement: new JsonFloat(1.5) }, '400 invalid_agreement invalid_agreement'],
    [
      '17 signatures',
      { agreement: { ...agreement, signatures: Array(17).fill(signature) } },
      '400 invalid_agreement invalid_agreement',
    ],
    ['4097 capabilities', { agreement: long }, '400 invalid_agreement invalid_agreement'],
    [
      'wrong, with a wrong key list',
      { agreement: {}, offerer_public_keys: 5 },
      '400 missing_agreement missing_agreement',
    ],
    [
      'of one member',
      { agreement: { a: 1 }, offerer_public_keys: 5 },
      '400 invalid_agreement invalid_agreement',
    ],
  ] as [string, JsonObject, string][]) {
    await t.test(name, async () => {
      assert.equal(outcomeWithCause(await post(na, VERIFY, body)), expected);
    });
  }
});

/** Members that no signature covers: anyone can change them, as long as they keep their type. */
const UNSIGNED = /^(agreement_id|established_at|expires_at|signatures\.\d+\.key_id)$/;

test('no signed member of an agreement can be changed unnoticed', async () => {
  await using na = await startUnlimited();
  const [beta, gamma] = [sovereign('beta'), sovereign('gamma')];
  const agreement = agreementBetween(beta, gamma, na.clock.now());
  const keys = {
    offerer_public_keys: [beta.key.publicKey],
    responder_public_keys: [gamma.key.publicKey],
  };
  assert.equal((await post(na, VERIFY, { agreement, ...keys })).body.accepted, true);
  await eachOf(mutationsOf(agreement), async ({ name, path, record }) => {
    const answer = await post(na, VERIFY, { agreement: record, ...keys });
    if (answer.status === 200) {
      assert.equal(answer.body.accepted, UNSIGNED.test(path), name);
    } else {
      assert.equal(outcomeWithCause(answer), '400 invalid_agreement invalid_agreement', name);
    }
  });
});

test('verifying writes only to the log', async () => {
  await using na = await startUnlimited();
  const agreement = agreementBetween(ourselves(na), sovereign('beta'), na.clock.now());
  await na.flush();
  const before = await stateDigest(na);
  await post(na, VERIFY, { agreement });
  await post(na, VERIFY, { agreement, offerer_public_keys: [], responder_public_keys: [] });
  await post(na, VERIFY, { agreement: 'text' });
  await na.flush();
  assert.equal(await stateDigest(na), before);
  const events = audited(na, 'agreement_verified');
  assert.deepEqual(
    events.map(({ agreement_id, accepted }) => [agreement_id, accepted]),
    [
      [agreement.agreement_id, true],
      [agreement.agreement_id, false],
    ],
  );
});

test('answers of the agreement routes are accepted as input', async () => {
  await using na = await startUnlimited();
  const { now } = await parties(na);
  const request = offerRequest(now, { scope: { rate: new JsonFloat(1), place: 'Zürich' } });
  const answer = await operate(na, OFFER, request);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  assert.match(answer.text, /"rate":1\.0/);
  const offer = parsed(answer);
  const counter = await created(operate(na, COUNTER, termsRequest(now, { offer })));
  const agreement = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  assert.match(canonicalJson(agreement), /"offerer_evidence"/);
  assert.equal(
    canonicalJson(inner(agreement, 'offerer_evidence')),
    canonicalJson(inner(offer, 'offerer_evidence')),
  );
});
