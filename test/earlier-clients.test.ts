/**
 * Clients that pinned the authority's key and know nothing of successions can read everything during the overlap
 * [authority-keys-10].
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, SECOND } from './support/clock.ts';
import {
  createEarlierClient,
  type EarlierClient,
  type EarlierRecord,
} from './support/earlier-client.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';
import { activated, DAY, stage, step, succession } from './support/successions.ts';
import { attest, issued, recognize, revokeAttestation } from './support/trust.ts';

type Json = { readonly [name: string]: unknown };

/** The readers of a network, and what they have received so far. */
interface Readers {
  readonly client: EarlierClient;
  readonly nodes: TestNode[];
  readonly attestations: string[];
  readonly treaties: string[];
  /** Records as they were received. */
  readonly kept: [string, EarlierRecord, Json][];
}

/** What fails for the readers at this time; every request is addressed to the pinned key. */
async function complaints(na: TestAuthority, at: string, readers: Readers): Promise<string[]> {
  const { client, nodes, attestations, treaties, kept } = readers;
  const found: string[] = [];
  const body = async (path: string) => {
    const answer = await get(na, path);
    check(path, problemOf(outcome(answer)));
    return answer.body;
  };
  const check = (what: string, problem: string | null) => {
    if (problem !== null) found.push(`${what}: ${problem}`);
  };
  const verify = (what: string, record: EarlierRecord, received: Json) =>
    check(what, client.verifies(record, received) ? null : 'it is not signed');
  const keep = (record: EarlierRecord, received: Json) => {
    kept.push([`${record} of ${at}`, record, received]);
    verify(`new ${record}`, record, received);
  };
  const { sequence } = await body('/crl');
  check('crl', client.takeList(await body('/crl'), na.clock.now()));

  const key = newKey();
  const joined = await nodeRequest(na, '/join', key, { invite_token: await invite(na) });
  keep('certificate', joined.body);
  const renewed = await nodeRequest(na, '/renew', key, { cert_id: joined.body.cert_id });
  keep('certificate', renewed.body);
  nodes.push({ key, certId: renewed.body.cert_id });
  for (const node of nodes) check('heartbeat', problemOf(outcome(await heartbeat(na, node))));

  const attestation = await issued(attest(na, { validity_hours: 2000 }));
  const treaty = await issued(recognize(na, { validity_hours: 2000 }));
  keep('attestation', attestation);
  keep('treaty', treaty);
  attestations.push(String(attestation.attestation_id));
  treaties.push(String(treaty.treaty_id));
  for (const id of attestations) {
    verify(`attestation ${id}`, 'attestation', (await body(`/attestations/${id}`)).attestation);
  }
  for (const id of treaties) {
    verify(`treaty ${id}`, 'treaty', (await body(`/recognition-treaties/${id}`)).treaty);
  }
  const license = await operate(na, '/admin/data-usage/policy', {
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['s-1'],
    allowed_access_types: ['read'],
    max_volume_bytes_per_session: 1000,
    valid_from: formatInstant(na.clock.now()),
    valid_until: formatInstant(na.clock.now() + HOUR),
  });
  keep('license', license.body);

  const revoked = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: revoked.certId });
  await revokeAttestation(na, (await issued(attest(na))).attestation_id);
  na.clock.advance(2 * SECOND);
  check('delta', client.continueList(await body(`/crl?since=${sequence}`), na.clock.now()));
  check('bulletin', client.takeBulletin(await body('/bulletin')));
  verify('policy', 'policy', await body('/policy'));
  verify('license', 'license', await body('/data-usage/policy'));
  verify('feed', 'feed', await body('/sovereign-revocation-feed'));
  for (const [what, record, received] of kept) verify(`kept ${what}`, record, received);
  return found;
}

const problemOf = (answer: string) => (answer === '200' ? null : answer);

async function readersOf(na: TestAuthority): Promise<Readers> {
  const { network_name } = (await get(na, '/genesis')).body;
  const client = createEarlierClient(network_name, na.audience);
  return { client, nodes: [], attestations: [], treaties: [], kept: [] };
}

for (const [end, isRolledBack] of [
  ['its end', false],
  ['it is rolled back', true],
] as const) {
  test(`clients of an earlier build verify everything through a planned change until ${end}`, async () => {
    await using started = await startTestAuthority();
    let na = started;
    const readers = await readersOf(na);
    const reads = async (at: string) =>
      assert.deepEqual(await complaints(na, at, readers), [], `${at}`);
    const passUntil = (instant: number) => na.clock.advance(instant - na.clock.now());

    await reads('before');
    const signed = await succession(na, { activatesIn: HOUR, overlap: 2 * DAY });
    const [activatesAt, overlapUntil] = [
      signed.statement.activates_at,
      signed.statement.overlap_until,
    ].map(Date.parse) as [number, number];
    assert.equal(outcome(await stage(na, signed)), '200');
    await reads('staged');
    passUntil(activatesAt - 10 * SECOND);
    await reads('a moment before the activation');
    passUntil(activatesAt);
    await activated(na);
    await reads('activated');
    // Keeps the audience, although the restarted authority would use the new key.
    na = { ...(await na.restart()), audience: na.audience };
    await using _ = { [Symbol.asyncDispose]: () => na[Symbol.asyncDispose]() };
    na.clock.advance(DAY);
    await reads('within the overlap');
    if (isRolledBack) {
      assert.equal(outcome(await step(na, 'roll-back')), '200');
      await reads('rolled back');
    }
    passUntil(overlapUntil - 10 * SECOND);
    await reads('a moment before the end of the overlap');
    passUntil(overlapUntil);
    await na.keepKeys();
    if (isRolledBack) {
      await reads('after the overlap');
      return;
    }

    // What they have remains valid; new records no longer verify.
    for (const [what, record, received] of readers.kept) {
      assert.ok(readers.client.verifies(record, received), what);
    }
    const { body: crl } = await get(na, '/crl');
    assert.equal(readers.client.takeList(crl, na.clock.now()), 'it is not signed');
    na.clock.advance(2 * SECOND);
    const { body: bulletin } = await get(na, '/bulletin');
    assert.equal(readers.client.takeBulletin(bulletin), 'it is not signed');
  });
}
