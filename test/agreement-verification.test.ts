/** Who signed an agreement [trust-6-1]; `verifications.test.ts` has what all verifications share. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JsonFloat, type JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyAgreement } from '../src/protocol/api/verifications.ts';
import {
  ACCEPT,
  COUNTER,
  LONG_LIST,
  OFFER,
  offerRequest,
  parties,
  termsRequest,
} from './support/agreements.ts';
import { HOUR } from './support/clock.ts';
import { newKey, operate } from './support/requests.ts';
import { parsed, sovereign, startUnlimited, UUID } from './support/trust.ts';
import {
  agreedTerms,
  agreementBetween,
  created,
  inner,
  resigned,
  signaturesOf,
  signedAgreement,
  without,
} from './support/trust-protocol.ts';
import { checkVerdicts, eachAs, NOW, us, verdictOf } from './support/verifications.ts';

const [beta, gamma, stranger] = [sovereign('beta'), sovereign('gamma'), newKey()];
const agreement = agreementBetween(beta, gamma, NOW);

test('an agreement is accepted if both signed its seven members, or says who did not', async () => {
  const signed = (...signers: (typeof stranger)[]) => signedAgreement(agreement, ...signers);
  const own = signaturesOf(agreement);
  const junk = (sig: string) => ({ key_id: 'x', sig });
  const [{ sig } = { sig: '' }] = signaturesOf(signed(stranger));
  const altered = (changes: JsonObject) => ({ ...agreement, ...changes });
  const withTerms = (changes: JsonObject) =>
    altered({ agreed_terms: { ...inner(agreement, 'agreed_terms'), ...changes } });
  const made = (changes: JsonObject) => agreementBetween(beta, gamma, NOW, changes);
  const capabilities = (count: number) =>
    made({ agreed_terms: agreedTerms(NOW, { capabilities: LONG_LIST.slice(0, count) }) });
  const laterEnd = formatInstant(NOW + 3 * HOUR).replace('Z', '+02:00');
  await checkVerdicts(
    verifyAgreement,
    {
      accepted: eachAs('agreement', {
        both: agreement,
        'both the other way round': signed(beta.key, gamma.key),
        'a stranger too': signed(stranger, gamma.key, stranger, beta.key),
        'both, with 14 others before': altered({
          signatures: [...Array(14).fill(junk(sig)), ...own],
        }),
        'both, labeled wrong': altered({ signatures: own.map(({ sig: text }) => junk(text)) }),
        'both, and text that is no signature': altered({
          signatures: [junk(''), junk('%'), ...own],
        }),
        'both, over 4096 capabilities': capabilities(4096),
        'an expired agreement': agreementBetween(beta, gamma, NOW - 9 * HOUR),
        'blocking evidence': made({
          offerer_evidence: { verdict: 'block' },
          responder_evidence: {},
        }),
        'other members outside the signed seven': altered({
          expires_at: '2090-01-01T00:00:00Z',
          established_at: '2000-01-01T00:00:00Z',
        }),
        'without the time it was established': without(agreement, 'established_at'),
        'with members nobody knows': altered({ status: 'revoked' }),
        'a freshness as an integral float': withTerms({ freshness_commitment: new JsonFloat(3) }),
      }),
      missing_offerer_signature: eachAs('agreement', {
        nobody: altered({ signatures: [] }),
        'nobody, the member left out': without(agreement, 'signatures'),
      }),
      invalid_offerer_signature: eachAs('agreement', {
        'a stranger': signed(stranger),
        'two strangers': signed(stranger, newKey()),
        'the responder': signed(gamma.key),
        'the responder and a stranger': signed(gamma.key, stranger),
        'both over the whole record': resigned(agreement, beta.key, gamma.key),
        'the same end in another offset': withTerms({ valid_until: laterEnd }),
      }),
      missing_responder_signature: eachAs('agreement', { 'the offerer': signed(beta.key) }),
      invalid_responder_signature: eachAs('agreement', {
        'the offerer twice': signed(beta.key, beta.key),
        'the offerer and a stranger': signed(beta.key, stranger),
      }),
      '400 invalid_agreement invalid_agreement': eachAs('agreement', {
        '17 signatures': altered({ signatures: Array(17).fill(junk(sig)) }),
        '4097 capabilities': capabilities(4097),
      }),
    },
    { offerer_public_keys: [beta.key.publicKey], responder_public_keys: [gamma.key.publicKey] },
  );
});

test('an agreement without an id gets one from its reader, and its signatures still count', async () => {
  const nameless = without(agreementBetween(us, us, NOW), 'agreement_id');
  const verdict = await verdictOf(verifyAgreement, { agreement: nameless });
  assert.match(String(verdict.agreement_id), UUID);
  assert.equal(verdict.accepted, true);
});

test('one signature counts for both parties if the caller names the same key for both', async () => {
  const ours = { agreement: agreementBetween(us, beta, NOW, {}, [us.key]) };
  const theirs = { agreement: agreementBetween(us, beta, NOW, {}, [beta.key]) };
  const both = { agreement: agreementBetween(us, beta, NOW) };
  const [a, b] = [[us.key.publicKey], [beta.key.publicKey]];
  const keys = (offerer: string[] | null, responder: string[] | null) => ({
    offerer_public_keys: offerer,
    responder_public_keys: responder,
  });
  await checkVerdicts(verifyAgreement, {
    accepted: {
      'ours, no keys given': ours,
      'ours, null for keys': { ...ours, ...keys(null, null) },
      'theirs, their key for both': { ...theirs, ...keys(b, b) },
      'both, their key for the responder': { ...both, responder_public_keys: b },
      'both, keys the wrong way round': { ...both, ...keys(b, a) },
    },
    invalid_offerer_signature: {
      'theirs, no keys given': theirs,
      'ours, no key for the offerer': { ...ours, offerer_public_keys: [] },
    },
    missing_responder_signature: {
      'ours, their key for the responder': { ...ours, responder_public_keys: b },
      'ours, no key for the responder': { ...ours, responder_public_keys: [] },
    },
    invalid_responder_signature: {
      'both, no key for the responder': { ...both, responder_public_keys: [] },
    },
  });
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
  const accepted = await created(operate(na, ACCEPT, { counter, original_offer: offer }));
  assert.equal(
    canonicalJson(inner(accepted, 'offerer_evidence')),
    canonicalJson(inner(offer, 'offerer_evidence')),
  );
});
