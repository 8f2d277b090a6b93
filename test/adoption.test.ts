/** Which nodes have followed a change of the authority key [authority-keys-11]. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { createKnownChains, NOT_HEARD } from '../src/authority/certificates/known-chains.ts';
import { type FollowedStatement, standingOf } from '../src/authority/succession/adoption.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import type { AuthoritySuccession } from '../src/protocol/records/authority-succession.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { chainAt, FIRST, ROOT } from './support/authority-chain.ts';
import { HOUR, MINUTE, REAL_TIME, SECOND } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { metricOf } from './support/metrics.ts';
import {
  auditEvents,
  get,
  joinedNode,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type TestNode,
} from './support/requests.ts';
import { activate, DAY, stage, step, succession } from './support/successions.ts';
import { issued, recognize } from './support/trust.ts';
import { until } from './support/until.ts';

/** The active-node window. */
const WINDOW = 5 * MINUTE;
const NOTHING = { active: 0, certified: 0, informed: 0, followed: 0, laggards: 0 };

function adoption(na: TestAuthority, operator = na.standard): Promise<Received> {
  return operate(na, '/admin/authority-keys/adoption', {}, { method: 'GET', operator });
}

/** The digest of the first `length` published statements. */
async function digest(na: TestAuthority, length?: number): Promise<string> {
  const { successions } = (await get(na, '/authority-keys')).body;
  return sha256Hex(canonicalJson({ successions: successions.slice(0, length) }));
}

function beat(na: TestAuthority, node: TestNode, further: object = {}): Promise<Received> {
  return nodeRequest(na, '/heartbeat', node.key, { cert_id: node.certId, ...further });
}

const adoptedRatio = (na: TestAuthority) => metricOf(na, 'mesh_na_succession_adopted_ratio');

suite('adoption', async () => {
  const na = await startTestAuthority();
  after(() => na[Symbol.asyncDispose]());
  const nodes = [
    await joinedNode(na, { roles: ['role:anchor', 'role:edge'] }),
    await joinedNode(na, { roles: ['role:edge'] }),
    await joinedNode(na),
  ] as const;
  const [first, second, third] = nodes;

  test('there is nothing to follow before a succession', async () => {
    await beat(na, first);
    const { body } = await adoption(na);
    assert.deepEqual(
      { ...body, as_of: '' },
      {
        as_of: '',
        succession: null,
        known_from: null,
        nodes: null,
        roles: [],
        laggards: [],
        partners: [],
      },
    );
    assert.equal('succession' in (await get(na, '/dashboard.json')).body, false);
  });

  test('a heartbeat with anything but a digest is refused', async () => {
    for (const authority_keys_digest of ['', 'x'.repeat(64), 'A'.repeat(64), 'a'.repeat(63), 7]) {
      const answer = await beat(na, first, { authority_keys_digest });
      assert.equal(outcome(answer), '422 request_validation_failed');
      assert.deepEqual(answer.body.error.details.errors[0].loc, ['body', 'authority_keys_digest']);
    }
    assert.equal(outcome(await beat(na, first, { authority_keys_digest: null })), '200');
  });

  test('a node follows a staged statement by knowing it', async () => {
    const signed = await succession(na, { activatesIn: DAY });
    assert.equal(outcome(await stage(na, signed)), '200');
    const authority_keys_digest = await digest(na);
    await beat(na, first, { authority_keys_digest });
    await beat(na, second, { authority_keys_digest: 'f'.repeat(64) });
    const { body } = await adoption(na);
    const { sequence, kind, to_key, activates_at, overlap_until } = signed.statement;
    assert.deepEqual(body.succession, {
      sequence,
      kind,
      state: 'staged',
      to_key,
      activates_at,
      overlap_until,
    });
    const counts = { ...NOTHING, not_heard: 0, silent: 0, active: 2, informed: 1, followed: 1 };
    assert.deepEqual(body.nodes, { ...counts, laggards: 1 });
    assert.deepEqual(body.roles, [
      { role: 'role:edge', ...counts, laggards: 1 },
      { role: 'role:anchor', ...counts, active: 1 },
    ]);
    assert.deepEqual(
      body.laggards.map((row: { cert_id: string }) => row.cert_id),
      [second.certId],
    );
    assert.equal(body.laggards[0].informed, false);
    assert.equal(third.certId.length, 36, 'a node that never reported does not count');
  });

  test('strangers and nodes get no adoption counts', async () => {
    const path = '/admin/authority-keys/adoption';
    assert.equal(outcome(await get(na, path)), '401 admin_auth_failed');
  });

  test('the digest of a canceled statement is discarded', async () => {
    assert.equal(outcome(await step(na, 'cancel')), '200');
    assert.equal((await adoption(na)).body.succession, null);
    await stage(na, await succession(na, { activatesIn: 2 * DAY }));
    const { nodes: counted } = (await adoption(na)).body;
    assert.equal(counted.informed, 0, 'what was known is another statement');
    await beat(na, first, { authority_keys_digest: await digest(na) });
    assert.equal((await adoption(na)).body.nodes.informed, 1);
    assert.equal(await adoptedRatio(na), 0.5);
    assert.equal(outcome(await step(na, 'cancel')), '200');
    assert.equal(await adoptedRatio(na), NaN, 'there is nothing to follow');
    await stage(na, await succession(na, { activatesIn: 3 * DAY }));
    assert.equal(await adoptedRatio(na), NaN, 'nobody was counted yet');
  });

  test('silent nodes do not count as laggards', async () => {
    na.clock.advance(WINDOW);
    await beat(na, second);
    const { nodes: counted, known_from } = (await adoption(na)).body;
    assert.equal(known_from, null);
    assert.deepEqual([counted.active, counted.laggards, counted.silent], [1, 1, 1]);
  });
});

test('after a start, it reports until when the knowledge of nodes is incomplete', async () => {
  await using na = await startTestAuthority();
  const nodes = [await joinedNode(na), await joinedNode(na)] as const;
  await stage(na, await succession(na, { activatesIn: DAY }));
  const authority_keys_digest = await digest(na);
  for (const node of nodes) await beat(na, node, { authority_keys_digest });
  assert.deepEqual((await adoption(na)).body.nodes, ALL_OF_TWO);
  await na.flush();
  na.clock.advance(HOUR);
  await using again = await na.restart();
  const started = again.clock.now();
  const { body } = await adoption(again);
  assert.equal(body.known_from, formatInstant(started + WINDOW));
  assert.deepEqual(body.nodes, {
    ...ALL_OF_TWO,
    informed: 0,
    followed: 0,
    laggards: 2,
    not_heard: 2,
  });
  assert.equal(body.laggards[0].informed, null);
  assert.doesNotMatch((await get(again, '/metrics')).text, /^mesh_na_succession_adopted_ratio \d/m);
  await beat(again, nodes[0], { authority_keys_digest });
  const half = (await adoption(again)).body;
  assert.deepEqual([half.nodes.followed, half.nodes.not_heard], [1, 1]);
  assert.notEqual(half.known_from, null);
  again.clock.advance(WINDOW - 1);
  await beat(again, nodes[0], { authority_keys_digest });
  again.clock.advance(1);
  const later = (await adoption(again)).body;
  assert.equal(later.known_from, null);
  assert.deepEqual(later.nodes, { ...ALL_OF_TWO, active: 1, informed: 1, followed: 1, silent: 1 });
});

const ALL_OF_TWO = {
  active: 2,
  certified: 0,
  informed: 2,
  followed: 2,
  laggards: 0,
  not_heard: 0,
  silent: 0,
};

test('a renewal keeps what a node is known to have adopted', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  await stage(na, await succession(na, { activatesIn: DAY }));
  await beat(na, node, { authority_keys_digest: await digest(na) });
  assert.equal(outcome(await nodeRequest(na, '/renew', node.key, { cert_id: node.certId })), '200');
  assert.equal((await adoption(na)).body.nodes.informed, 1);
});

test('after the activation, nodes need a certificate of the new key, and finish asks for the laggards', async () => {
  await using na = await startTestAuthority();
  const [first, second] = [await joinedNode(na), await joinedNode(na)];
  na.clock.advance(SECOND);
  assert.equal(outcome(await stage(na, await succession(na, { overlap: 4 * HOUR }))), '200');
  await activate(na);
  const authority_keys_digest = await digest(na);
  const findings = async () => {
    na.clock.advance(SECOND);
    const { posture, succession: shown } = (await get(na, '/dashboard.json')).body;
    const rules = posture.findings.map(({ rule, severity }: JsonObject) => `${rule} ${severity}`);
    return [shown?.state, shown?.followed, shown?.active, ...rules];
  };

  await beat(na, first, { authority_keys_digest });
  await beat(na, second);
  const { body } = await adoption(na);
  assert.equal(body.succession.state, 'overlap');
  assert.deepEqual(body.nodes, {
    ...NOTHING,
    active: 2,
    informed: 1,
    laggards: 2,
    not_heard: 0,
    silent: 0,
  });
  const early = await findings();
  assert.deepEqual(early.slice(0, 3), ['overlap', 0, 2]);

  const { cert_id: certId } = (
    await nodeRequest(na, '/renew', first.key, { cert_id: first.certId })
  ).body;
  await beat(na, { ...first, certId }, { authority_keys_digest });
  const { nodes: counted, laggards } = (await adoption(na)).body;
  assert.deepEqual([counted.certified, counted.followed, counted.laggards], [1, 1, 1]);
  assert.deepEqual(
    laggards.map((row: JsonObject) => [row.cert_id, row.certified, row.informed]),
    [[second.certId, false, false]],
  );
  const { body: horizon } = await operate(na, '/admin/horizon', {}, { method: 'GET' });
  assert.ok(horizon.lapsing.some(({ kind }: JsonObject) => kind === 'overlap'));

  for (const despite of [0, 2]) {
    const refused = await step(na, 'finish', { despite });
    assert.equal(outcome(refused), '409 nodes_have_not_followed');
    assert.equal(refused.body.error.details.count, 1);
  }
  na.clock.advance(WINDOW);
  await beat(na, { ...first, certId }, { authority_keys_digest });
  await beat(na, second);
  assert.deepEqual(await findings(), ['overlap', 1, 2, 'succession_laggards action']);
  assert.equal(outcome(await step(na, 'finish', { despite: 1 })), '200');
  const after = (await adoption(na)).body;
  assert.deepEqual([after.succession.state, after.nodes.laggards], ['finished', 1]);
  assert.deepEqual(await findings(), [undefined, undefined, undefined]);
  const metrics = (await get(na, '/metrics')).text;
  assert.match(metrics, /^mesh_na_authority_key_state\{state="retired"\} 1$/m);
});

test('finish counts the nodes of a key that took over during the count', async () => {
  // With one thread, requests arrive in the order in which they are sent.
  await using na = await startTestAuthority({ flags: { threads: '1' } });
  const node = await joinedNode(na);
  await stage(na, await succession(na, { activatesIn: MINUTE }));
  await beat(na, node, { authority_keys_digest: await digest(na) });
  assert.equal((await adoption(na)).body.nodes.laggards, 0, 'it knows the staged statement');
  na.clock.advance(MINUTE - 1);
  await na.clock.idle();
  // The service has just looked for what is due, and does so again in a second.
  na.clock.advance(1);
  const [activated, finished] = await Promise.all([step(na, 'activate'), step(na, 'finish')]);
  assert.equal(outcome(activated), '200');
  assert.equal(outcome(finished), '409 nodes_have_not_followed');
  assert.equal(finished.body.error.details.count, 1);
});

test('every step of a succession is an event of the audit log', async () => {
  await using na = await startTestAuthority();
  await stage(na, await succession(na, { activatesIn: HOUR }));
  await step(na, 'cancel');
  await stage(na, await succession(na));
  await activate(na);
  for (const name of ['roll-back', 'finish']) {
    assert.equal(outcome(await step(na, name)), '200', name);
  }
  const types = auditEvents(na).map(({ type }) => type);
  const seen = types.filter((type) => type.startsWith('authority_'));
  assert.deepEqual(seen, [
    'authority_succession_staged',
    'authority_succession_canceled',
    'authority_succession_staged',
    'authority_key_activated',
    'authority_key_rolled_back',
    'authority_key_retired',
  ]);
});

test('treaties whose subject has a new key are named, and the dashboard counts them', async () => {
  await using na = await startTestAuthority();
  const now = na.clock.now();
  const treatyWith = (name: string) =>
    issued(recognize(na, { subject_sovereign_id: name, subject_public_keys: [FIRST.publicKey] }));
  const follow = ({ treaty_id }: JsonObject, successions: readonly unknown[]) => {
    const authority_keys = { successions } as unknown as JsonObject;
    const body = { authority_keys, root_public_key: ROOT.publicKey };
    return issued(operate(na, `/admin/recognition-treaties/${treaty_id}/follow`, body));
  };
  const rules = async () => {
    na.clock.advance(SECOND);
    const { posture } = (await get(na, '/dashboard.json')).body;
    return posture.findings.map(({ rule, severity }: JsonObject) => `${rule} ${severity}`);
  };
  const partners = async () => (await adoption(na)).body.partners;

  const [one, two] = [await treatyWith('harbor'), await treatyWith('harbor')];
  await treatyWith('another');
  const chain = chainAt(now, 'harbor', [{ kind: 'planned', at: -1, overlap: 10 }]);
  const successor = await follow(one, chain);
  const behind = {
    treaty_id: two.treaty_id,
    issuer_sovereign_id: 'alpha',
    subject_sovereign_id: 'harbor',
    known_sequence: 1,
    followed_sequence: 0,
    accepts_stolen_key: false,
  };
  assert.deepEqual(await partners(), [behind]);
  assert.deepEqual(await rules(), ['treaties_behind attention']);
  await follow(two, chain);
  assert.deepEqual([await partners(), await rules()], [[], []]);

  const stolen = chainAt(now, 'harbor', [
    { kind: 'planned', at: -1, overlap: 10 },
    { kind: 'compromise', at: -0.5 },
  ]);
  await follow(successor, stolen);
  const [left] = await partners();
  assert.deepEqual(
    [left.known_sequence, left.followed_sequence, left.accepts_stolen_key],
    [2, 1, true],
  );
  assert.deepEqual(await rules(), ['treaties_behind action']);
});

const STATEMENT = {
  succession_id: '1',
  sequence: 1,
  kind: 'planned',
  activates_at: '2026-01-01T00:00:00Z',
  overlap_until: '2026-02-01T00:00:00Z',
} as AuthoritySuccession;

test('a node has followed a statement if it knows it and, once it is in force, has a certificate since', () => {
  const inForce = (statement: Partial<AuthoritySuccession>): FollowedStatement => ({
    statement: { ...STATEMENT, ...statement },
    state: 'overlap',
    certifiedFrom: 100,
  });
  const planned = inForce({ sequence: 2 });
  const back = inForce({ sequence: 3, kind: 'roll_back' });
  const CASES = [
    ['knows it, and has the certificate', planned, 2, 100, true],
    ['knows it, and has an older certificate', planned, 2, 99, false],
    ['knows a later one', planned, 3, 100, true],
    ['knows only earlier ones', planned, 1, 100, false],
    ['says nothing that is known', planned, 0, 100, false],
    ['has not reported yet', planned, null, 100, false],
    ['knew of the rollback', back, 3, 100, true],
    ['knew only of what was rolled back', back, 2, 100, false],
    ['never heard of what was rolled back', back, 1, 100, true],
    ['has not reported yet, after a rollback', back, null, 100, false],
    ['knows a staged one', { ...planned, state: 'staged', certifiedFrom: null }, 2, 0, true],
    [
      'does not know a staged one',
      { ...planned, state: 'staged', certifiedFrom: null },
      1,
      0,
      false,
    ],
  ] as const;
  for (const [title, statement, length, issuedAt, expected] of CASES) {
    assert.equal(standingOf(statement, { length, issuedAt }).hasFollowed, expected, title);
  }
});

test('published chains are identified by small numbers, even after others were canceled', () => {
  const chains = createKnownChains();
  const [one, two, other] = ['1', '2', '3'].map((succession_id) => ({
    ...STATEMENT,
    succession_id,
  }));
  const numberOf = (...successions: unknown[]) =>
    chains.numberOf(sha256Hex(canonicalJson({ successions } as never)));
  const lengths = (...numbers: number[]) => numbers.map((number) => chains.lengthOf(number));
  const none = chains.numberOf(null);
  assert.equal(chains.lengthOf(NOT_HEARD), null);
  assert.deepEqual([chains.lengthOf(none), numberOf(one)], [0, none]);
  chains.publish([one, two] as AuthoritySuccession[]);
  const [first, second] = [numberOf(one), numberOf(one, two)];
  assert.deepEqual(lengths(first, second, numberOf(two)), [1, 2, 0]);
  chains.publish([one, other] as AuthoritySuccession[]);
  assert.deepEqual(lengths(first, second, numberOf(one, other)), [1, 0, 2]);
  assert.equal(numberOf(one, two), second);
  chains.publish([one, two] as AuthoritySuccession[]);
  assert.deepEqual(lengths(first, second, none), [1, 2, 0]);
});

suite('for operators', async () => {
  const na = await startTestAuthority({ clock: REAL_TIME });
  after(() => na[Symbol.asyncDispose]());
  const node = await joinedNode(na, { roles: ['role:edge'] });

  async function run(...args: string[]): Promise<string> {
    const place = ['--data-dir', na.dataDir, '--url', na.url];
    const { code, stdout, stderr } = await runCommand([
      'authority-key',
      'status',
      ...args,
      ...place,
    ]);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  test('the command reports that there was no succession', async () => {
    const [key] = (await get(na, '/authority-keys')).body.keys;
    assert.deepEqual(
      (await run())
        .trimEnd()
        .split('\n')
        .map((line) => line.trimEnd()),
      [
        'KEY                                           STATE    SINCE  SIGNS UNTIL',
        `${key.public_key}  current`,
        '',
        'The key was never replaced.',
      ],
    );
  });

  test('while a succession is staged, the dashboard has a card that tracks adoption', async () => {
    const card = async () => {
      const { text } = await get(na, '/dashboard');
      const [item = ''] =
        /<li>(?:(?!<li>).)*data-stat="succession\.followed".*?<\/li>/s.exec(text) ?? [];
      return item.replace(/<[^>]*>/g, '');
    };
    assert.equal(await card(), '');
    await beat(na, node);
    await stage(na, await succession(na, { activatesIn: DAY }));
    await until(async () =>
      /^Nodes that know the next key0 of active nodes: 1$/.test(await card()),
    );
    await beat(na, node, { authority_keys_digest: await digest(na) });
    await until(async () => /key1 of active nodes: 1$/.test(await card()));
  });

  test('the command shows keys, counts and laggards', async () => {
    await beat(na, node);
    const text = await run();
    assert.match(text, /^\S+ +next +\S+Z *$/m);
    assert.match(text, /^Statement 1 \(planned\) takes effect \S+Z \(in 23h\)\.$/m);
    assert.match(text, /^0 of 1 active nodes have followed, and 0 are silent\.$/m);
    assert.match(text, /^ROLE +ACTIVE +CERTIFIED +INFORMED +FOLLOWED +LAGGARDS +SILENT$/m);
    assert.match(text, /^all nodes +1 +0 +0 +0 +1 +0$/m);
    assert.match(text, /^role:edge +1 +0 +0 +0 +1 +0$/m);
    assert.match(text, new RegExp(`^${node.certId} .* the statement$`, 'm'));
    const { keys, adoption: counted } = JSON.parse(await run('--json'));
    assert.deepEqual(
      keys.map(({ state }: { state: string }) => state),
      ['current', 'next'],
    );
    assert.equal(counted.nodes.laggards, 1);
  });

  test('metrics and the horizon show when it takes effect, and how many nodes have adopted it', async () => {
    await beat(na, node, { authority_keys_digest: await digest(na) });
    assert.equal((await adoption(na)).body.nodes.followed, 1);
    const metrics = (await get(na, '/metrics')).text;
    assert.match(metrics, /^mesh_na_authority_key_state\{state="next"\} 1$/m);
    assert.match(metrics, /^mesh_na_authority_key_state\{state="previous"\} 0$/m);
    assert.match(metrics, /^mesh_na_succession_adopted_ratio 1$/m);
    assert.match(metrics, /^mesh_na_expiry_timestamp_seconds\{kind="activation"\} \d+/m);
    const { body } = await operate(na, '/admin/horizon', {}, { method: 'GET' });
    assert.deepEqual(
      body.lapsing.map(({ kind }: { kind: string }) => kind),
      ['delegation', 'activation', 'certificate'],
    );
  });
});
