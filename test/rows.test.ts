/** Each kind of row has one schema: served rows have the members that it states, and no others. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { TSchema } from 'typebox';
import Value from 'typebox/value';
import type { JsonValue } from '../src/base/json/value.ts';
import {
  Dashboard,
  DashboardFeed,
  DashboardTreaty,
  FeedSummary,
  RecentChangeRow,
  TreatySummary,
  TrustCycleSummary,
} from '../src/protocol/rows/dashboard.ts';
import {
  Atlas,
  BlastRadiusRow,
  Connectome,
  ConnectomeSummary,
  EdgeRow,
  ImportedRevocation,
  RecognitionGraph,
  RevokedTreaty,
  SovereignRow,
  TrustPath,
} from '../src/protocol/rows/graph.ts';
import { AttestationRow, TreatyRow } from '../src/protocol/rows/recognition.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { get } from './support/requests.ts';
import {
  attest,
  importFeed,
  issued,
  parsed,
  recognize,
  revokeAttestation,
  revokeTreaty,
  sovereign,
} from './support/trust.ts';

/** Adds treaties in every state, an imported feed, attestations and a trust cycle. */
async function fill(na: TestAuthority): Promise<void> {
  const beta = sovereign('beta');
  const treatyWith = (subject: string, hours: number, publicKey = beta.key.publicKey) =>
    issued(
      recognize(na, {
        subject_sovereign_id: subject,
        subject_public_keys: [publicKey],
        validity_hours: hours,
      }),
    );
  await treatyWith('gamma', 1);
  na.clock.advance(2 * HOUR);
  await treatyWith('beta', 400);
  await treatyWith('delta', 24);
  const ended = await treatyWith('gamma', 400);
  await revokeTreaty(na, ended.treaty_id, { reason: 'ended' });
  const old = await treatyWith('beta', 400);
  await revokeTreaty(na, old.treaty_id, { reason: 'replaced_by:another' });
  await issued(
    importFeed(
      na,
      beta.feed(na.clock.now(), 1, {
        revoked_attestation_ids: ['left', 'unnamed'],
        revocation_reasons: { left: 'left the team' },
      }),
    ),
  );
  await issued(attest(na));
  const revoked = await issued(attest(na));
  await revokeAttestation(na, revoked.attestation_id, { reason: 'left' });
  await na.runTrustCycle();
}

function assertFits(schema: TSchema, value: JsonValue | undefined): void {
  assert.deepEqual([...Value.Errors(schema, value)], []);
  assert.deepEqual(Value.Clean(schema, structuredClone(value)), value, 'a member is not described');
}

function assertEachFits(schema: TSchema, rows: JsonValue | undefined, least = 1): void {
  assert.ok(Array.isArray(rows) && rows.length >= least, `${least} rows`);
  for (const row of rows) assertFits(schema, row);
}

function ofType(rows: JsonValue | undefined, type: string): JsonValue {
  assert.ok(Array.isArray(rows));
  return rows.filter((row) => row.type === type);
}

suite('served rows match their schemas', () => {
  let na: TestAuthority;
  before(async () => {
    na = await startTestAuthority();
    await fill(na);
  });
  after(() => na.stop());
  const read = async (path: string) => parsed(await get(na, path));

  test('the recognition graph', async () => {
    const graph = await read('/recognition-graph');
    assertFits(RecognitionGraph, graph);
    assertEachFits(SovereignRow, graph.sovereigns, 4);
    assertEachFits(EdgeRow, graph.recognition_edges, 5);
    const material = graph.revoked_trust_material;
    assertEachFits(RevokedTreaty, ofType(material, 'recognition_treaty'), 2);
    assertEachFits(ImportedRevocation, ofType(material, 'membership_attestation'), 2);
  });

  test('the Connectome', async () => {
    const connectome = await read('/connectome.json');
    assertFits(Connectome, connectome);
    assertFits(ConnectomeSummary, connectome.summary);
    assertEachFits(BlastRadiusRow, connectome.revocation_blast_radius, 2);
  });

  test('the atlas and a trust path', async () => {
    assertFits(Atlas, await read('/atlas.json'));
    const path = await read('/connectome/trust-path?from=alpha&to=beta');
    assert.equal(path.trusted, true);
    assertFits(TrustPath, path);
  });

  test('the dashboard', async () => {
    const dashboard = await read('/dashboard.json');
    assertFits(Dashboard, dashboard);
    assertFits(ConnectomeSummary, dashboard.connectome_summary);
    assertFits(TreatySummary, dashboard.treaty_summary);
    assertEachFits(DashboardTreaty, dashboard.treaties, 5);
    assertFits(FeedSummary, dashboard.revocation_feed_summary);
    assertEachFits(DashboardFeed, dashboard.revocation_feeds);
    assertFits(TrustCycleSummary, dashboard.trust_cycle_summary);
    assertEachFits(RecentChangeRow, dashboard.recent_changes, 8);
  });

  test('the lists of treaties and attestations', async () => {
    const { recognition_treaties: treaties } = await read('/recognition-treaties');
    assertEachFits(TreatyRow, treaties, 5);
    const { attestations } = await read('/attestations');
    assertEachFits(AttestationRow, attestations, 2);
  });
});
