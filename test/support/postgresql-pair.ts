/** Two PostgreSQL servers: a primary, and a standby that every commit waits for. */
import { ownPort } from './own-port.ts';
import { startCluster, type TestCluster } from './postgresql.ts';

export interface ServerPair extends AsyncDisposable {
  /** The ports of both servers, regardless of which one is the primary. */
  readonly ports: readonly [number, number];
  primary(): TestCluster;
  standby(): TestCluster;
  /** Kills the primary. */
  killPrimary(): Promise<void>;
  /** Makes the standby the primary, after the other was killed or frozen; resolves when it can be written to. */
  promote(): Promise<void>;
  /** Makes the former primary the standby, with the state of the new one. */
  restoreStandby(): Promise<void>;
  /** Ends the promoted server, and restarts the former primary with what it has stored. */
  returnToFormerPrimary(): Promise<void>;
  /** From now on, commits neither wait for the standby nor reach it. */
  detachStandby(): Promise<void>;
}

export async function startPair(): Promise<ServerPair> {
  const ports = [await ownPort(), await ownPort()] as const;
  let primary = await startCluster({ port: ports[0] });
  let standby = await startCluster({ port: ports[1], standbyOf: primary });
  await setSynchronous(true);

  async function setSynchronous(isSynchronous: boolean): Promise<void> {
    const names = isSynchronous ? '*' : '';
    await primary.query('postgres', `alter system set synchronous_standby_names = '${names}'`);
    await primary.query('postgres', 'select pg_reload_conf()');
    if (!isSynchronous) return;
    for (;;) {
      const rows = await primary.query('postgres', 'select sync_state from pg_stat_replication');
      if (rows.some(({ sync_state }) => sync_state === 'sync')) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  return {
    ports,
    primary: () => primary,
    standby: () => standby,
    killPrimary: () => primary.stop('SIGKILL'),
    async promote() {
      await standby.query('postgres', 'select pg_promote()');
      [primary, standby] = [standby, primary];
    },
    async returnToFormerPrimary() {
      await primary.stop('SIGKILL');
      [primary, standby] = [standby, primary];
      await primary.start();
    },
    async restoreStandby() {
      const { port } = standby;
      await standby[Symbol.asyncDispose]();
      // Without a standby, commits would wait for one.
      await setSynchronous(false);
      standby = await startCluster({ port, standbyOf: primary });
      await setSynchronous(true);
    },
    async detachStandby() {
      await setSynchronous(false);
      await standby.query('postgres', "alter system set primary_conninfo = ''");
      await standby.query('postgres', 'select pg_reload_conf()');
      for (;;) {
        const rows = await standby.query('postgres', 'select 1 from pg_stat_wal_receiver');
        if (rows.length === 0) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([primary, standby].map((one) => one[Symbol.asyncDispose]()));
    },
  };
}
