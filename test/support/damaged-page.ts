/** Damages the file of a table behind the server's back, as a disk would. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestCluster } from './postgresql.ts';

/** Changes the file of a table of the state while the server is stopped. */
export function changeFile(
  cluster: TestCluster,
  url: string,
  table: string,
  change: (bytes: Buffer, path: string) => void,
): Promise<void> {
  return whileStopped(cluster, url, table, (path) => {
    const bytes = readFileSync(path);
    change(bytes, path);
    writeFileSync(path, bytes);
  });
}

/** Removes the file of a table of the state while the server is stopped. */
export function loseFile(cluster: TestCluster, url: string, table: string): Promise<void> {
  return whileStopped(cluster, url, table, (path) => rmSync(path));
}

async function whileStopped(
  cluster: TestCluster,
  url: string,
  table: string,
  work: (path: string) => void,
): Promise<void> {
  const [found] = await cluster.query(
    new URL(url).pathname.slice(1),
    `select pg_relation_filepath('mesh_na.${table}') as path`,
  );
  await cluster.stop('SIGINT');
  work(join(cluster.socketFolder, 'data', String(found?.path)));
  await cluster.start();
}

const PAGE_BYTES = 8192;
const HEADER_BYTES = 24;

/** Damages a page so that the server refuses to read it. */
export function spoilPage(bytes: Buffer): void {
  bytes.fill(0xff, 0, HEADER_BYTES);
}

/** Makes a page look as if it was never written: the server considers it empty. */
export function losePage(bytes: Buffer): void {
  bytes.fill(0, 0, PAGE_BYTES);
}
