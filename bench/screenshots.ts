/**
 * `npm run screenshots -- <folder>`: pictures of every page in both themes and two widths, of a real
 * authority with an invented network. A browser renders them, so that the README shows the real pages.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { ROUTES } from '../src/routes/table.ts';
import { isPage } from '../src/views/route-groups.ts';
import { startTestAuthority, type TestAuthority } from '../test/support/authority.ts';
import { NARROW, startBrowser, type TestBrowser } from '../test/support/browser.ts';
import { HOUR, MINUTE } from '../test/support/clock.ts';
import { makeNetworkFolder } from '../test/support/folders.ts';
import { heartbeat, joinedNode, operate } from '../test/support/requests.ts';
import {
  attest,
  importFeed,
  issued,
  recognize,
  revokeAttestation,
  revokeTreaty,
  type Sovereign,
  sovereign,
} from '../test/support/trust.ts';

const THEMES = ['light', 'dark'] as const;
const WIDTHS = [
  ['wide', 1280, 800],
  ['narrow', NARROW, 740],
] as const;
const DAY = 24 * HOUR;

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('Usage: npm run screenshots -- <folder>\n');
  process.exitCode = 2;
} else {
  await drawAll(folder);
}

async function drawAll(target: string): Promise<void> {
  mkdirSync(target, { recursive: true });
  const { folder: dataDir } = makeNetworkFolder('helios-grid');
  const commands = commandReference(buildProgram());
  const browser = await startBrowser();
  try {
    await using na = await startTestAuthority({ dataDir, commands });
    await live(na);
    for (const route of ROUTES.filter(isPage)) await draw(browser, na, route.path, target);
  } finally {
    await browser.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function draw(browser: TestBrowser, na: TestAuthority, path: string, target: string) {
  const name = path === '/' ? 'home' : path.slice(1);
  for (const theme of THEMES) {
    for (const [size, width, height] of WIDTHS) {
      await using visit = await browser.visit(na.url + path, { theme, width, height });
      const file = join(target, `${name}-${theme}-${size}.png`);
      await visit.page.screenshot({ path: file });
      process.stdout.write(`${file}\n`);
    }
  }
}

/**
 * Some days in the life of a network: nodes join and leave, and other sovereigns are recognized and
 * revoked.
 */
async function live(na: TestAuthority): Promise<void> {
  const [port, rail, tide, mill] = ['port-authority', 'north-rail', 'tidewater', 'old-mill'].map(
    (name) => sovereign(name),
  ) as [Sovereign, Sovereign, Sovereign, Sovereign];
  const nodes = [];
  for (let i = 0; i < 14; i += 1) {
    const roles = [['role:client'], ['role:anchor'], ['role:bridge']][i % 3] ?? [];
    nodes.push(await joinedNode(na, { roles }));
    na.clock.advance(7 * MINUTE);
  }
  for (const [i, reason] of [
    [3, 'key_compromise'],
    [8, 'superseded'],
  ] as const) {
    await operate(na, '/admin/revoke', { cert_id: String(nodes[i]?.certId), reason });
    na.clock.advance(11 * MINUTE);
  }
  const treaty = (subject: Sovereign, hours: number) =>
    issued(
      recognize(na, {
        subject_sovereign_id: subject.name,
        subject_public_keys: [subject.key.publicKey],
        validity_hours: hours,
      }),
    );
  await treaty(port, 720);
  await treaty(rail, 30);
  const lost = await treaty(mill, 720);
  await treaty(tide, 168);
  na.clock.advance(DAY / 4);
  await revokeTreaty(na, lost.treaty_id, { reason: 'signing key exposed' });
  const badge = await issued(attest(na, { subject_id: 'survey-drone-12' }));
  await attest(na, { subject_id: 'dispatch-agent' });
  await revokeAttestation(na, badge.attestation_id, { reason: 'decommissioned' });
  for (const [from, ids] of [
    [port, ['crane-4', 'gate-9']],
    [tide, ['buoy-17']],
  ] as const) {
    const reasons = Object.fromEntries(ids.map((id) => [id, 'key compromised']));
    const now = na.clock.now();
    const feed = from.feed(now, 1, { revoked_attestation_ids: ids, revocation_reasons: reasons });
    await importFeed(na, feed);
    na.clock.advance(5 * MINUTE);
  }
  for (const [i, node] of nodes.entries()) if (i % 5 !== 4) await heartbeat(na, node);
  await na.runTrustCycle();
}
