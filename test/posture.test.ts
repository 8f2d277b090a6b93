/** Which problems the dashboard reports, and that it does. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { FleetFacts } from '../src/authority/census.ts';
import { createFailureWindow } from '../src/authority/counts.ts';
import {
  judgePosture,
  POSTURE_RULES,
  type PostureFacts,
  type SuccessionFacts,
} from '../src/authority/dashboard/posture.ts';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { FINDING_CURES } from '../src/pages/dashboard/posture-section.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, REAL_TIME, SECOND } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import {
  get,
  heartbeat,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  operate,
  type TestNode,
} from './support/requests.ts';

const DAY = 24 * HOUR;
const NOW = Date.parse('2026-06-01T00:00:00Z');
const hook = (failingSince: number | null) => ({
  host: 'hooks.example',
  delivered: 7,
  failingSince,
  waitingSince: failingSince,
});
const FLEET: FleetFacts = {
  expected: 12,
  healthy: 12,
  silent: 0,
  silentKnownFrom: NOW,
  unwell: 0,
  lapsing: 0,
  lapsed: 0,
  since: { silent: null, lapsing: null, lapsed: null },
  roles: [],
  more_roles: 0,
};
const WELL: PostureFacts = {
  now: NOW,
  ready: true,
  restoredUntil: null,
  fleet: FLEET,
  delegatedUntil: NOW + 60 * DAY,
  tlsNotAfter: NOW + 60 * DAY,
  recordedUntil: NOW,
  listDueAt: NOW + HOUR,
  diskFree: 2 ** 40,
  minFree: 256 * 2 ** 20,
  webhooks: [hook(null), hook(NOW - 15 * MINUTE + 1)],
  partners: partners(null, NOW - 15 * MINUTE + 1),
  signs: true,
  backup: { every: DAY, verifiedAt: NOW - DAY, since: NOW - 9 * DAY },
  operatorKeys: { usable: 2, privileged: 1 },
  failures: { operator: 3, node: 3 },
  treaties: { expired: 0, expiring_soon: 0 },
  treatiesBehind: { count: 0, acceptStolenKey: 0 },
  staleFeeds: 0,
  succession: null,
  trustCycle: { status: 'verified', freshness: 'fresh' },
  countedSince: {
    treaties_expired: null,
    treaties_expiring: null,
    feeds_stale: null,
    trust_cycle: null,
  },
};
/** Partners, by when they began to fail. */
function partners(...since: readonly (number | null)[]): PostureFacts['partners'] {
  const problem = { text: 'it answered 500', isRefused: false };
  const facts = { subject: 'beta', endpoint: 'https://na.beta.example', fetchedAt: null };
  return new Map(
    since.map((failingSince, index) => [
      String(index),
      { ...facts, failingSince, problem: failingSince === null ? null : problem },
    ]),
  );
}
const refusing: PostureFacts['partners'] = new Map(
  [...partners(NOW)].map(([key, facts]) => [
    key,
    { ...facts, problem: { text: 'its feed is refused: stale_sequence', isRefused: true } },
  ]),
);
const fleet = (changes: Partial<FleetFacts>) => ({ fleet: { ...FLEET, ...changes } });
const backup = (changes: Partial<NonNullable<PostureFacts['backup']>>) => ({
  backup: { every: DAY, verifiedAt: NOW, since: NOW, ...changes },
});

const OVERLAP: SuccessionFacts = {
  state: 'overlap',
  activatesAt: NOW - DAY,
  overlapUntil: NOW + 3 * DAY,
  nodes: { active: 12, laggards: 1 },
  knownFrom: null,
};
const succession = (changes: Partial<SuccessionFacts>) => ({
  succession: { ...OVERLAP, ...changes },
});

const CASES: readonly (readonly [rule: string, severity: string, change: Partial<PostureFacts>])[] =
  [
    ['store', 'action', { ready: false }],
    ['restored', 'attention', { restoredUntil: NOW + MINUTE }],
    ['signer', 'action', { signs: false }],
    ['disk', 'attention', { diskFree: 900 * 2 ** 20 }],
    ['disk', 'action', { diskFree: 200 * 2 ** 20 }],
    ['disk', 'action', { diskFree: 200 * 2 ** 20, minFree: 0 }],
    ['disk', 'action', { diskFree: 2 ** 31, minFree: 2 ** 32 }],
    ['clock', 'attention', { recordedUntil: NOW + 6 * MINUTE }],
    ['backup', 'attention', backup({ verifiedAt: NOW - 37 * HOUR })],
    ['backup', 'action', backup({ verifiedAt: NOW - 4 * DAY })],
    ['webhooks', 'attention', { webhooks: [hook(null), hook(NOW - 15 * MINUTE)] }],
    ['webhooks', 'action', { webhooks: [hook(NOW - DAY), hook(NOW - HOUR)] }],
    ['partners', 'attention', { partners: partners(null, NOW - 15 * MINUTE) }],
    ['partners', 'attention', { partners: refusing }],
    ['partners', 'action', { partners: partners(NOW - DAY) }],
    ['backup', 'attention', backup({ verifiedAt: null, since: NOW - 37 * HOUR })],
    ['nodes_silent', 'attention', fleet({ silent: 1 })],
    ['nodes_silent', 'action', fleet({ silent: 6 })],
    ['nodes_unwell', 'attention', fleet({ unwell: 1 })],
    ['nodes_unwell', 'action', fleet({ unwell: 12 })],
    ['certificates_lapsing', 'attention', fleet({ lapsing: 1 })],
    ['certificates_lapsed', 'attention', fleet({ lapsed: 1 })],
    ['delegation', 'attention', { delegatedUntil: NOW + 10 * DAY }],
    ['delegation', 'action', { delegatedUntil: NOW + 2 * DAY }],
    ['delegation', 'action', { delegatedUntil: NOW }],
    ['tls', 'attention', { tlsNotAfter: NOW + 10 * DAY }],
    ['tls', 'action', { tlsNotAfter: NOW - DAY }],
    ['succession_due', 'action', succession({ state: 'staged', activatesAt: NOW - MINUTE })],
    ['succession_laggards', 'attention', succession({ overlapUntil: NOW + 3 * DAY - 1 })],
    ['succession_laggards', 'action', succession({ overlapUntil: NOW + DAY - 1 })],
    ['documents_late', 'action', { listDueAt: NOW }],
    ['operator_keys', 'action', { operatorKeys: { usable: 1, privileged: 0 } }],
    ['operator_keys', 'action', { operatorKeys: { usable: 0, privileged: 0 } }],
    ['authentication', 'attention', { failures: { operator: 20, node: 0 } }],
    ['authentication', 'attention', { failures: { operator: 0, node: 200 } }],
    ['treaties_expired', 'attention', { treaties: { expired: 1, expiring_soon: 0 } }],
    ['treaties_expiring', 'attention', { treaties: { expired: 0, expiring_soon: 1 } }],
    ['treaties_behind', 'attention', { treatiesBehind: { count: 1, acceptStolenKey: 0 } }],
    ['treaties_behind', 'action', { treatiesBehind: { count: 2, acceptStolenKey: 1 } }],
    ['feeds_stale', 'attention', { staleFeeds: 1 }],
    ['trust_cycle', 'action', { trustCycle: { status: 'failed', freshness: 'fresh' } }],
    ['trust_cycle', 'attention', { trustCycle: { status: 'verified', freshness: 'stale' } }],
  ];

suite('one table decides', () => {
  test('a healthy network has no findings', () =>
    assert.deepEqual(judgePosture(WELL), { findings: [], unknown: [] }));

  test('right after a start it is unknown which nodes are silent', () => {
    const early = { ...WELL, ...fleet({ silent: null, silentKnownFrom: NOW + 5 * MINUTE }) };
    assert.deepEqual(judgePosture(early), {
      findings: [],
      unknown: [
        {
          rule: 'nodes_silent',
          sentence: 'Nodes that have fallen silent: not known before 00:05 UTC.',
          known_from: '2026-06-01T00:05:00Z',
        },
      ],
    });
    const uncounted = judgePosture({ ...WELL, fleet: null });
    assert.deepEqual(uncounted.findings, []);
    assert.equal(uncounted.unknown.length, 4);
  });

  test('failed authentications count for an hour, and no other refusals do', () => {
    let elapsed = 0;
    const { note, lastHour } = createFailureWindow(() => elapsed);
    for (const event of ['admin_auth_failed', 'admin_auth_failed', 'node_auth_failed']) note(event);
    note('join_rejected');
    elapsed = 59 * MINUTE;
    note('node_auth_failed');
    assert.deepEqual(lastHour(), { operator: 2, node: 2 });
    elapsed = 60 * MINUTE;
    assert.deepEqual(lastHour(), { operator: 0, node: 1 });
    note('admin_auth_failed');
    assert.deepEqual(lastHour(), { operator: 1, node: 1 });
  });

  test('a succession is healthy before its time, and once there are no laggards', () => {
    for (const change of [
      {},
      { state: 'finished', overlapUntil: NOW } as const,
      { state: 'staged', activatesAt: NOW - MINUTE + 1 } as const,
      { overlapUntil: NOW + 1, nodes: { active: 12, laggards: 0 } },
    ]) {
      assert.deepEqual(judgePosture({ ...WELL, ...succession(change) }).findings, []);
    }
  });

  test('laggards are unknown before nodes are counted, and right after a start', () => {
    const soon = { overlapUntil: NOW + DAY };
    for (const [change, known_from] of [
      [{ ...soon, nodes: null }, null],
      [{ ...soon, knownFrom: NOW + 5 * MINUTE }, '2026-06-01T00:05:00Z'],
    ] as const) {
      const { findings, unknown } = judgePosture({ ...WELL, ...succession(change) });
      assert.deepEqual(findings, []);
      assert.deepEqual(
        unknown.map((each) => [each.rule, each.known_from]),
        [['succession_laggards', known_from]],
      );
    }
  });

  for (const [rule, severity, change] of CASES) {
    test(`${rule} finds ${JSON.stringify(change)}`, () => {
      const { findings } = judgePosture({ ...WELL, ...change });
      assert.deepEqual(
        findings.map((found) => [found.rule, found.severity]),
        [[rule, severity]],
      );
      assert.match(findings[0]?.sentence ?? '', /^[A-Z\d].*\.$/);
    });
  }

  test('every rule has a case', () =>
    assert.deepEqual(
      new Set(CASES.map(([rule]) => rule)),
      new Set(POSTURE_RULES.map(({ name }) => name)),
    ));

  test('the most serious finding comes first', () => {
    const { findings } = judgePosture({ ...WELL, staleFeeds: 1, listDueAt: NOW });
    assert.deepEqual(
      findings.map(({ severity }) => severity),
      ['action', 'attention'],
    );
  });
});

suite('a fleet of twelve', () => {
  let na: TestAuthority;
  let nodes: TestNode[];
  before(async () => {
    na = await startTestAuthority();
    nodes = await joinedNodes(na, 12);
  });
  after(() => na[Symbol.asyncDispose]());

  async function postureAfter(milliseconds: number) {
    na.clock.advance(milliseconds);
    await na.renewLists();
    const { posture } = (await get(na, '/dashboard.json')).body;
    return [posture.status, ...posture.findings.map(({ rule }: { rule: string }) => rule)];
  }

  const beat = (status: string, of = nodes) =>
    Promise.all(
      of.map(({ key, certId }) => nodeRequest(na, '/heartbeat', key, { cert_id: certId, status })),
    );

  test('nodes that have never reported do not have to', async () => {
    assert.deepEqual(await postureAfter(HOUR), ['ok']);
  });

  test('is healthy while its nodes report that they are', async () => {
    await beat('healthy');
    assert.deepEqual(await postureAfter(2 * SECOND), ['ok']);
  });

  test('counts what nodes report of themselves, even once all have fallen silent', async () => {
    await beat('degraded: disk failing');
    assert.deepEqual(await postureAfter(2 * SECOND), ['action', 'nodes_unwell']);
    assert.deepEqual(await postureAfter(6 * MINUTE), ['action', 'nodes_silent', 'nodes_unwell']);
  });

  test('the page and the metrics agree, and name no node', async () => {
    const page = (await get(na, '/dashboard')).text;
    assert.match(page, /Needs action now/);
    assert.match(page, /12 of 12 nodes have fallen silent\./);
    assert.doesNotMatch(page, /disk failing/);
    const metrics = (await get(na, '/metrics')).text;
    assert.match(metrics, /^mesh_na_posture_finding\{rule="nodes_silent"\} 2$/m);
    assert.match(metrics, /^mesh_na_posture_finding\{rule="disk"\} 0$/m);
    assert.match(metrics, /^mesh_na_nodes\{state="silent"\} 12$/m);
    assert.match(metrics, /^mesh_na_role_nodes\{role="role:client",state="silent"\} 12$/m);
    assert.match(
      page,
      /<a href="\.\/dashboard#fleet-heading">12 of 12 nodes have fallen silent\.<\/a> <code>mesh-na node list<\/code>/,
    );
  });

  test('says since when, also after a restart where the state dates it', async () => {
    const since = async (of: TestAuthority) => {
      const { findings } = (await get(of, '/dashboard.json')).body.posture;
      return Object.fromEntries(
        findings.map(({ rule, since }: { rule: string; since: string }) => [
          rule,
          Date.parse(since) - of.clock.now(),
        ]),
      );
    };
    const before = await since(na);
    // The nodes reported six minutes and two seconds ago, and the window is five minutes.
    assert.deepEqual(before, { nodes_silent: -MINUTE - 2 * SECOND, nodes_unwell: -6 * MINUTE });
    await na.flush();
    na = await na.restart();
    na.clock.advance(6 * MINUTE);
    assert.deepEqual(await since(na), {
      nodes_silent: before.nodes_silent - 6 * MINUTE,
      nodes_unwell: 0,
    });
  });

  test('a node that is back and healthy is not counted', async () => {
    await beat('ok', nodes.slice(1));
    assert.deepEqual(await postureAfter(2 * SECOND), ['attention', 'nodes_silent', 'nodes_unwell']);
  });

  test('a node whose certificate was revoked is not missed', async () => {
    await operate(na, '/admin/revoke', { cert_id: nodes[0]?.certId ?? '', reason: 'superseded' });
    assert.deepEqual(await postureAfter(2 * SECOND), ['ok']);
  });

  test('certificates that end unrenewed are counted before and after', async () => {
    await postureAfter(6 * DAY + 12 * HOUR);
    await beat('ok');
    assert.deepEqual(await postureAfter(2 * SECOND), ['attention', 'certificates_lapsing']);
    assert.deepEqual(await postureAfter(DAY), ['attention', 'certificates_lapsed']);
    assert.deepEqual(await postureAfter(31 * DAY), ['ok']);
  });
});

test('every finding links to its page, and names an existing command', () => {
  const rules = POSTURE_RULES.map(({ name }) => name);
  assert.deepEqual(Object.keys(FINDING_CURES).toSorted(), rules.toSorted());
  const { commands } = commandReference(buildProgram());
  for (const [rule, [href, given]] of Object.entries(FINDING_CURES)) {
    const command = commands.find(({ path }) => given === path || given.startsWith(`${path} --`));
    assert.ok(command !== undefined, `${rule}: ${given}`);
    const [flag] = /--[a-z-]+/.exec(given) ?? [''];
    assert.ok(
      command.options.some(({ term }) => term.includes(flag)),
      `${rule}: ${flag}`,
    );
    const { pathname, hash } = new URL(href, 'http://na/');
    assert.ok(
      ROUTES.some(({ path }) => path === pathname),
      `${rule}: ${href}`,
    );
    if (pathname !== '/cli-reference') continue;
    assert.ok(
      commands.some(({ path }) => `#${path.replaceAll(' ', '-')}` === hash),
      hash,
    );
  }
});

test('the command about failed authentications shows those of nodes, too', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  await heartbeat(na, await joinedNode(na), { signedBy: newKey() });
  const [, command = ''] = FINDING_CURES.authentication ?? [];
  const place = ['--url', na.url, '--data-dir', na.dataDir];
  const { stdout } = await runCommand([...command.split(' '), ...place]);
  assert.match(stdout, / node_auth_failed /);
});

test('right after a start, no page or metric claims that no node is silent', async () => {
  await using na = await startTestAuthority();
  const { key, certId } = await joinedNode(na);
  await nodeRequest(na, '/heartbeat', key, { cert_id: certId, status: 'ok' });
  await na.flush();
  na.clock.advance(HOUR);
  await using again = await na.restart();
  const { posture } = (await get(again, '/dashboard.json')).body;
  assert.deepEqual([posture.status, posture.findings], ['ok', []]);
  assert.deepEqual(
    posture.unknown.map(({ rule }: { rule: string }) => rule),
    ['nodes_silent'],
  );
  const { text } = await get(again, '/dashboard');
  assert.match(text, /All is well, as far as known/);
  assert.match(text, /Nodes that have fallen silent: not known before \d\d:\d\d UTC\./);
  const metrics = (await get(again, '/metrics')).text;
  assert.match(metrics, /^mesh_na_nodes\{state="expected"\} 1$/m);
  assert.doesNotMatch(metrics, /^\w+\{(state="silent"|rule="nodes_silent")\}/m);
  again.clock.advance(Date.parse(posture.unknown[0].known_from) - again.clock.now());
  await again.renewLists();
  const later = (await get(again, '/dashboard.json')).body.posture;
  assert.deepEqual([later.findings[0].rule, later.unknown], ['nodes_silent', []]);
});
