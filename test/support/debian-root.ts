/** A clean system in a folder, unpacked from tars, and commands in namespaces that see nothing else. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scratchFolder } from './scratch.ts';

const run = promisify(execFile);
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const ENTER = `
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
mkdir -p proc dev tmp
mount -t proc proc proc
# Devices of its own, because what is installed here may replace some.
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
for device in null zero full random urandom tty; do cp -a "/dev/$device" dev; done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/\${stream%%:*}" "dev/\${stream#*:}"; done
touch dev/console
eval "$BINDS"
exec /usr/sbin/chroot --userspec="$AS" . "$@"`;

export interface CleanRoot extends Disposable {
  readonly path: string;
  /** The program and arguments that run a command in it. */
  entered(command: readonly string[], given?: Given): Entered;
  /** Standard output of a command; rejects if it fails. */
  run(command: readonly string[], given?: Given): Promise<string>;
  /** Starts a command as the first process of its namespace, which ends with this one. */
  start(command: readonly string[], given?: Given): ChildProcess;
}

export interface Entered {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

export interface Given {
  readonly environment?: NodeJS.ProcessEnv;
  /** The user and group, as numbers. */
  readonly as?: string;
}

/** `binds` are folders of this machine, and where they appear in the root. */
export function unpackRoot(
  tars: readonly string[],
  binds: readonly (readonly [string, string])[] = [],
): CleanRoot {
  const scratch = scratchFolder('mesh-na-root-');
  const path = join(scratch.path, 'root');
  mkdirSync(path);
  for (const tar of tars) execFileSync('tar', ['-xpf', tar, '-C', path, '--numeric-owner']);
  for (const [, to] of binds) mkdirSync(join(path, to), { recursive: true });
  const bound = binds.map(([from, to]) => `mount --bind '${from}' '.${to}'`).join('\n');

  function entered(command: readonly string[], { environment, as = '0:0' }: Given = {}) {
    const namespaces = ['unshare', '--mount', '--pid', '--fork', '--kill-child'];
    const args = ['--pdeathsig', 'KILL', ...namespaces, 'sh', '-c', ENTER, 'sh', ...command];
    const env = { PATH, HOME: '/root', ...environment, ROOT: path, AS: as, BINDS: bound };
    return { command: 'setpriv', args, env };
  }

  return {
    path,
    entered,
    async run(within, given) {
      const { command, args, env } = entered(within, given);
      return (await run(command, args, { env, maxBuffer: 2 ** 24 })).stdout;
    },
    start(within, given) {
      const { command, args, env } = entered(within, given);
      return spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    },
    [Symbol.dispose]: () => scratch.remove(),
  };
}
