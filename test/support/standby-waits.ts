/** A standby that is away: commits wait for it, and an administrator cancels such waits. */
import pg from 'pg';

export interface AbsentStandby extends AsyncDisposable {
  /** From now on, commits wait. */
  goAway(): Promise<void>;
  /** Commits wait no longer. */
  comeBack(): Promise<void>;
  /**
   * Cancels each wait of a statement that begins with this text until the work has ended; rejects or resolves like
   * the work.
   */
  canceling<T>(statement: string, work: () => Promise<T>): Promise<T>;
}

/** `url` is the address of a database on the server. */
export async function absentStandby(url: string): Promise<AbsentStandby> {
  const watcher = new pg.Client(url);
  await watcher.connect();
  await watcher.query('set synchronous_commit = local');

  async function setNames(names: string): Promise<void> {
    await watcher.query(`alter system set synchronous_standby_names = '${names}'`);
    await watcher.query('select pg_reload_conf()');
  }

  return {
    async goAway() {
      await setNames('absent');
      await untilWritesWait(url, watcher);
    },
    comeBack: () => setNames(''),
    async canceling(statement, work) {
      let isOver = false;
      const done = work().finally(() => {
        isOver = true;
      });
      // Handled by the caller.
      done.catch(() => undefined);
      while (!isOver) {
        await isCanceled(watcher, statement);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return done;
    },
    async [Symbol.asyncDispose]() {
      await setNames('');
      await watcher.end();
    },
  };
}

/** Writes until a write waits for a standby, because the server reads its changed settings only after some time. */
async function untilWritesWait(url: string, watcher: pg.Client): Promise<void> {
  const writer = new pg.Client(url);
  await writer.connect();
  for (let hasWaited = false; !hasWaited; ) {
    let isOver = false;
    const write = writer.query(`update mesh_na.meta set value = value`).finally(() => {
      isOver = true;
    });
    while (!hasWaited && !isOver) hasWaited = await isCanceled(watcher, 'update mesh_na.meta');
    await write;
  }
  await writer.end();
}

/** Cancels the wait for a standby of the statement that begins with this text; returns false if none is waiting. */
async function isCanceled(watcher: pg.Client, statement: string): Promise<boolean> {
  const { rowCount } = await watcher.query(
    `select pg_cancel_backend(pid) from pg_stat_activity
      where wait_event = 'SyncRep' and starts_with(query, $1)`,
    [statement],
  );
  return rowCount === 1;
}
