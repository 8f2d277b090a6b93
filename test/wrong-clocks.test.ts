/** What a clock that was wrong for a while leaves behind, and what it does not. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { revocationListProblem } from '../src/client/network-trust.ts';
import { createVerifier } from '../src/client/offline.ts';
import { readCertificateRevocationList } from '../src/protocol/records/revocation-list.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, setClock } from './support/clock.ts';
import { get, heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { recognize } from './support/trust.ts';

const DAY = 24 * HOUR;
const LISTS = ['/crl', '/sovereign-revocation-feed'] as const;
const GRAPHS = ['/recognition-graph', '/connectome.json', '/atlas.json'] as const;

async function documents(na: TestAuthority, paths: readonly string[]): Promise<JsonObject[]> {
  const answers = await Promise.all(paths.map((path) => get(na, path)));
  return answers.map(({ body }) => body as JsonObject);
}

async function tags(na: TestAuthority): Promise<(string | null)[]> {
  const answers = await Promise.all(GRAPHS.map((path) => get(na, path)));
  return answers.map(({ headers }) => headers.get('etag'));
}

const posture = async (na: TestAuthority) => (await get(na, '/dashboard.json')).body.posture;

/** The lists are of now, and continue the earlier ones. */
function assertOfNow(na: TestAuthority, lists: JsonObject[], earlier: JsonObject[]): void {
  for (const [index, list] of lists.entries()) {
    assert.ok(Date.parse(String(list.issued_at)) <= na.clock.now(), `${LISTS[index]} is of now`);
    assert.ok(Number(list.sequence) > Number(earlier[index]?.sequence), `${LISTS[index]} goes on`);
  }
}

async function lastContact(na: TestAuthority, certId: string): Promise<number> {
  const { body } = await operate(na, `/admin/certificates/${certId}`, {}, { method: 'GET' });
  return Date.parse((body.certificate ?? body).last_contact);
}

suite('a clock that was days ahead while the service ran', () => {
  test('leaves no document of the wrong time: not lists, bulletin, graphs or the dashboard', async () => {
    await using na = await startTestAuthority();
    assert.equal(outcome(await recognize(na)), '200');
    const before = await tags(na);
    await setClock(na, 30 * DAY);
    assert.notDeepEqual(await tags(na), before, 'the treaty has expired');
    const ahead = await documents(na, LISTS);
    await get(na, '/bulletin');
    await setClock(na, -30 * DAY);
    assert.deepEqual(await tags(na), before);
    assertOfNow(na, await documents(na, LISTS), ahead);
    na.clock.advance(SECOND);
    const { issued_at } = (await get(na, '/bulletin')).body;
    assert.ok(Date.parse(issued_at) <= na.clock.now());
    assert.deepEqual(
      (await posture(na)).findings
        .map(({ rule }: { rule: string }) => rule)
        .filter((rule: string) => rule === 'clock'),
      [],
    );
  });

  test('moves the contacts that it has recorded back with it, and no others', async () => {
    await using na = await startTestAuthority();
    const [early, late] = [await joinedNode(na), await joinedNode(na)];
    assert.equal(outcome(await heartbeat(na, early)), '200');
    const heard = await lastContact(na, early.certId);
    await setClock(na, 2 * DAY);
    assert.equal(outcome(await heartbeat(na, late)), '200');
    const when = na.clock.now() - 2 * DAY;
    await setClock(na, -2 * DAY);
    assert.equal(await lastContact(na, early.certId), heard);
    assert.equal(await lastContact(na, late.certId), when);
    await using again = await na.restart();
    assert.equal(await lastContact(again, early.certId), heard);
    assert.equal(await lastContact(again, late.certId), when);
  });
});

test('no list of the wrong time is served once the service follows the right one', async () => {
  await using na = await startTestAuthority();
  await setClock(na, 30 * DAY);
  const ahead = await documents(na, LISTS);
  na.clock.step(-30 * DAY);
  const before = na.logLines.length;
  const follows = () =>
    na.logLines.slice(before).some((line) => /The service follows a clock that was set/.test(line));
  while (!follows()) {
    na.clock.advance(SECOND);
    await na.checkClock();
  }
  // The last first: the lists are issued again in this order.
  const [feed, crl] = await documents(na, LISTS.toReversed());
  assertOfNow(na, [crl, feed] as JsonObject[], ahead);
});

test('lists that a clock 30 days ahead has dated are issued again by a start whose clock is right', async () => {
  await using na = await startTestAuthority();
  await setClock(na, 30 * DAY);
  await na.renewLists();
  const ahead = await documents(na, LISTS);
  await na.stop();
  na.clock.step(-30 * DAY);
  await using again = await na.restart();
  assertOfNow(again, await documents(again, LISTS), ahead);
});

test('how many nodes are silent is known one window after a start, also if the clock was ahead then', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  await na.stop();
  na.clock.step(DAY);
  await using again = await na.restart();
  await setClock(again, -DAY);
  again.clock.advance(HOUR);
  await again.renewLists();
  const { fleet } = (await get(again, '/dashboard.json')).body;
  assert.deepEqual([fleet.silent, fleet.healthy], [1, 0]);
});

test('a start with the clock behind keeps the last contacts, and says so until the clock is right', async () => {
  await using na = await startTestAuthority();
  const [silent, living] = [await joinedNode(na), await joinedNode(na)];
  na.clock.advance(2 * DAY);
  for (const node of [silent, living]) assert.equal(outcome(await heartbeat(na, node)), '200');
  na.clock.advance(HOUR);
  const heard = await lastContact(na, silent.certId);
  await na.stop();
  na.clock.step(-DAY);
  await using behind = await na.restart();
  assert.ok(behind.logLines.some((line) => /WARNING mesh\.clock The clock is before/.test(line)));
  const findings = async (of: TestAuthority) =>
    (await posture(of)).findings.filter(({ rule }: { rule: string }) => rule === 'clock').length;
  assert.equal(await findings(behind), 1);
  assert.ok((await lastContact(behind, silent.certId)) <= behind.clock.now());
  behind.clock.advance(MINUTE);
  assert.equal(outcome(await heartbeat(behind, living)), '200');
  const when = behind.clock.now() + DAY;
  await setClock(behind, DAY);
  assert.equal(await findings(behind), 0);
  const assertKept = async (of: TestAuthority) => {
    assert.equal(await lastContact(of, silent.certId), heard);
    assert.equal(await lastContact(of, living.certId), when);
  };
  await assertKept(behind);
  await using again = await behind.restart();
  await assertKept(again);
});

test('a node refuses a list that is dated further ahead than clocks may differ', async () => {
  await using na = await startTestAuthority();
  const list = readCertificateRevocationList((await get(na, '/crl')).body);
  assert.ok(list !== null);
  const issued = Date.parse(list.issued_at);
  const authority = na.audience;
  for (const [now, reason, problem] of [
    [issued - 5 * MINUTE, 'valid', null],
    [issued - 5 * MINUTE - 1, 'not_yet_valid', 'it is dated ahead of this clock'],
  ] as const) {
    const verifier = createVerifier({ now: () => now });
    assert.equal(verifier.revocationList(list, authority), reason);
    assert.equal(revocationListProblem(list, { authority, held: null }, now), problem);
    const feed = (await get(na, '/sovereign-revocation-feed')).body;
    assert.equal(verifier.feed(feed, feed.issuer_sovereign_id, [authority]), reason);
    const { body: delta } = await get(na, `/crl?since=${list.sequence}`);
    assert.equal(verifier.revocationListDelta(delta, list, authority).reason, reason);
  }
});
