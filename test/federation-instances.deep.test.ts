/** Several instances of one network: only the active one fetches partners, and so does its successor [core-4-13-3]. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { MINUTE, REAL_TIME, SECOND } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { startHostileAuthority } from './support/hostile-authority.ts';
import { isActive, placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { get } from './support/requests.ts';
import { attest, issued, post, recognize, revokeAttestation, sovereign } from './support/trust.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const INTERVAL = MINUTE;
const FEDERATION = { MESH_FEDERATION_PRIVATE: '1', MESH_FEDERATION_INTERVAL: '1m' };

test('only the active instance fetches, and so does the next one after that was stopped or killed', async () => {
  await using instances = await testInstances(cluster);
  const first = await instances.start(FEDERATION);
  const second = await instances.start(FEDERATION);
  const beta = sovereign('beta');
  await using host = await startHostileAuthority();
  const publish = (sequence: number, ids: readonly string[]) => {
    const feed = beta.feed(REAL_TIME.now(), sequence, { revoked_attestation_ids: ids });
    const ofPath = (path: string) => ({
      [`GET ${path}/authority-keys`]: { successions: [] },
      [`GET ${path}/sovereign-revocation-feed`]: feed,
    });
    host.answers = Object.assign({}, ...PATHS.map(ofPath));
  };
  const visits = (path: string) =>
    host.asked.filter(({ route }) => route === `GET ${path}/sovereign-revocation-feed`).length;
  const recognizeAt = ({ na }: ChildServer, path: string) =>
    issued(
      recognize(na, {
        subject_public_keys: [beta.key.publicKey],
        endpoint: `${host.url}${path}`,
      }),
    );

  publish(1, ['one']);
  assert.equal((await placeOf(second)).role, 'standby');
  // A new endpoint is visited within a second: a standby that fetched would have been there meanwhile.
  for (const path of PATHS.slice(0, 4)) {
    await recognizeAt(first, path);
    await until(async () => visits(path) > 0);
  }
  assert.deepEqual(PATHS.map(visits), [1, 1, 1, 1, 0, 0]);
  assert.deepEqual(await importedOf(first), ['one']);
  assert.match((await get(first.na, '/metrics')).text, LAG);
  assert.doesNotMatch((await get(second.na, '/metrics')).text, LAG);

  publish(2, ['one', 'two']);
  assert.equal((await first.end('SIGTERM')).code, 0);
  await until(() => isActive(second));
  const third = await instances.start(FEDERATION);
  await recognizeAt(second, '/5');
  await until(async () => (await importedOf(second)).length === 2);
  assert.deepEqual(await importedOf(second), ['one', 'two']);

  publish(3, ['one', 'three', 'two']);
  await second.end('SIGKILL');
  await until(() => isActive(third));
  const before = visits('/1');
  const since = performance.now();
  // What treaties named before is visited within the interval, too.
  await until(async () => visits('/1') > before);
  assert.ok(performance.now() - since < INTERVAL + 10 * SECOND);
  await until(async () => (await importedOf(third)).length === 3);
  assert.deepEqual(await importedOf(third), ['one', 'three', 'two']);
  await recognizeAt(third, '/6');
  await until(async () => visits('/6') > 0);
});

test('between three processes, what each revokes is refused by both others within the interval', async (t) => {
  await using alphaFolder = networkFolder('alpha');
  await using betaFolder = networkFolder('beta');
  await using gammaFolder = networkFolder('gamma');
  const environment = { ...NO_LIMITS, ...FEDERATION };
  await using alpha = await startChildServer(alphaFolder.path, { environment });
  await using beta = await startChildServer(betaFolder.path, { environment });
  await using gamma = await startChildServer(gammaFolder.path, { environment });
  const networks = [
    { name: 'alpha', na: alpha.na },
    { name: 'beta', na: beta.na },
    { name: 'gamma', na: gamma.na },
  ];
  const pairs = networks.flatMap((from) =>
    networks.filter((to) => to !== from).map((to) => ({ from, to })),
  );
  const treaties = await Promise.all(
    pairs.map(({ from, to }) =>
      issued(
        recognize(from.na, {
          subject_sovereign_id: to.name,
          subject_public_keys: [to.na.audience],
          endpoint: to.na.url,
        }),
      ),
    ),
  );
  const attestations = await Promise.all(networks.map(({ na }) => issued(attest(na))));
  const verdicts = () =>
    Promise.all(
      pairs.map(async ({ from, to }, index) => {
        const attestation = attestations[networks.indexOf(to)] as JsonObject;
        const given = { attestation, treaty: treaties[index] as JsonObject };
        return (await post(from.na, '/attestations/verify-with-treaty', given)).body.reason;
      }),
    );
  await until(async () =>
    (await Promise.all(pairs.map(({ from }) => fetchedAll(from.na)))).every(Boolean),
  );
  assert.deepEqual(
    await verdicts(),
    pairs.map(() => 'accepted'),
  );
  const since = performance.now();
  await Promise.all(
    networks.map(({ na }, index) => revokeAttestation(na, attestations[index]?.attestation_id)),
  );
  await until(async () => (await verdicts()).every((reason) => reason === REVOKED));
  const tookMs = performance.now() - since;
  t.diagnostic(`refused everywhere after ${Math.round(tookMs / SECOND)} s`);
  assert.ok(tookMs < INTERVAL + 10 * SECOND, `${tookMs} ms`);
});

const PATHS = ['/1', '/2', '/3', '/4', '/5', '/6'];
const LAG = /^mesh_na_partner_lag_seconds\{/m;
const REVOKED = 'attestation_locally_revoked';

async function importedOf({ na }: ChildServer): Promise<string[]> {
  const { revocation_blast_radius: rows } = (await get(na, '/connectome.json')).body;
  return rows.map(({ id }: JsonObject) => id).sort();
}

async function fetchedAll(na: ChildServer['na']): Promise<boolean> {
  const { partners = [] } = (await get(na, '/dashboard.json')).body;
  return (
    partners.length === 2 && partners.every(({ fetched_at }: JsonObject) => fetched_at !== null)
  );
}
