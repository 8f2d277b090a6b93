/** Authorities of other sovereigns whose certificates are of a CA of their own [core-4-13-3]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../src/base/json/value.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { get } from './support/requests.ts';
import { issueTlsPair, makeIssuer } from './support/tls-files.ts';
import { issued, recognize } from './support/trust.ts';
import { until } from './support/until.ts';

const NEEDS_CA =
  'the connection failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE): its certificate is of a CA that is unknown here; NODE_EXTRA_CA_CERTS can name it';

test('a partner whose certificate is of its own CA is fetched with that CA, and without it the finding says so', async () => {
  await using scratch = scratchFolder();
  const issuer = makeIssuer(scratch.path, 'house');
  const served = issueTlsPair(scratch.path, 'beta', issuer, { subject: 'IP:127.0.0.1' });
  await using betaFolder = networkFolder('beta');
  await using beta = await startTestAuthority({
    clock: REAL_TIME,
    dataDir: betaFolder.path,
    flags: { tlsCert: served.certFile, tlsKey: served.keyFile },
  });
  await using trusting = networkFolder('alpha');
  await using trusts = await serve(trusting.path, { NODE_EXTRA_CA_CERTS: issuer.certFile });
  const fetched = await firstFetch(trusts, beta);
  assert.equal(fetched.problem, null);
  assert.notEqual(fetched.imported_at, null);

  await using plain = networkFolder('gamma');
  await using lacks = await serve(plain.path, {});
  const refused = await firstFetch(lacks, beta);
  assert.deepEqual([refused.problem, refused.imported_at], [NEEDS_CA, null]);
  const environment = { MESH_URL: lacks.na.url, MESH_DATA_DIR: plain.path };
  const { stdout } = await runCommand(['doctor', '--json'], environment);
  const { checks } = JSON.parse(stdout);
  const { found } = checks.find(({ check }: JsonObject) => check === 'partners');
  assert.ok(found.startsWith(`"beta" at ${beta.url}: ${NEEDS_CA} (since `), stdout);
});

function serve(folder: string, environment: Record<string, string>): Promise<ChildServer> {
  return startChildServer(folder, {
    environment: { ...NO_LIMITS, MESH_FEDERATION_PRIVATE: '1', ...environment },
  });
}

/** The state of fetching after the first visit. */
async function firstFetch({ na }: ChildServer, partner: TestAuthority): Promise<JsonObject> {
  const terms = { subject_public_keys: [partner.audience], endpoint: partner.url };
  const { treaty_id } = await issued(recognize(na, terms));
  let fetch: JsonObject = {};
  await until(async () => {
    fetch = (await get(na, `/recognition-treaties/${treaty_id}`)).body.fetch;
    return fetch.fetched_at !== null || fetch.problem !== null;
  });
  return fetch;
}
