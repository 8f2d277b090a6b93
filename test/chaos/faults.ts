/** The rows of the failure table: what breaks, for how long, and how it is repaired. */
import { setTimeout as delay } from 'node:timers/promises';
import { cuttableProxy, type Direction } from '../support/instances.ts';
import { get } from '../support/requests.ts';
import { type Deployment, eventually, type Instance } from './deployment.ts';
import { staleSinceOf } from './ledger.ts';

/** How long faults last, in milliseconds. */
export interface Durations {
  readonly suspended: number;
  readonly cut: number;
  readonly withoutDatabase: number;
  readonly slow: number;
}

export interface Fault {
  readonly name: string;
  /** Whether clients may have to repeat requests. */
  readonly mayFail: boolean;
  /**
   * Breaks something and repairs it. Calls `recovers` at the point from which the service must recover by itself;
   * without that call, it must do so from the beginning.
   */
  play(deployment: Deployment, durations: Durations, recovers: () => void): Promise<void>;
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'none',
    mayFail: false,
    play: (_deployment, { slow }) => delay(slow),
  },
  {
    name: 'active-killed',
    mayFail: true,
    async play(deployment) {
      await serverOf(await deployment.active()).end('SIGKILL');
    },
  },
  {
    name: 'active-suspended',
    mayFail: true,
    async play(deployment, { suspended }) {
      const { process, ended } = serverOf(await deployment.active());
      process.kill('SIGSTOP');
      await delay(suspended);
      process.kill('SIGCONT');
      const { code } = await ended;
      if (code !== 1)
        throw new Error(`The active instance that was suspended has ended with ${code}`);
    },
  },
  {
    name: 'each-stopped',
    mayFail: false,
    async play(deployment) {
      for (const instance of deployment.instances) {
        const { code, stderr } = await serverOf(instance).end('SIGTERM');
        if (code !== 0)
          throw new Error(`An instance that was stopped has ended with ${code}: ${stderr}`);
        await deployment.isWhole();
      }
    },
  },
  linkCut('to the active instance'),
  linkCut('from the active instance'),
  {
    name: 'primary-killed',
    mayFail: true,
    async play({ servers }, _durations, recovers) {
      await servers.killPrimary();
      await servers.promote();
      recovers();
      await servers.restoreStandby();
    },
  },
  {
    name: 'primary-frozen',
    mayFail: true,
    async play({ servers }, _durations, recovers) {
      servers.primary().freeze();
      await servers.promote();
      recovers();
      await servers.restoreStandby();
    },
  },
  {
    name: 'primary-silent',
    mayFail: true,
    async play({ servers, proxies, proxiesOfLast }, { cut }, recovers) {
      const index = servers.ports.indexOf(servers.primary().port);
      const silenced = [proxies[index], proxiesOfLast[index]];
      for (const proxy of silenced) proxy?.silence();
      await servers.promote();
      recovers();
      await delay(cut);
      // It still believes that it is the primary, because nobody stopped it.
      await servers.restoreStandby();
      for (const proxy of silenced) proxy?.heal();
    },
  },
  {
    name: 'database-gone',
    mayFail: true,
    async play(deployment, { withoutDatabase }, recovers) {
      const { na, instances, servers } = deployment;
      const active = await deployment.active();
      const standbys = instances.filter((instance) => instance !== active).map(serverOf);
      await servers.primary().stop('SIGQUIT');
      await delay(withoutDatabase);
      const list = await get(na, '/crl');
      if (staleSinceOf(list) === null) throw new Error(`No list is served as stale: ${list.text}`);
      await servers.primary().start();
      recovers();
      await deployment.isWhole();
      const ended = standbys.filter(({ process }) => process.exitCode !== null);
      if (ended.length > 0) throw new Error('A standby has ended with the database');
    },
  },
  {
    name: 'database-full',
    mayFail: true,
    async play(deployment, { cut }, recovers) {
      await deployment.setDiskFull(true);
      await eventually('no list is served as stale', async () => {
        const list = await get(deployment.na, '/crl').catch(() => null);
        return list && staleSinceOf(list);
      });
      await delay(cut);
      await deployment.setDiskFull(false);
      recovers();
      await deployment.isWhole();
    },
  },
  {
    /** A standby becomes the primary although it lacks commits that readers have already seen. */
    name: 'standby-rolled-back',
    mayFail: true,
    async play(deployment, { cut }, recovers) {
      const { servers } = deployment;
      await servers.detachStandby();
      await delay(cut);
      await servers.killPrimary();
      await servers.promote();
      await deployment.isRefused();
      await servers.returnToFormerPrimary();
      recovers();
      await servers.restoreStandby();
    },
  },
  {
    name: 'slow-disk',
    mayFail: false,
    async play({ proxies, proxiesOfLast }, { slow }) {
      const all = [...proxies, ...proxiesOfLast];
      for (const proxy of all) proxy.delay(200);
      await delay(slow);
      for (const proxy of all) proxy.delay(0);
    },
  },
  {
    /** The database's messages to one of the waiting instances arrive late. */
    name: 'standby-late',
    mayFail: false,
    async play(deployment, { slow }) {
      const { instances, proxiesOfLast } = deployment;
      const last = instances.at(-1);
      if (last !== undefined && (await deployment.active()) === last) {
        await serverOf(last).end('SIGTERM');
        await deployment.isWhole();
      }
      for (const proxy of proxiesOfLast) proxy.delay(300);
      await delay(slow);
      for (const proxy of proxiesOfLast) proxy.delay(0);
    },
  },
  {
    name: 'database-clock',
    mayFail: false,
    async play({ setClockOfDatabase }, { slow }) {
      for (const seconds of [3600, -3600, 0]) {
        await setClockOfDatabase(seconds);
        await delay(slow / 3);
      }
    },
  },
];

/**
 * What an operator must not do: commits wait for no standby, a lagging standby becomes the primary, and all instances
 * are restarted, so that none remembers what it has seen. This is not a row of the table; it shows that the tests
 * detect lost changes.
 */
export const PLANTED: Fault = {
  name: 'standby-lags',
  mayFail: true,
  async play({ servers, instances, removeHead }, { cut }) {
    await servers.detachStandby();
    await delay(cut);
    await servers.killPrimary();
    removeHead();
    await Promise.all(instances.map((one) => one.server()?.end('SIGKILL')));
    await servers.promote();
  },
};

/** A link to one of the standbys that passes nothing in one direction. */
function linkCut(direction: Direction): Fault {
  return {
    name: `link-cut-${direction.replaceAll(' ', '-')}`,
    mayFail: true,
    async play(deployment, { cut }, recovers) {
      const direct = await deployment.linkOfActive();
      const proxy = await cuttableProxy(direct);
      await deployment.setLinkOfActive(proxy.address);
      await proxy.hasConnections(2);
      await deployment.isWhole();
      proxy.cutOne(direction);
      await delay(cut);
      recovers();
      proxy.heal();
      await deployment.setLinkOfActive(direct);
      await deployment.isWhole();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

function serverOf(instance: Instance) {
  const server = instance.server();
  if (server === null) throw new Error('An instance is down before the fault begins');
  return server;
}
