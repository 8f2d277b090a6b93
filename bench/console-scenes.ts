/** States of the console that an address alone does not reach: confirmations before a change, and results after it. */
import type { Page } from 'playwright-core';
import type { TestAuthority } from '../test/support/authority.ts';
import type { ConsoleOptions } from '../test/support/console.ts';
import { operate } from '../test/support/requests.ts';
import { stage, succession } from '../test/support/successions.ts';

export interface ConsoleScene {
  /** The name of its pictures. */
  readonly name: string;
  readonly console?: (na: TestAuthority) => ConsoleOptions;
  /** Navigates from the nodes page to the scene; false if this network has nothing to show for it. */
  reach(page: Page, na: TestAuthority): Promise<boolean>;
}

const KEY = `${'k7'.repeat(21)}A=`;

/** Changes that can be proposed on every network, and how their forms are filled in. */
const CHANGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'issue-treaty': {
    subject_sovereign_id: 'harbor-watch',
    subject_public_keys: KEY,
    validity_hours: '720',
    'scope.allowed_roles': 'role:client',
  },
  'issue-attestation': {
    subject_id: 'survey-drone-12',
    subject_public_key: KEY,
    roles: 'role:client',
  },
  'publish-policy': {
    min_client_version: '1.2.0',
    'routing.max_hops': '4',
    allowed_ports: '443',
    'routing.preferred_transports': 'quic',
  },
  'add-operator-key': { key_id: 'night-shift', public_key: KEY, tier: 'privileged' },
  'set-operator-tier': { key_id: 'ops-standard', tier: 'privileged' },
};

/** The order matters, because the changes are real and later scenes need what they leave. */
export const CONSOLE_SCENES: readonly ConsoleScene[] = [
  scene('login', (page) => open(page, '/')),
  scene('login-refused', async (page) => {
    await open(page, '/');
    await page.fill('#token', 'used');
    return followed(page, 'main form button');
  }),
  scene('help', (page) => page.keyboard.press('?')),
  scene(
    'read-only',
    (page) => followed(page, 'tbody a'),
    () => ({ isReadOnly: true }),
  ),
  scene(
    'standard',
    (page) => followed(page, 'tbody a'),
    (na) => ({ operator: na.standard }),
  ),
  scene(
    'standard-operators',
    (page) => open(page, './operators'),
    (na) => ({
      operator: na.standard,
    }),
  ),
  scene(
    'away',
    () => undefined,
    () => ({ url: 'http://127.0.0.1:1' }),
  ),
  scene(
    'away-health',
    (page) => open(page, './health'),
    () => ({ url: 'http://127.0.0.1:1' }),
  ),
  scene('form-problem', async (page) => {
    await firstOf(page, './invites', 'text=Create invites…');
    await page.fill('[name="labels"]', 'no label at all');
    await page.click('text=Create…');
  }),
  scene('filtered', (page) => open(page, './nodes?q=role:client&silent=1h&sort=-contact')),
  scene('revoke-matching', async (page) => {
    await open(page, './nodes?q=role:client');
    if (!(await followed(page, 'text=Revoke all that match'))) return false;
    return followed(page, 'form button:has-text("Revoke all")');
  }),
  scene('revoke-confirm', revokeFirst),
  scene('revoke-refused', async (page) => {
    if (!(await revokeFirst(page))) return false;
    await page.fill('#number', '0');
    return followed(page, 'button:has-text("Revoke")');
  }),
  scene('revoke-done', async (page) => {
    if (!(await revokeFirst(page))) return false;
    await page.fill('#number', await typedNumber(page));
    return followed(page, 'button:has-text("Revoke")');
  }),
  scene('node-revoked', async (page) => {
    await open(page, './nodes?status=revoked');
    return followed(page, 'tbody a');
  }),
  scene('node-agent', async (page) => {
    await open(page, './audit?type=agent_registered');
    const key = (await page.locator('code').allInnerTexts()).find((text) => text.length === 44);
    return key !== undefined && open(page, `./node?key=${encodeURIComponent(key)}`);
  }),
  scene('invite-confirm', createInvites),
  scene('invite-created', async (page) => {
    await createInvites(page);
    await page.click('button:has-text("Create")');
    await page.locator('h1', { hasText: 'Done' }).waitFor();
  }),
  scene('invite-batch', (page) => open(page, './invites?batch=spring')),
  scene('withdraw-batch', (page) =>
    firstOf(page, './invites?batch=spring', 'text=Withdraw the batch…'),
  ),
  scene('treaty-follow', (page) => {
    return firstOf(page, './treaties', 'text=Follow…');
  }),
  scene('treaty-revoke', async (page) => {
    return firstOf(page, './treaties', 'text=Revoke…', 'main form button');
  }),
  scene('operator-revoke', async (page) => {
    return firstOf(page, './operators', 'tr:last-child >> text=Revoke…', 'main form button');
  }),
  scene('policy-compared', async (page, na) => {
    for (const hops of [4, 6]) {
      await operate(na, '/admin/policy', {
        min_client_version: '1.0.0',
        allowed_ports: [443, 8443, hops],
        allowed_services: ['mesh', 'metrics'],
        routing: { preferred_transports: ['quic', 'tcp'], max_hops: hops },
      });
      na.clock.advance(1000);
    }
    await open(page, './policy');
  }),
  scene('policy-rollback', (page) => firstOf(page, './policy', 'text=Activate again…')),
  ...Object.entries(CHANGES).map(([name, fields]) =>
    scene(`confirm-${name}`, async (page) => {
      await open(page, `./do?${new URLSearchParams({ action: name, ...fields })}`);
      return followed(page, 'main form button');
    }),
  ),
  scene('withdraw-invite', (page) => firstOf(page, './invites?status=unused', 'text=Withdraw…')),
  scene('attestation-revoke', (page) =>
    firstOf(page, './attestations', 'td >> text=Revoke…', 'main form button'),
  ),
  scene('describe-node', describeFirst),
  scene('describe-done', async (page) => {
    if (!(await describeFirst(page))) return false;
    return followed(page, 'button:has-text("Set name and labels")');
  }),
  scene(
    'key-revoked',
    async (page, na) => {
      await operate(na, '/admin/operator-keys/ops-standard/revoke', {});
      await open(page, './invites');
    },
    (na) => ({ operator: na.standard }),
  ),
  scene('operators-revoked', (page) => open(page, './operators')),
  scene('audit-none', (page) => open(page, './audit?q=nothing-like-it')),
  scene('invites-none', (page) => open(page, './invites?status=withdrawn&batch=none')),
  scene('nowhere', (page) => open(page, './nowhere')),
  scene('succession-staged', async (page, na) => {
    await stage(na, await succession(na, { activatesIn: 86_400_000 }));
    await open(page, './succession');
  }),
  scene('succession-cancel', (page) => firstOf(page, './succession', 'text=Cancel succession…')),
  // Not offered before its time, at which the authority does it by itself.
  scene('succession-activate', (page) =>
    firstOf(page, './do?action=activate-succession', 'main form button'),
  ),
  scene('succession-overlap', async (page, na) => {
    na.clock.advance(86_400_000);
    await operate(na, '/admin/authority-keys/activate', {});
    await open(page, './succession');
  }),
  scene('succession-finish', (page) => firstOf(page, './succession', 'text=Finish…')),
  scene('succession-roll-back', (page) => firstOf(page, './succession', 'text=Roll back…')),
  scene('succession-finished', async (page, na) => {
    const { nodes } = (await operate(na, '/admin/authority-keys/adoption', {}, { method: 'GET' }))
      .body;
    await operate(na, '/admin/authority-keys/finish', { despite: nodes.laggards });
    await open(page, './succession');
  }),
];

function scene(
  name: string,
  reach: (page: Page, na: TestAuthority) => unknown,
  console?: ConsoleScene['console'],
): ConsoleScene {
  return {
    name: `console-${name}`,
    ...(console !== undefined && { console }),
    async reach(page, na) {
      const isThere = await reach(page, na);
      await page.waitForLoadState();
      return isThere !== false;
    },
  };
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(new URL(path, page.url()).href);
}

/** Clicks the first element; false if there is none. */
async function followed(page: Page, selector: string): Promise<boolean> {
  const found = page.locator(selector).first();
  if ((await found.count()) === 0) return false;
  await found.click();
  await page.waitForLoadState();
  return true;
}

async function firstOf(page: Page, path: string, ...selectors: string[]): Promise<boolean> {
  await open(page, path);
  for (const selector of selectors) if (!(await followed(page, selector))) return false;
  return true;
}

async function describeFirst(page: Page): Promise<boolean> {
  if (!(await firstOf(page, './nodes', 'tbody a'))) return false;
  await page.fill('[name="labels"]', 'env=staging\nowner=edge-team');
  return followed(page, 'text=Set name and labels…');
}

/** Opens the confirmation for revoking a node's key as compromised. */
async function revokeFirst(page: Page): Promise<boolean> {
  await open(page, './nodes');
  if (!(await followed(page, 'tbody a')) || !(await followed(page, 'a:has-text("Revoke…")')))
    return false;
  await page.selectOption('[name="reason"]', 'key_compromise');
  return followed(page, 'form button:has-text("Revoke")');
}

async function typedNumber(page: Page): Promise<string> {
  return /\d+/.exec(await page.innerText('label[for="number"]'))?.[0] ?? '';
}

async function createInvites(page: Page): Promise<void> {
  await firstOf(page, './invites', 'text=Create invites…');
  await page.fill('[name="count"]', '3');
  await page.fill('[name="name"]', 'relay-{n}');
  await page.fill('[name="batch"]', 'spring');
  await page.fill('[name="labels"]', 'env=prod\nrack=r7');
  await page.click('text=Create…');
  await page.waitForLoadState();
}
