/** A separate systemd for tests: the first process of a namespace, which sees only the units that it is given. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { scratchFolder } from './scratch.ts';

const run = promisify(execFile);
const PROGRAM = '/usr/lib/systemd/systemd';

/** The reason why systemd cannot run here; null if it can. */
export async function lacksSystemd(): Promise<string | null> {
  if (!existsSync(PROGRAM)) return 'systemd is not installed';
  if (process.getuid?.() !== 0) return 'only root can start a systemd of its own';
  try {
    await using _empty = await startSystemd({ units: {}, binds: [], prepare: '' });
    return null;
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}

export interface SystemdOptions {
  /** The text of each unit by its name. */
  readonly units: { readonly [name: string]: string };
  /** Folders to bind, as by `mount --bind`: what and where. */
  readonly binds: readonly (readonly [string, string])[];
  /**
   * Shell commands that run before systemd starts. `/etc`, `/opt`, `/run` and `/var/lib` belong to the namespace
   * alone.
   */
  readonly prepare: string;
  /** The folder of another system that contains systemd; by default, that of this machine. */
  readonly root?: string;
}

export interface Systemd extends AsyncDisposable {
  /** Runs a command in the namespace; rejects if it fails. */
  run(...command: readonly string[]): Promise<string>;
  /** Standard output of `systemctl`; rejects if it fails. */
  systemctl(...args: readonly string[]): Promise<string>;
  /** The path at which this process can reach a path of the namespace. */
  path(inside: string): string;
}

/** The lines that the signer's unit says to add to the authority's unit. */
export function signerDropIn(unit: string): string {
  const lines = unit.split('\n');
  const from = lines.indexOf('#   [Unit]');
  const own = lines.slice(from, lines.indexOf('[Unit]'));
  assert.ok(from > 0 && own.every((line) => line.startsWith('#   ')));
  return own.map((line) => line.slice(4)).join('\n');
}

/** The output of the services, because there is no journal. */
const OUTPUT = '/run/output';
/** Targets that units require by default. */
const TARGETS = ['sysinit', 'basic', 'shutdown', 'multi-user', 'network-online'];

const START = `
set -e
mount --make-rprivate /
mount -t cgroup2 none "$FOLDER/cgroup"
mkdir "$FOLDER/cgroup/$GROUP"
echo $$ > "$FOLDER/cgroup/$GROUP/cgroup.procs"
exec unshare --cgroup --pid --fork --kill-child --uts --ipc --mount sh -c "$INSIDE"`;

/** systemd must see what a service mounts, which the creator of the namespace has to arrange. */
const INSIDE = `
set -e
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t overlay -o "lowerdir=/etc,upperdir=$FOLDER/etc,workdir=$FOLDER/work" overlay /etc
mount -t tmpfs -o mode=0755 none /opt
mount -t tmpfs -o mode=0755 none /var/lib
eval "$PREPARE"
mount -t tmpfs -o mode=0755 none /run
mount --bind "$FOLDER/console" /dev/console
mount --make-rshared /
exec ${PROGRAM} --system --unit=multi-user.target --log-target=console --show-status=no`;

/** The same in the folder of another system, which has nothing that must be hidden. */
const INSIDE_ROOT = `
set -e
mount --bind "$ROOT" "$ROOT"
cd "$ROOT"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --rbind /sys sys
umount -R sys/fs/cgroup
mount -t cgroup2 none sys/fs/cgroup
mount --rbind /dev dev
# With RemoveIPC, systemd removes the files of a stopped service's user from there, and the root may be in the outer one.
mount -t tmpfs -o mode=1777 none dev/shm
mount -t tmpfs -o mode=0755 none run
mount --bind "$FOLDER/console" dev/console
mount --bind "$FOLDER/units" mnt
pivot_root . media
umount -l /media
mount --make-rshared /
exec ${PROGRAM} --system --unit=multi-user.target --log-target=console --show-status=no`;

export async function startSystemd(options: SystemdOptions): Promise<Systemd> {
  const { units, binds, prepare, root } = options;
  const scratch = scratchFolder('mesh-na-systemd-');
  const folder = scratch.path;
  const group = basename(folder);
  const unitFolder = join(folder, 'units');
  for (const name of ['cgroup', 'etc', 'work', 'units']) mkdirSync(join(folder, name));
  const console_ = join(folder, 'console');
  writeFileSync(console_, '');
  const own = TARGETS.map((name) => [`${name}.target`, '[Unit]\n'] as const);
  const output = ['service.d/output.conf', `[Service]\nStandardOutput=append:${OUTPUT}\n`] as const;
  for (const [name, text] of [...own, output, ...Object.entries(units)]) {
    const path = join(unitFolder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, text);
  }
  const bound = binds.map(
    ([from, to]) =>
      `[ -d '${from}' ] && mkdir -p '${to}' || touch '${to}'; mount --bind '${from}' '${to}'`,
  );
  const said: string[] = [];
  // Everything ends with the process of the test, for whatever reason that ends.
  const command = ['--pdeathsig', 'KILL', 'unshare', '--mount', 'sh', '-c', START];
  const child = spawn('setpriv', command, {
    env: {
      PATH: process.env.PATH,
      FOLDER: folder,
      GROUP: group,
      INSIDE: root === undefined ? INSIDE : INSIDE_ROOT,
      ROOT: root,
      PREPARE: [...bound, prepare].join('\n'),
      SYSTEMD_UNIT_PATH: root === undefined ? unitFolder : '/mnt',
      container: 'test',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => said.push(text));
  }
  const end = async () => {
    const ended = once(child, 'exit');
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await ended;
    }
    await removeGroup(group);
    scratch.remove();
  };
  try {
    const first = await firstProcess(child, () => said.join('') + readFileSync(console_, 'utf8'));
    const path = (inside: string) => `/proc/${first}/root${inside}`;
    const enter = ['--target', String(first), '--mount', '--pid', '--cgroup', '--ipc'];
    const inside = async (...command: readonly string[]) =>
      (await run('nsenter', [...enter, ...command])).stdout.trim();
    return {
      run: inside,
      async systemctl(...args) {
        try {
          return await inside('systemctl', ...args);
        } catch (cause) {
          const output = path(OUTPUT);
          const text = existsSync(output) ? readFileSync(output, 'utf8').slice(-2000) : '';
          throw new Error(`systemctl ${args.join(' ')} has failed: ${text}`, { cause });
        }
      },
      path,
      [Symbol.asyncDispose]: end,
    };
  } catch (cause) {
    await end();
    throw cause;
  }
}

const START_MS = 30_000;

/** The process id, as seen from here, of a systemd that answers. */
async function firstProcess(child: ChildProcess, said: () => string): Promise<number> {
  const deadline = performance.now() + START_MS;
  while (child.exitCode === null && performance.now() < deadline) {
    const pid = childOf(child.pid ?? 0);
    if (pid !== null && existsSync(`/proc/${pid}/root/run/systemd/private`)) return pid;
    await delay(20);
  }
  throw new Error(`systemd has not started: ${said().slice(-2000)}`);
}

function childOf(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return children === '' ? null : Number(children.split(' ')[0]);
  } catch {
    return null;
  }
}

function inNamespace(script: string): void {
  const private_ = 'mount --make-rprivate / && ';
  execFileSync('unshare', ['--mount', 'sh', '-c', private_ + script], { stdio: 'ignore' });
}

/** Retries, because the groups that systemd created become empty only shortly after its namespace has ended. */
async function removeGroup(group: string): Promise<void> {
  const script = `mount -t cgroup2 none /mnt && { [ ! -d /mnt/${group} ] || find /mnt/${group} -depth -type d -exec rmdir {} +; }`;
  for (let attempt = 0; attempt < 100; attempt += 1) {
    try {
      inNamespace(script);
      return;
    } catch {
      await delay(50);
    }
  }
}
