/** What each signal does to the service: under a service manager, as the first process of a container, in a terminal. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { ownNetwork } from './support/folders.ts';
import { childrenOf, isRunning } from './support/processes.ts';
import { get } from './support/requests.ts';
import { until } from './support/until.ts';

const CONTAINER = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** `script` gives its command a terminal, which hangs up when `script` ends. */
const inTerminal = (command: string) => [
  ...['sh', '-c', `exec script --quiet --return --command "${command}" /dev/null`, 'sh'],
];
/** `exec`, because not every shell turns into its only command by itself. */
const TERMINAL = inTerminal('exec $*');
/** Without the pipe, its output would be in a file. */
const NOHUP = inTerminal('nohup $* 2>&1 | cat');

const runs = ([program = '', ...args]: readonly string[]) =>
  spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0;

interface Place {
  readonly name: string;
  readonly before: readonly string[];
  /** The process that gets the signal. */
  readonly pidOf: (server: ChildServer) => number;
  /** Whether SIGQUIT, which the service leaves to the kernel, ends the process. */
  readonly quits: boolean;
}

const own = ({ process }: ChildServer): number => process.pid ?? 0;
const child = (server: ChildServer): number => childrenOf(own(server))[0] ?? 0;

const PLACES: readonly Place[] = [
  { name: 'under a service manager', before: [], pidOf: own, quits: true },
  { name: 'as the first process of a container', before: CONTAINER, pidOf: child, quits: false },
  { name: 'in a terminal', before: TERMINAL, pidOf: child, quits: true },
];

for (const { name, before, pidOf, quits } of PLACES) {
  const skip = before.length > 0 && !runs(before) && `${before[0]} cannot be used here`;
  suite(name, { skip }, () => {
    test('SIGHUP reloads what there is, and SIGUSR1, SIGUSR2 and SIGPIPE do nothing', async () => {
      const server = await start(before);
      const pid = pidOf(server);
      for (const signal of ['SIGUSR1', 'SIGUSR2', 'SIGPIPE', 'SIGHUP', 'SIGHUP'] as const) {
        process.kill(pid, signal);
        await assertReady(server, signal);
      }
      await until(() => said(server).split('SIGHUP: nothing to reload').length === 3);
      assert.doesNotMatch(said(server), /Debugger|finishing requests/);
      await stoppedBy(server, pid, ['SIGTERM']);
    });

    for (const signals of [['SIGINT'], ['SIGTERM', 'SIGINT']] as const) {
      test(`${signals.join(', then ')} stops the service, with everything written`, async () => {
        const drain = signals.length === 1 ? '0' : '300';
        const server = await start(before, { MESH_DRAIN_SECONDS: drain });
        await stoppedBy(server, pidOf(server), signals);
      });
    }

    test(`SIGQUIT ${quits ? 'ends the process as a crash does' : 'does nothing'}`, async () => {
      const server = await start(before);
      const pid = pidOf(server);
      process.kill(pid, 'SIGQUIT');
      if (quits) {
        assert.notEqual((await server.ended).code, 0);
        assert.doesNotMatch(said(server), /finishing requests/);
      } else {
        await assertReady(server, 'after the signal');
        await stoppedBy(server, pid, ['SIGTERM']);
      }
    });
  });
}

suite('a terminal that hangs up', { skip: !runs(TERMINAL) && 'script cannot be used here' }, () => {
  for (const [what, before, stops] of [
    ['stops the service', TERMINAL, true],
    ['leaves a service alone that nohup has started', NOHUP, false],
  ] as const) {
    test(what, async () => {
      const folder = ownNetwork();
      const log = join(folder, 'log');
      const server = await startChildServer(folder, { before, args: ['--log-file', log] });
      const pid = Number(/"pid":(\d+)/.exec(said(server))?.[1]);
      server.process.kill('SIGKILL');
      const lines = () => readFileSync(log, 'utf8');
      if (stops) {
        await until(() => !isRunning(pid));
        assert.match(lines(), /SIGHUP: finishing requests in flight\n.* Stopped\n$/);
      } else {
        await until(() => /SIGHUP: reopened the log file/.test(lines()));
        await assertReady(server, 'after the signal');
        process.kill(pid, 'SIGTERM');
        await until(() => !isRunning(pid));
        assert.match(lines(), / Stopped\n$/);
      }
    });
  }
});

async function assertReady({ na }: ChildServer, when: string): Promise<void> {
  const { status, body } = await get(na, '/readyz');
  assert.equal(status, 200, `${when}: ${JSON.stringify(body)}`);
}

/** Everything that the process has written; a terminal has only one stream. */
const said = (server: ChildServer): string => server.output() + server.log();

function start(
  before: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<ChildServer> {
  return startChildServer(ownNetwork(), { before, environment: { ...NO_LIMITS, ...environment } });
}

async function stoppedBy(
  server: ChildServer,
  pid: number,
  signals: readonly NodeJS.Signals[],
): Promise<void> {
  for (const signal of signals) {
    process.kill(pid, signal);
    await until(() => said(server).includes(`${signals[0]}: finishing requests in flight`));
  }
  const { code } = await server.ended;
  assert.equal(code, 0);
  assert.match(said(server), / Stopped\r?\n$/);
}
