/** Revocations, one by one and by filters, and the list that they are on. */
import assert from 'node:assert/strict';
import { type EventEmitter, once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import type { Command } from 'commander';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { buildProgram, ready } from '../src/cli/program.ts';
import { verifyText } from '../src/client/keys.ts';
import { readCertificateRevocationList } from '../src/protocol/records/revocation-list.ts';
import { isSignedByAny, type SignedRecord } from '../src/protocol/records/signed-record.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR, MINUTE, SECOND, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { valuesExcept } from './support/hostile.ts';
import {
  auditEvents,
  get,
  heartbeat,
  joinedNode,
  joinedNodes,
  newKey,
  nodeRequest,
  type OperatorCall,
  operate,
  outcome,
  send,
} from './support/requests.ts';
import { auditEntriesOf } from './support/test-stores.ts';

/** For tests that leave nothing behind that another test would notice. */
const shared = sharedAuthority();

const REASONS = ['key_compromise', 'cessation_of_operation', 'superseded', 'unspecified'];
const DAY = 24 * HOUR;

function revoke(na: TestAuthority, body: JsonObject, call: OperatorCall = {}) {
  return operate(na, '/admin/revoke', body, call);
}

/** A list, which is always signed, and served as it was signed. */
async function crlOf(na: TestAuthority, headers: Readonly<Record<string, string>> = {}) {
  const answer = await send(na, 'GET', '/crl', { headers });
  assert.equal(answer.status, 200);
  const { text, body: crl } = answer;
  const record = parseJson(text) as unknown as SignedRecord;
  assert.ok(isSignedByAny(record, [na.audience], verifySignature));
  assert.equal(canonicalJson(record), text);
  return { text, crl, etag: answer.headers.get('etag') ?? '' };
}

function idsOn(crl: { revoked_certificates: { certificate_id: string }[] }): string[] {
  return crl.revoked_certificates.map(({ certificate_id }) => certificate_id);
}

suite('POST /admin/revoke', () => {
  test('checks in the specified order: each refusal comes before all later ones', async () => {
    const na = await shared();
    const node = await joinedNode(na);
    const before = await crlOf(na);
    const byStandard = { operator: na.standard };
    const wronglySigned = { alter: (h: Record<string, string>) => (h['X-Admin-Signature'] = 'x') };
    const byStranger = { operator: { keyId: 'stranger', key: newKey() } };
    for (const [body, call, expected] of [
      [{ reason: 'x' }, byStranger, '401 admin_auth_failed'],
      [{ reason: 'x' }, { ...byStandard, ...wronglySigned }, '401 admin_auth_failed'],
      [{ reason: 'x' }, byStandard, '403 insufficient_operator_tier'],
      [{ reason: 'x' }, {}, '400 missing_cert_id'],
      [{ cert_id: 'none', reason: 'x' }, {}, '400 invalid_revocation_reason'],
      [{ cert_id: 'none', reason: 'superseded' }, {}, '404 certificate_not_found'],
    ] as [JsonObject, OperatorCall, string][]) {
      assert.equal(outcome(await revoke(na, body, call)), expected);
    }
    for (const [name, cert_id] of valuesExcept('a string')) {
      assert.equal(outcome(await revoke(na, { cert_id })), '400 missing_cert_id', name);
    }
    for (const [name, reason] of [
      ...valuesExcept('null'),
      ['a capital', 'Superseded'] as const,
      ['a blank', 'superseded '] as const,
      ['a reason of X.509', 'ca_compromise'] as const,
    ]) {
      const answer = await revoke(na, { cert_id: node.certId, reason });
      assert.equal(outcome(answer), '400 invalid_revocation_reason', name);
    }
    assert.deepEqual(await crlOf(na), before, 'nothing has changed');
    assert.equal(outcome(await heartbeat(na, node)), '200');
  });

  test('puts the reason on the list and into the audit log', async () => {
    await using na = await startTestAuthority();
    const entries: JsonObject[] = [];
    for (const given of [undefined, ...REASONS]) {
      const node = await joinedNode(na);
      const terms = given === undefined ? {} : { reason: given };
      const answer = await revoke(na, { cert_id: node.certId, ...terms });
      const reason = given ?? 'unspecified';
      entries.push({
        certificate_id: node.certId,
        revoked_at: formatInstant(na.clock.now()),
        reason,
        issuer: na.audience,
      });
      const sequence = entries.length;
      assert.deepEqual(answer.body, { crl_sequence: sequence, revoked_count: sequence });
      assert.deepEqual((await crlOf(na)).crl.revoked_certificates, entries);
      const details = { cert_id: node.certId, reason, crl_sequence: sequence };
      assert.deepEqual(auditEvents(na).at(-1), {
        type: 'certificate_revoked',
        details: { ...details, remote_addr: '127.0.0.1' },
      });
      na.clock.advance(SECOND);
    }
  });

  test('takes effect on the very next request, and on the count and the roster', async () => {
    await using na = await startTestAuthority();
    const [node, other] = [await joinedNode(na), await joinedNode(na)];
    assert.equal(outcome(await heartbeat(na, node)), '200');
    await revoke(na, { cert_id: node.certId });
    assert.equal(outcome(await heartbeat(na, node)), '403 certificate_revoked');
    const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    assert.equal(outcome(renewal), '403 certificate_revoked');
    const roster = await operate(na, '/nodes', {}, { method: 'GET' });
    assert.deepEqual(Object.keys(roster.body.nodes), [other.certId]);
    assert.deepEqual((await get(na, '/nodes')).body, { count: 1 });
  });

  test('repeated for the same certificate changes no list and returns the current sequence', async () => {
    await using na = await startTestAuthority();
    const [node, other] = [await joinedNode(na), await joinedNode(na)];
    await revoke(na, { cert_id: node.certId, reason: 'cessation_of_operation' });
    await revoke(na, { cert_id: other.certId });
    const before = await crlOf(na);
    na.clock.advance(MINUTE);
    const reasons = ['key_compromise', 'cessation_of_operation', 'unspecified'];
    for (const again of await Promise.all(
      [...reasons, ...reasons].map((reason) => revoke(na, { cert_id: node.certId, reason })),
    )) {
      assert.equal(again.status, 200);
      assert.deepEqual(again.body, { crl_sequence: 2, revoked_count: 2 });
    }
    assert.deepEqual(await crlOf(na), before);
    const events = (await auditEntriesOf(na)).filter(
      ({ event_type }) => event_type === 'certificate_revoked',
    );
    assert.equal(events.length, 2);
    const token = (await operate(na, '/admin/invite', {})).body.token_id;
    const rejoined = await nodeRequest(na, '/join', node.key, { invite_token: token });
    assert.equal(
      outcome(rejoined),
      '403 node_key_compromised',
      'the key is compromised all the same',
    );
  });

  test('revokes certificates that are expired or were renewed', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na, { max_validity_hours: 1 });
    const renewal = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    const next = { key: node.key, certId: renewal.body.cert_id as string };
    assert.equal(outcome(await revoke(na, { cert_id: node.certId })), '200');
    assert.equal(outcome(await heartbeat(na, next)), '200', 'the successor is not touched');
    na.clock.advance(HOUR);
    assert.equal(outcome(await revoke(na, { cert_id: next.certId })), '200');
    assert.equal(outcome(await heartbeat(na, next)), '403 certificate_revoked');
    assert.deepEqual(idsOn((await crlOf(na)).crl), [node.certId, next.certId]);
  });

  test('30 at once all succeed, each with a sequence of its own, strictly increasing', async () => {
    await using na = await startTestAuthority();
    const nodes = await joinedNodes(na, 30);
    const seen = new Map<number, Set<string>>();
    let last = 0;
    let done = false;
    const reader = (async () => {
      while (!done) {
        const { text, crl } = await crlOf(na);
        assert.ok(crl.sequence >= last, 'a sequence never goes back');
        last = crl.sequence;
        seen.set(last, (seen.get(last) ?? new Set()).add(text));
      }
    })();
    const answers = await Promise.all(
      nodes.map(async ({ certId }) => ({ certId, answer: await revoke(na, { cert_id: certId }) })),
    );
    done = true;
    await reader;
    const bySequence = answers
      .map(({ certId, answer }) => ({ certId, ...answer.body }))
      .sort((a, b) => a.crl_sequence - b.crl_sequence);
    assert.deepEqual(
      bySequence.map(({ crl_sequence }) => crl_sequence),
      Array.from({ length: 30 }, (_, i) => i + 1),
    );
    for (const { crl_sequence, revoked_count } of bySequence) {
      assert.equal(revoked_count, crl_sequence);
    }
    const { crl, text } = await crlOf(na);
    assert.equal(crl.sequence, 30);
    const order = bySequence.map(({ certId }) => certId);
    assert.deepEqual(idsOn(crl), order, 'entries stand in the order of their sequences');
    seen.set(30, (seen.get(30) ?? new Set()).add(text));
    for (const [sequence, texts] of seen) {
      assert.equal(texts.size, 1, `sequence ${sequence} names one content`);
      const [only = ''] = texts;
      assert.deepEqual(idsOn(JSON.parse(only)), order.slice(0, sequence));
    }
    for (const node of nodes)
      assert.equal(outcome(await heartbeat(na, node)), '403 certificate_revoked');
    await using again = await na.restart();
    assert.equal((await crlOf(again)).text, text, 'and after a restart it is the same document');
  });
});

suite('GET /crl', () => {
  test('is a signed empty list with sequence 0 when nothing is revoked, always the same one', async () => {
    await using na = await startTestAuthority();
    const { text, crl } = await crlOf(na);
    const { crl_id: crlId, signatures, ...facts } = crl;
    assert.match(crlId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.deepEqual(facts, {
      sequence: 0,
      issued_at: formatInstant(na.clock.now()),
      next_update: formatInstant(na.clock.now() + DAY),
      issuer: na.audience,
      revoked_certificates: [],
    });
    assert.equal(signatures.length, 1);
    na.clock.advance(HOUR);
    assert.equal((await crlOf(na)).text, text);
    await using again = await na.restart();
    assert.equal((await crlOf(again)).text, text);
  });

  test('is signed, with a new id, time and content for each version, and names the key even if it has a label', async () => {
    for (const environment of [{}, { NA_KEY_ID: 'na-2025-q1' }]) {
      await using na = await startTestAuthority({ environment });
      const ids = new Set<string>();
      for (const [index, { certId }] of (await joinedNodes(na, 3)).entries()) {
        na.clock.advance(MINUTE);
        await revoke(na, { cert_id: certId });
        const { crl } = await crlOf(na);
        assert.equal(crl.sequence, index + 1);
        assert.equal(crl.issued_at, formatInstant(na.clock.now()));
        assert.equal(crl.next_update, formatInstant(na.clock.now() + DAY));
        assert.equal(crl.issuer, na.audience);
        assert.equal(crl.revoked_certificates[index].issuer, na.audience);
        ids.add(crl.crl_id);
      }
      assert.equal(ids.size, 3);
      const { crl } = await crlOf(na);
      const { key_id, sig } = crl.signatures[0];
      assert.equal(key_id, environment.NA_KEY_ID ?? na.audience);
      assert.equal(verifyText(na.audience, canonicalJson(crl, 'signatures'), sig), true);
      const altered = canonicalJson({ ...crl, sequence: 99 }, 'signatures');
      assert.equal(verifyText(na.audience, altered, sig), false);
      assert.deepEqual(readCertificateRevocationList(crl), crl, 'canonical, nothing unknown');
    }
  });

  test('keeps its entries in the order of revocation, through restarts and in one millisecond', async () => {
    await using na = await startTestAuthority();
    const nodes = await joinedNodes(na, 12);
    const order: string[] = [];
    for (const { certId } of nodes.slice(0, 8).reverse()) {
      await revoke(na, { cert_id: certId });
      order.push(certId);
    }
    assert.deepEqual(idsOn((await crlOf(na)).crl), order);
    await using again = await na.restart();
    for (const { certId } of nodes.slice(8).reverse()) {
      await revoke(again, { cert_id: certId });
      order.push(certId);
    }
    assert.deepEqual(idsOn((await crlOf(again)).crl), order);
    await using third = await again.restart();
    const { crl, text } = await crlOf(third);
    assert.equal(crl.sequence, 12);
    assert.deepEqual(idsOn(crl), order);
    assert.equal(text, (await crlOf(third)).text);
  });

  test('is reissued with the next sequence once half its time is over, with the same entries', async () => {
    await using na = await startTestAuthority();
    const node = await joinedNode(na);
    await revoke(na, { cert_id: node.certId });
    const before = (await crlOf(na)).crl;
    na.clock.advance(DAY / 2 - 1);
    assert.equal((await crlOf(na)).crl.sequence, 1);
    na.clock.advance(1);
    const { crl, text } = await crlOf(na);
    assert.equal(crl.sequence, 2);
    assert.notEqual(crl.crl_id, before.crl_id);
    assert.equal(crl.issued_at, formatInstant(na.clock.now()));
    assert.equal(crl.next_update, formatInstant(na.clock.now() + DAY));
    assert.deepEqual(crl.revoked_certificates, before.revoked_certificates);
    assert.equal((await crlOf(na)).text, text);
    await using again = await na.restart();
    assert.equal((await crlOf(again)).text, text);
    const other = await joinedNode(again);
    assert.deepEqual((await revoke(again, { cert_id: other.certId })).body, {
      crl_sequence: 3,
      revoked_count: 2,
    });
    assert.deepEqual(idsOn((await crlOf(again)).crl), [node.certId, other.certId]);
  });

  test('is never served past next_update, even while it is being reissued, and to clients that had it', async () => {
    await using na = await startTestAuthority();
    const headers = { 'If-None-Match': (await crlOf(na)).etag };
    na.clock.advance(DAY);
    const answers = await Promise.all(Array.from({ length: 30 }, () => crlOf(na, headers)));
    const late = answers.filter(({ crl }) => Date.parse(crl.next_update) <= na.clock.now());
    assert.equal(late.length, 0, `${late.length} of 30 answers had lapsed`);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1, 'and it is re-issued once');
    assert.equal(answers[0]?.crl.sequence, 1);
  });

  test('reissued while certificates are being revoked still gives each sequence one content', async () => {
    await using na = await startTestAuthority();
    const nodes = await joinedNodes(na, 20);
    na.clock.advance(DAY);
    const contents = new Map<number, Set<string>>();
    const read = async () => {
      const { crl, text } = await crlOf(na);
      contents.set(crl.sequence, (contents.get(crl.sequence) ?? new Set()).add(text));
    };
    const answers = await Promise.all(
      nodes.flatMap(({ certId }) => [read(), revoke(na, { cert_id: certId }), read()]),
    );
    const sequences = answers.flatMap((answer) =>
      answer ? [answer.body.crl_sequence as number] : [],
    );
    assert.equal(new Set(sequences).size, 20);
    for (const [sequence, texts] of contents) assert.equal(texts.size, 1, `sequence ${sequence}`);
    const { crl } = await crlOf(na);
    assert.equal(crl.sequence, Math.max(...sequences));
    assert.equal(crl.revoked_certificates.length, 20);
  });

  test('does not go back when the clock does', async () => {
    await using na = await startTestAuthority();
    const [first, second] = [await joinedNode(na), await joinedNode(na)];
    await revoke(na, { cert_id: first.certId });
    na.clock.advance(-HOUR);
    await revoke(na, { cert_id: second.certId });
    const ids = [first.certId, second.certId];
    const { crl } = await crlOf(na);
    assert.deepEqual([crl.sequence, idsOn(crl)], [2, ids]);
    await na.stop();
    na.clock.advance(3 * DAY);
    await using again = await na.restart();
    const { crl: later } = await crlOf(again);
    assert.deepEqual([later.sequence, idsOn(later)], [3, ids], 'reissued by a start after its end');
    assert.equal(later.issued_at, formatInstant(again.clock.now()));
  });
});

test('a restart keeps certificates, revocations, operator keys, liveness and the audit log', async () => {
  await using na = await startTestAuthority();
  const [kept, gone] = [await joinedNode(na), await joinedNode(na)];
  na.clock.advance(SECOND);
  await heartbeat(na, kept);
  await revoke(na, { cert_id: gone.certId, reason: 'key_compromise' });
  const standard = await operate(na, '/admin/operator-keys/ops-standard/revoke', {
    reason: 'rotated',
  });
  assert.equal(outcome(standard), '200');
  const [crl, metrics] = [await crlOf(na), await figuresOf(na)];
  const roster = (await operate(na, '/nodes', {}, { method: 'GET' })).body;
  const audit = await auditEntriesOf(na);

  await using again = await na.restart();
  assert.deepEqual(await crlOf(again), crl);
  assert.deepEqual(await figuresOf(again), metrics);
  assert.deepEqual((await operate(again, '/nodes', {}, { method: 'GET' })).body, roster);
  assert.deepEqual(await auditEntriesOf(again), audit);
  again.clock.advance(SECOND);
  assert.equal(outcome(await heartbeat(again, kept)), '200');
  assert.equal(outcome(await heartbeat(again, gone)), '403 certificate_revoked');
  const refused = await operate(again, '/admin/invite', {}, { operator: again.standard });
  assert.equal(outcome(refused), '401 admin_auth_failed');
  assert.equal(refused.body.error.message, 'Unknown admin key');
});

/** The five counts that the service itself reports. */
async function figuresOf(na: TestAuthority): Promise<string[]> {
  const { text } = await get(na, '/metrics');
  const figure = /^mesh_na_(issued_certs|active_nodes|revoked_certs|crl_sequence|policy_versions)/;
  return text.split('\n').filter((line) => figure.test(line));
}

// Revoking by filters: what is revoked passes all filters that were given, also at the moment when it is revoked.

function commandsFor(na: TestAuthority, url = na.url) {
  return (...args: string[]) => runCommand([...args, '--data-dir', na.dataDir], { MESH_URL: url });
}

/** Forwards requests to the authority, and calls `before` before the first revocation. */
async function relayTo(na: TestAuthority, before: () => Promise<unknown>) {
  let ahead: Promise<unknown> | null = null;
  const server = createServer(async (received, response) => {
    if (received.url === '/admin/revoke') {
      ahead ??= before();
      await ahead;
    }
    const { method, headers } = received;
    const sent = request(new URL(received.url ?? '', na.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    received.pipe(sent);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

test('of several labels all have to match, of several names and roles one, and nothing else is revoked', async () => {
  await using na = await startTestAuthority();
  const run = commandsFor(na);
  for (const [name, env, rack, role] of [
    ['ci-04', 'dev', 'r3', 'role:client'],
    ['ci-05', 'dev', 'r1', 'role:anchor'],
    ['db-08', 'prod', 'r3', 'role:client'],
    ['web-03', 'prod', 'r1', 'role:bridge'],
  ] as const) {
    await joinedNode(na, { name, labels: { env, rack }, roles: [role] });
  }
  const named = async (...filters: string[]) => {
    const { stdout, stderr, code } = await run('certificate', 'list', ...filters, '--json');
    assert.equal(code, 0, stderr);
    const { certificates } = JSON.parse(stdout) as { certificates: { name: string }[] };
    return certificates.map(({ name }) => name).sort();
  };
  for (const [filters, expected] of [
    [['--label', 'env=dev', '--label', 'rack=r3'], ['ci-04']],
    [['--label', 'rack=r3', '--label', 'env=dev'], ['ci-04']],
    [['--label', 'env=dev,rack=r3'], ['ci-04']],
    [
      ['--label', 'env', '--label', 'rack=r3'],
      ['ci-04', 'db-08'],
    ],
    [
      ['--name', 'ci-05', '--name', 'web-*'],
      ['ci-05', 'web-03'],
    ],
    [
      ['--role', 'role:anchor', '--role', 'role:bridge'],
      ['ci-05', 'web-03'],
    ],
    [['--role', 'role:anchor', '--role', 'role:client', '--label', 'rack=r1'], ['ci-05']],
  ] as const) {
    assert.deepEqual(await named(...filters), expected, filters.join(' '));
  }
  const revoke = ['certificate', 'revoke', '--label', 'env=dev', '--label', 'rack=r3'];
  const { code, stderr } = await run(...revoke, '--yes-revoke', '1');
  assert.equal(code, 0, stderr);
  assert.deepEqual(await named('--status', 'revoked'), ['ci-04']);
});

test('a node that reports again while others are being revoked as silent is left alone', async () => {
  const clock = testClock();
  await using na = await startTestAuthority({
    clock,
    environment: { MESH_ACTIVE_NODE_WINDOW_SECONDS: '60' },
  });
  const nodes = [await joinedNode(na), await joinedNode(na)];
  nodes.sort((a, b) => (a.certId < b.certId ? -1 : 1));
  clock.advance(120 * SECOND);
  const [gone, back] = nodes;
  assert.ok(gone !== undefined && back !== undefined);
  await using relay = await relayTo(na, () =>
    nodeRequest(na, '/heartbeat', back.key, { cert_id: back.certId }),
  );
  const run = commandsFor(na, relay.url);
  const { code, stdout, stderr } = await run(
    ...['certificate', 'revoke', '--status', 'silent', '--yes-revoke', '2', '--json'],
  );
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout).revoked_cert_ids, [gone.certId]);
});

function* commandsBelow(command: Command): Generator<Command, void> {
  for (const each of command.commands) {
    yield ready(each);
    yield* commandsBelow(each);
  }
}

test('an option of any command is repeatable, as its help says, or is refused when it is given twice', () => {
  let single = 0;
  for (const command of commandsBelow(buildProgram())) {
    for (const option of command.options.filter((each) => each.required)) {
      const what = `${command.name()} ${option.flags}: ${option.description}`;
      // Any text will do. The commands of other tests have the same options.
      const { parseArg } = option;
      Object.assign(option, { parseArg: undefined });
      const emitter = command as unknown as EventEmitter;
      const give = () => emitter.emit(`option:${option.name()}`, 'text');
      give();
      if (/repeatable/.test(option.description)) {
        assert.doesNotThrow(give, what);
      } else {
        single += 1;
        assert.throws(give, { message: /^--[a-z-]+ is given twice$/ }, what);
      }
      Object.assign(option, { parseArg });
    }
  }
  assert.ok(single > 300, `${single} options`);
});

test('an option that is given twice is wrong usage', async () => {
  for (const [args, message] of [
    [
      ['certificate', 'list', '--status', 'active', '--status', 'silent'],
      '--status is given twice',
    ],
    [['node', 'set', 'A'.repeat(8), '--name', 'a', '--no-name'], '--no-name is given twice'],
    [['invite', 'create', '--label', 'a=b', '--label', 'a=c'], 'The label a is given twice'],
    [['serve', '--port', '1', '--port', '2'], '--port is given twice'],
  ] as const) {
    const { code, stderr } = await runCommand(args);
    assert.equal(code, EXIT.usage, message);
    assert.ok(stderr.includes(message), stderr);
  }
});
