/**
 * What the operators' commands of the trust protocol share [trust-1-1], [trust-5]: what is refused and in which order,
 * that every record is signed and audited, and that a refusal changes nothing. What each of them decides has a file of
 * its own; `golden-trust.test.ts` has the records, member by member.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import * as agreements from '../src/protocol/api/agreements.ts';
import * as dataUsage from '../src/protocol/api/data-usage.ts';
import * as decisions from '../src/protocol/api/decisions.ts';
import { API } from '../src/protocol/api/table.ts';
import { REFUSALS } from '../src/protocol/refusals.ts';
import { parties } from './support/agreements.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { detailNames, EVENTS, signedTextOf } from './support/golden-trust.ts';
import {
  auditEvents,
  get,
  operate,
  operatorRequest,
  outcome,
  sendSigned,
} from './support/requests.ts';
import { checkChanges, checkTable } from './support/tables.ts';
import { audited, startUnlimited, UUID } from './support/trust.ts';
import { beta, COMMAND_KINDS } from './support/trust-command-kinds.ts';
import { answerOf, outcomeOf, outcomesOf } from './support/trust-commands.ts';
import { created, mutationsOf, outcomeWithCause, signaturesOf } from './support/trust-protocol.ts';
import { NOW, us } from './support/verifications.ts';

test('every operators’ command of the trust protocol is among these', () => {
  const declared = [agreements, dataUsage, decisions].flatMap((exports) =>
    Object.values(exports).filter(({ access }) => access === 'operator'),
  );
  assert.deepEqual(new Set(COMMAND_KINDS.map(({ name }) => API[name])), new Set(declared));
});

/** For members that are kept verbatim, one change stands for all; `verifications.test.ts` makes all of them. */
const VERBATIM = /_evidence\.(?!verdict)/;
const KNOWING = { partners: [beta] };

for (const kind of COMMAND_KINDS) {
  const { name, what = '', bodyFor, faults, table, mayPass } = kind;
  const title = `${API[name].path} ${what}`.trim();

  test(`${title} refuses what does not fit, with the first thing that is wrong with it`, async () => {
    const body = bodyFor(us, NOW);
    await checkChanges(faults, body, (given) => outcomeOf(name, given, KNOWING));
    await checkTable({ 201: { 'without changes': {} } }, outcomesOf(name, body, KNOWING));
    await checkTable(table, outcomesOf(name, body, KNOWING));
  });

  test(`${title} refuses what was altered, or signs it`, () => {
    const known = [...(API[name].refusals ?? []), 'request_validation_failed'] as const;
    const codes = known.map((refusal) => REFUSALS[refusal].code);
    const refused = new RegExp(`^4(00|22) (${codes.join('|')})( |$)`);
    for (const altered of mutationsOf(bodyFor(us, NOW), VERBATIM)) {
      const answer = answerOf(name, altered.record, KNOWING);
      if (typeof answer === 'string') {
        assert.match(answer, refused, altered.name);
        continue;
      }
      assert.ok(mayPass?.test(altered.name) ?? true, altered.name);
      assertSigned(answer, us.key.publicKey);
    }
  });
}

/** The last signature of the record is ours. */
function assertSigned(record: JsonObject, publicKey: string): JsonObject {
  const single = record.signature as JsonObject | undefined;
  const last = single ?? signaturesOf(record).at(-1);
  assert.ok(verifySignature(publicKey, signedTextOf(record), String(last?.sig)));
  return last as JsonObject;
}

// The routes

const shared = sharedAuthority();
const LABEL = 'na-2026';

for (const kind of COMMAND_KINDS) {
  const { name, what = '', bodyFor, faults, signedBy } = kind;
  const { path } = API[name];

  test(`${path} ${what} answers with a signed record of its own, audits it, and changes nothing else`, async () => {
    const na = await shared();
    const { alpha, now } = await parties(na, beta);
    const body = bodyFor(alpha, now);
    const graph = (await get(na, '/recognition-graph')).text;
    const record = await created(operate(na, path, body, { operator: na.standard }));
    const { key_id } = assertSigned(record, na.audience);
    assert.equal(key_id, signedBy === 'sovereign' ? 'alpha' : na.audience);
    const event = EVENTS[path] ?? '';
    const known: JsonObject = { ...body, ...record, ...kind.details?.(record, body) };
    const details = detailNames(event).map((member) => [member, known[member]]);
    assert.deepEqual(audited(na, event).at(-1), Object.fromEntries(details));

    const next = bodyFor(alpha, now);
    const again = await created(operate(na, path, next));
    for (const [member, value] of Object.entries(record)) {
      if (UUID.test(String(value))) assert.notEqual(again[member], value, member);
    }

    const other = bodyFor(alpha, now);
    const events = auditEvents(na).length;
    for (const [expected, change] of faults) {
      const request = operatorRequest(na, path, change(other));
      assert.equal(outcomeWithCause(await sendSigned(na, request)), expected);
      assert.equal(auditEvents(na).length, events, 'no event');
    }
    assert.equal((await get(na, '/recognition-graph')).text, graph);
    const request = operatorRequest(na, path, {});
    assert.match(outcome(await sendSigned(na, request)), /^400 missing_/);
    assert.equal(outcome(await sendSigned(na, request)), '401 admin_auth_failed');
    assert.equal(audited(na, 'admin_auth_failed').at(-1)?.reason, 'nonce_replay');
    assert.equal(auditEvents(na).length, events + 1);
  });
}

test('a configured label of the key of the authority is wherever the key would be', async () => {
  const na = await shared();
  await using labeled = await startUnlimited({ environment: { NA_KEY_ID: LABEL } });
  const timesIn = (text: string, part: string) => text.split(`"${part}"`).length;
  for (const { name, what, bodyFor, signedBy } of COMMAND_KINDS) {
    const { path } = API[name];
    const answerOf = async (by: TestAuthority) => {
      const { alpha, now } = await parties(by, beta);
      const record = await created(operate(by, path, bodyFor(alpha, now)));
      return [jsonText(record), assertSigned(record, by.audience).key_id] as const;
    };
    const [[unlabeled], [text, keyId]] = [await answerOf(na), await answerOf(labeled)];
    assert.equal(keyId, signedBy === 'sovereign' ? 'alpha' : LABEL, path);
    if (what === 'of a counter') continue;
    assert.equal(timesIn(text, labeled.audience), 1, path);
    assert.equal(timesIn(text, LABEL), timesIn(unlabeled, na.audience), path);
  }
});
