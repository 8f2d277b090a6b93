/** Certificates as operators list them [core-4-17]: all of them, by their state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { seed } from '../bench/seed.ts';
import { beginningWith, SortedTexts } from '../src/authority/subjects/sorted-texts.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { reportsHealth } from '../src/protocol/rows/certificate.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE } from './support/clock.ts';
import { scratchFolder } from './support/folders.ts';
import {
  auditEvents,
  heartbeat,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  operate,
  outcome,
  type Received,
  type TestNode,
} from './support/requests.ts';

interface Row {
  readonly cert_id: string;
  readonly status: string;
}

function read(na: TestAuthority, query = ''): Promise<Received> {
  const call = { method: 'GET', operator: na.standard };
  return operate(na, `/admin/certificates${query}`, {}, call);
}

async function idsOf(na: TestAuthority, query: string): Promise<string[]> {
  const { body } = await read(na, query);
  return body.certificates.map(({ cert_id }: Row) => cert_id);
}

async function renewed(na: TestAuthority, { key, certId }: TestNode): Promise<TestNode> {
  const { body } = await nodeRequest(na, '/renew', key, { cert_id: certId });
  return { key, certId: body.cert_id };
}

/** The rows of the list, read page by page, with `between` called between pages. */
async function paged(na: TestAuthority, limit: number, between: () => Promise<unknown>) {
  const rows: Row[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const from: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await read(na, `?limit=${limit}${from}`);
    assert.equal(status, 200);
    assert.ok(body.certificates.length <= limit);
    assert.equal(body.count, body.certificates.length);
    rows.push(...body.certificates);
    cursor = body.next_cursor;
    await between();
  }
  return rows;
}

test('each certificate is listed with its current state, also after a restart', async () => {
  await using na = await startTestAuthority({ environment: { RENEWAL_GRACE_SECONDS: '3600' } });
  const short = { max_validity_hours: 1 };
  const expired = await joinedNode(na, short);
  const superseded = await joinedNode(na);
  const successor = await renewed(na, superseded);
  na.clock.advance(HOUR);
  const revoked = await joinedNode(na);
  await operate(na, '/admin/revoke', { cert_id: revoked.certId, reason: 'superseded' });
  const silent = await joinedNode(na, { roles: ['role:anchor'] });
  const old = await joinedNode(na);
  na.clock.advance(10 * MINUTE);
  const next = await renewed(na, old);
  await heartbeat(na, successor);
  const expected = Object.fromEntries([
    [expired.certId, 'expired'],
    [superseded.certId, 'superseded'],
    [successor.certId, 'active'],
    [revoked.certId, 'revoked'],
    [silent.certId, 'silent'],
    [old.certId, 'renewed'],
    [next.certId, 'active'],
  ]);
  await using again = await na.restart();
  for (const { certificates, count } of [(await read(again)).body]) {
    const found = certificates.map(({ cert_id, status }: Row) => [cert_id, status]);
    assert.deepEqual(Object.fromEntries(found), expected);
    assert.equal(count, found.length);
    assert.deepEqual(
      found.map(([id]: string[]) => id),
      Object.keys(expected).sort(),
    );
  }
  for (const status of new Set(Object.values(expected))) {
    const ids = Object.keys(expected).filter((id) => expected[id] === status);
    assert.deepEqual(await idsOf(again, `?status=${status}`), ids.sort(), status);
  }
  assert.deepEqual(await idsOf(again, '?role=role:anchor'), [silent.certId]);
  assert.deepEqual(await idsOf(again, '?role=role:none'), []);
  const before = encodeURIComponent(formatInstant(again.clock.now()));
  assert.deepEqual(await idsOf(again, `?expires_before=${before}`), [expired.certId]);
  const key = encodeURIComponent(old.key.publicKey);
  assert.deepEqual(await idsOf(again, `?key=${key}`), [old.certId, next.certId].sort());
  assert.deepEqual(await idsOf(again, `?key=${key}&status=renewed`), [old.certId]);
  const stranger = encodeURIComponent(newKey().publicKey);
  assert.deepEqual(await idsOf(again, `?key=${stranger}`), []);
});

test('one certificate is returned with every member, and an unknown one is 404', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const issuedAt = na.clock.now();
  na.clock.advance(MINUTE);
  await heartbeat(na, node);
  const heardAt = na.clock.now();
  na.clock.advance(HOUR);
  const reason = 'cessation_of_operation';
  await operate(na, '/admin/revoke', { cert_id: node.certId, reason });
  assert.deepEqual((await read(na, `/${node.certId}`)).body, {
    cert_id: node.certId,
    node_public_key: node.key.publicKey,
    roles: ['role:client'],
    status: 'revoked',
    last_contact: formatInstant(heardAt),
    node_status: 'healthy',
    remote_addr: '127.0.0.1',
    issued_at: formatInstant(issuedAt),
    expires_at: formatInstant(issuedAt + 168 * HOUR),
    renewed_from: null,
    superseded_from: null,
    revoked_at: formatInstant(na.clock.now()),
    revocation_reason: reason,
  });
  for (const id of ['nobody', '__proto__', 'x'.repeat(2000)]) {
    assert.equal(outcome(await read(na, `/${id}`)), '404 certificate_not_found');
  }
});

test('a contradictory filter is refused, and reading leaves no trace in the audit log', async () => {
  await using na = await startTestAuthority();
  const { certId } = await joinedNode(na);
  const before = auditEvents(na).length;
  for (const [query, expected] of [
    ['?status=silnet', '400 invalid_status'],
    ['?expires_before=tomorrow', '400 invalid_expires_before'],
    ['?key=short', '400 invalid_key'],
    ['?limit=0&status=x', '400 invalid_limit'],
    ['?cursor=x', '400 invalid_cursor'],
    ['?cursor=WzAsIiJd', '200'],
    ['?limit=1000&status=active', '200'],
    [`/${certId}`, '200'],
  ] as const) {
    assert.equal(outcome(await read(na, query)), expected, query);
  }
  assert.equal(auditEvents(na).length, before);
});

test('pages contain each certificate once, even if certificates are issued, renewed and expire in between', async () => {
  await using na = await startTestAuthority();
  const nodes = await joinedNodes(na, 40);
  const ids = nodes.map(({ certId }) => certId).sort();
  const whole = (await read(na)).body.certificates;
  assert.deepEqual(
    whole.map(({ cert_id }: Row) => cert_id),
    ids,
  );
  let turn = 0;
  const rows = await paged(na, 7, async () => {
    const node = nodes[turn * 5] as TestNode;
    turn += 1;
    await joinedNode(na);
    await renewed(na, node);
    await operate(na, '/admin/revoke', { cert_id: node.certId });
  });
  const listed = rows.map(({ cert_id }) => cert_id);
  assert.deepEqual(listed, [...new Set(listed)].sort(), 'in order, and none twice');
  const seen = new Set(listed);
  assert.deepEqual(
    ids.filter((id) => !seen.has(id)),
    [],
    'those that were there from first to last are all listed',
  );
});

test('sorted texts behave like a sorted set, starting at any text, with nodes of any size', () => {
  const text = fc.integer({ min: 0, max: 60 }).map((n) => `c-${n}`);
  const steps = fc.array(fc.record({ what: fc.constantFrom('add', 'add', 'delete'), text }), {
    maxLength: 200,
    size: 'max',
  });
  fc.assert(
    fc.property(steps, text, fc.integer({ min: 4, max: 8 }), (all, from, mostInNode) => {
      const texts = new SortedTexts(mostInNode);
      const model = new Set<string>();
      for (const { what, text } of all) {
        texts[what](text);
        if (what === 'add') model.add(text);
        else model.delete(text);
      }
      const sorted = [...model].sort();
      assert.deepEqual([...texts.after('')], sorted);
      assert.equal(texts.size, sorted.length);
      assert.deepEqual(
        [...texts.after(from)],
        sorted.filter((other) => other > from),
      );
    }),
    { numRuns: 300 },
  );
});

test('certificates are found by the beginning of an id or key, by health, and by silence', async () => {
  await using na = await startTestAuthority();
  const quiet = await joinedNode(na);
  const ill = await joinedNode(na);
  await nodeRequest(na, '/heartbeat', ill.key, { cert_id: ill.certId, status: 'disk full' });
  na.clock.advance(HOUR);
  const [well, old] = [await joinedNode(na), await joinedNode(na)];
  await heartbeat(na, well);
  const next = await renewed(na, old);
  const since = encodeURIComponent(formatInstant(na.clock.now() - MINUTE));
  const beginning = (text: string, length: number) => encodeURIComponent(text.slice(0, length));
  for (const [query, found] of [
    [`cert_id=${beginning(ill.certId, 8)}`, [ill]],
    [`cert_id=${ill.certId}`, [ill]],
    [`cert_id=${ill.certId}0`, []],
    ['cert_id=%20', []],
    [`cert_id=${beginning(ill.certId, 8)}&key=${beginning(ill.key.publicKey, 8)}`, [ill]],
    [`cert_id=${beginning(ill.certId, 8)}&key=${encodeURIComponent(well.key.publicKey)}`, []],
    [`key=${beginning(old.key.publicKey, 8)}`, [old, next]],
    [`key=${beginning(well.key.publicKey, 43)}`, [well]],
    ['health=unwell', [ill]],
    ['health=healthy', [well]],
    ['health=disk%20full', [ill]],
    [`silent_since=${since}`, [quiet, ill]],
    [`silent_since=${since}&health=unwell`, [ill]],
    ['silent_since=2000-01-01', []],
    ['status=in_use', [quiet, ill, well, next]],
    [`status=in_use&silent_since=${since}`, [quiet, ill]],
    ['remote_addr=127.0.0.&health=healthy', [well]],
    ['remote_addr=10.', []],
  ] as const) {
    assert.deepEqual(await idsOf(na, `?${query}`), found.map(({ certId }) => certId).sort(), query);
  }
  const short = beginning(ill.key.publicKey, 7);
  assert.equal(outcome(await read(na, `?key=${short}`)), '400 invalid_key');
  assert.equal(outcome(await read(na, '?silent_since=soon')), '400 invalid_silent_since');
});

test('a report is healthy only if it begins with a healthy word, in whatever script it is', () => {
  for (const well of ['ok', 'OK: 5 peers', ' ready', 'up2', 'unknown', '', ' ']) {
    assert.ok(reportsHealth(well), well);
  }
  for (const ill of ['degraded', 'überlastet', 'okçu', '故障', '503', '!!! disk full', '- down']) {
    assert.ok(!reportsHealth(ill), ill);
  }
});

test('the few silent and unwell nodes of a large network are found at once, also after a restart', async () => {
  await using scratch = scratchFolder();
  const dataDir = `${scratch.path}/data`;
  // A rack of 40 is silent, among more than a search looks at.
  await seed(dataDir, { nodes: 6000, revoked: 0, invites: 0, agents: 0, named: 320 });
  const began = await startTestAuthority({ dataDir });
  const ill = await joinedNode(began);
  const report = { cert_id: ill.certId, status: 'degraded' };
  assert.equal(outcome(await nodeRequest(began, '/heartbeat', ill.key, report)), '200');
  await assertFound(began);
  await using again = await began.restart();
  await assertFound(again);

  async function assertFound(na: TestAuthority): Promise<void> {
    const { body } = await read(na, '?status=silent');
    assert.deepEqual([body.count, body.next_cursor], [40, undefined]);
    const rows: Row[] = body.certificates;
    const ids = rows.map(({ cert_id: id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.deepEqual(await idsOf(na, '?status=silent&limit=10'), ids.slice(0, 10));
    assert.deepEqual(
      await idsOf(na, '?status=silent&name=r007-0*'),
      await idsOf(na, '?name=r007-0*'),
    );
    const unwell = await read(na, '?status=active&health=unwell');
    assert.deepEqual(
      unwell.body.certificates.map(({ cert_id: id }: Row) => id),
      [ill.certId],
    );
    assert.equal(unwell.body.next_cursor, undefined);
  }
});

test('texts with a common beginning can be read from any position, however they are stored', () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[ab~-]{1,5}$/), { maxLength: 40 }),
      fc.stringMatching(/^[ab~-]{0,3}$/),
      fc.stringMatching(/^[ab~-]{0,4}$/),
      (texts, beginning, after) => {
        const sorted = new SortedTexts(4);
        for (const text of texts) sorted.add(text);
        const expected = [...new Set(texts)]
          .filter((text) => text.startsWith(beginning) && text > after)
          .sort();
        assert.deepEqual([...beginningWith(beginning, sorted, after)], expected);
      },
    ),
  );
});
