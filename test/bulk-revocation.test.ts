/** Revoking by filters: what is revoked passes all filters that were given, also at the moment when it is revoked. */
import assert from 'node:assert/strict';
import { type EventEmitter, once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { Command } from 'commander';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { buildProgram, ready } from '../src/cli/program.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { SECOND, testClock } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { joinedNode, nodeRequest } from './support/requests.ts';

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
