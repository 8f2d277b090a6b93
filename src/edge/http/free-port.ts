import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:net';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const LISTENING = '0A';

/**
 * Checks that nothing listens on the port, and picks a free one for 0. Threads that share a port would
 * otherwise silently share it with another server.
 */
export function freePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', ({ code }: NodeJS.ErrnoException) => {
      const refused = `Cannot listen on ${host}:${port}`;
      reject(new Error(`${refused}: ${reasonAndCure(port, code)}`));
    });
    probe.listen({ host, port, exclusive: true }, () => {
      const address = probe.address();
      const found = typeof address === 'object' && address !== null ? address.port : port;
      probe.close(() => resolve(found));
    });
  });
}

function reasonAndCure(port: number, code = 'unknown cause'): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${portHolder(port) ?? 'another process'} is using it; stop that process, or choose another port with --port`;
    case 'EACCES':
      return 'this user may not use the port; choose 1024 or above with --port';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address; choose one of its own with --host';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name cannot be resolved; choose an address with --host';
    default:
      return `${code}; choose another address with --host and --port`;
  }
}

/**
 * The process that listens on a port, such as `process 812 (node)`; null if not known. Linux reveals this only for
 * processes of the same user.
 */
function portHolder(port: number): string | null {
  try {
    const sockets = new Set(TABLES.flatMap((table) => listeningSockets(table, port)));
    if (sockets.size === 0) return null;
    const pid = readdirSync('/proc').find((name) => /^\d+$/.test(name) && holdsAny(name, sockets));
    return pid === undefined ? null : `process ${pid}${nameOf(pid)}`;
  } catch {
    // These files exist only on Linux.
    return null;
  }
}

/** The names of the sockets in links of file descriptors. */
function listeningSockets(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(table, 'latin1')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => state === LISTENING && local.endsWith(suffix))
    .map((fields) => `socket:[${fields[9]}]`);
}

/** Returns false for processes of other users, and for one that has just ended. */
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
    // A process can choose its name, so it is sanitized.
    const name = readFileSync(`/proc/${pid}/comm`, 'latin1').replace(/[^ -~]/g, '');
    return ` (${name})`;
  } catch {
    return '';
  }
}
