/**
 * Years in which operators and nodes act only on what the authority announces: nothing lapses without an earlier
 * announcement, and nothing that is renewed in time ever lapses.
 */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { readGenesisBlock } from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import type { Horizon, PostureFinding } from '../src/protocol/rows/dashboard.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR, testClock } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  get,
  joinedNode,
  nodeRequest,
  operate,
  outcome,
  type TestNode,
} from './support/requests.ts';

const DAY = 24 * HOUR;
const START = Date.parse('2027-06-02T12:00:00Z');
/** `npm run test:longer -- lapses` covers five years. */
const DAYS = Number(process.env.MESH_TEST_LAPSE_DAYS ?? 95);
const DELEGATION_DAYS = 90;
const NODES = 1;
const TREATY_DAYS = 60;
/** Everything is announced at least this long before it ends. */
const NOTICE = 2 * DAY;

test(`within ${DAYS} days nothing lapses unannounced, and nothing that was acted on`, async (t) => {
  const clock = testClock(START);
  const { folder } = makeNetworkFolder('alpha', { now: START });
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  let na = await startTestAuthority({ clock, dataDir: folder });
  t.after(() => na.stop());
  const nodes: TestNode[] = [];
  for (let n = 0; n < NODES; n += 1) nodes.push(await joinedNode(na));
  let treaties = 0;
  await concludeTreaty();
  const announced = new Map<string, number>();

  /** Issues a treaty with the next sovereign. */
  async function concludeTreaty(): Promise<void> {
    treaties += 1;
    const body = {
      subject_sovereign_id: `sovereign-${treaties}`,
      subject_public_keys: [na.audience],
      validity_hours: TREATY_DAYS * 24,
    };
    assert.equal(outcome(await operate(na, '/admin/recognition-treaties', body)), '200');
  }

  /** Does the same as `mesh-na genesis renew`, and restarts. */
  async function renewDelegation(): Promise<void> {
    const file = join(folder, 'genesis.json');
    const genesis = readGenesisBlock(JSON.parse(readFileSync(file, 'utf8')));
    assert.ok(genesis !== null);
    const { signatures: _, ...block } = genesis;
    const root = signerFromSeed(readKeyFile(join(folder, 'keys', 'root.key')));
    const network_authority = {
      ...block.network_authority,
      valid_to: formatInstant(clock.now() + DELEGATION_DAYS * DAY),
    };
    const renewed = signRecord({ ...block, network_authority }, soleSigner(root));
    writeFileSync(file, JSON.stringify(renewed));
    na = await na.restart();
  }

  async function beat(node: TestNode, index: number): Promise<void> {
    const body = { cert_id: node.certId, status: 'healthy', bulletin: true };
    const beaten = await nodeRequest(na, '/heartbeat', node.key, body);
    assert.equal(outcome(beaten), '200');
    if (Date.parse(beaten.body.renew_after) > clock.now()) return;
    const renewed = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    assert.equal(outcome(renewed), '200');
    nodes[index] = { key: node.key, certId: renewed.body.cert_id };
  }

  async function findings(): Promise<readonly PostureFinding[]> {
    return (await get(na, '/dashboard.json')).body.posture.findings;
  }

  async function horizon(): Promise<Horizon['lapsing']> {
    const call = { method: 'GET', operator: na.standard };
    return (await operate(na, '/admin/horizon', {}, call)).body.lapsing;
  }

  async function assertDocumentsHold(): Promise<void> {
    await na.renewLists();
    for (const path of ['/crl', '/sovereign-revocation-feed.json', '/policy']) {
      const { body } = await get(na, path);
      const until = Date.parse(body.next_update ?? body.expires_at ?? body.valid_until ?? '');
      if (Number.isNaN(until)) continue;
      assert.ok(until > clock.now(), `${path} holds on ${formatInstant(clock.now())}`);
    }
  }

  for (let day = 0; day < DAYS; day += 1) {
    clock.advance(DAY);
    for (const [index, node] of nodes.entries()) await beat(node, index);
    await assertDocumentsHold();
    const today = formatInstant(clock.now());
    const found = new Set((await findings()).map(({ rule }) => rule));
    for (const { kind, soonest } of await horizon()) {
      const left = Date.parse(soonest) - clock.now();
      assert.ok(left > 0, `${kind} has not lapsed on ${today}`);
      const rule = ANNOUNCED_BY[kind];
      if (left < NOTICE) assert.ok(found.has(rule ?? ''), `${kind} is announced on ${today}`);
      if (found.has(rule ?? '')) announced.set(kind, (announced.get(kind) ?? 0) + 1);
    }
    if (found.has('delegation')) await renewDelegation();
    if (found.has('treaties_expiring')) await concludeTreaty();
  }
  for (const [kind, days] of [
    ['delegation', DELEGATION_DAYS],
    ['treaty', TREATY_DAYS],
  ] as const) {
    assert.ok((announced.get(kind) ?? 0) >= Math.floor(DAYS / days), `${kind} was announced`);
  }
});

const ANNOUNCED_BY: { readonly [kind: string]: string } = {
  delegation: 'delegation',
  certificate: 'certificates_lapsing',
  treaty: 'treaties_expiring',
};
