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
      const refused = `The address ${host}:${port} cannot be listened on`;
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
      return `${portHolder(port) ?? 'another process'} uses it; stop that one, or choose another port by --port`;
    case 'EACCES':
      return 'this user may not use the port; choose one from 1024 on by --port';
    case 'EADDRNOTAVAIL':
      return 'this machine does not have that address; choose one of its own by --host';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the name of the host is not known; choose an address by --host';
    default:
      return `${code}; choose another by --host and --port`;
  }
}

/**
 * Which process listens on a port, such as `process 812 (node)`; null when it is not known. Linux says so of processes of
 * the same user.
 */
function portHolder(port: number): string | null {
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
