/** Which process listens on a port, as far as Linux says: of processes of other users it may not. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const LISTENING = '0A';

/** Such as `process 812 (node)`; null when it is not known. */
export function portHolder(port: number): string | null {
  try {
    const sockets = new Set(TABLES.flatMap((table) => listeningSockets(table, port)));
    if (sockets.size === 0) return null;
    const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && holdsAny(name, sockets));
    return pid === undefined ? null : `process ${pid}${nameOf(pid)}`;
  } catch {
    // Only Linux has these files.
    return null;
  }
}

/** What links of file descriptors call the sockets. */
function listeningSockets(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(table, 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === LISTENING && local.endsWith(suffix))
    .map((fields) => `socket:[${fields[9]}]`);
}

/** A process of another user, or one that has just ended, shows nothing. */
function holdsAny(pid: string, sockets: ReadonlySet<string>): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((name) => sockets.has(readlinkSync(`${folder}/${name}`)));
  } catch {
    return false;
  }
}

function nameOf(pid: string): string {
  try {
    // A process chooses its name itself.
    const name = readFileSync(`/proc/${pid}/comm`, 'latin1').replace(/[^ -~]/g, '');
    return ` (${name})`;
  } catch {
    return '';
  }
}
