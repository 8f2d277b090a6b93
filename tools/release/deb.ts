/** The Debian package: the program in `/usr/lib/mesh-na`, with the units of systemd, the manual page and completion. */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { COMPLETIONS } from '../../src/cli/command-reference.ts';
import { gzipped, makeReadable } from './archive.ts';

const HERE = join(import.meta.dirname, 'debian');
const HOME = 'usr/lib/mesh-na';
/** Needs neither `env`, which not every image has, nor a search for Node.js. */
const COMMAND = `#!/usr/bin/node --no-allocation-site-pretenuring
import('/${HOME}/dist/src/main.js');
`;
/** As Debian compresses texts. */
const MOST = 9;
const SCRIPTS = ['postinst', 'prerm', 'postrm'];

/** The program as it lies on a Debian, below an empty folder. */
export function installProgram(program: string, folder: string): void {
  cpSync(program, join(folder, HOME), { recursive: true });
  mkdirSync(join(folder, 'usr/bin'), { recursive: true });
  writeFileSync(join(folder, 'usr/bin/mesh-na'), COMMAND, { mode: 0o755 });
}

/** Writes the package to `file`. */
export function writeDeb(root: string, program: string, folder: string, file: string): void {
  const { version, description } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8'));
  installProgram(program, folder);
  const write = (path: string, content: string | Buffer) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  const deployed = (name: string) => readFileSync(join(root, 'docs/deploy', name), 'utf8');
  const own = (name: string) => readFileSync(join(HERE, name), 'utf8');

  const units = 'usr/lib/systemd/system';
  write(`${units}/mesh-na.service`, serviceUnit(deployed('mesh-na.service')));
  write(`${units}/mesh-na-signer.service`, installed(deployed('mesh-na-signer.service')));
  write('usr/lib/sysusers.d/mesh-na.conf', own('sysusers.conf'));
  write('etc/mesh-na/environment', own('environment'));

  const share = 'usr/share';
  write(`${share}/bash-completion/completions/mesh-na`, COMPLETIONS.bash);
  write(`${share}/zsh/vendor-completions/_mesh-na`, COMPLETIONS.zsh);
  write(`${share}/fish/vendor_completions.d/mesh-na.fish`, COMPLETIONS.fish);
  write(
    `${share}/man/man1/mesh-na.1.gz`,
    gzipped(readFileSync(join(program, 'man/mesh-na.1')), MOST),
  );
  const documents = `${share}/doc/mesh-na`;
  write(`${documents}/changelog.gz`, gzipped(readFileSync(join(root, 'CHANGELOG.md')), MOST));
  const license = readFileSync(join(root, 'LICENSE'), 'utf8').replace(/^(?=.)/gm, ' ');
  write(`${documents}/copyright`, own('copyright') + license.replace(/^$/gm, ' .'));
  symlinkSync('../../../lib/mesh-na/docs', join(folder, documents, 'docs'));

  makeReadable(folder);
  write('DEBIAN/control', control(version, description, sizeOf(folder)));
  write('DEBIAN/conffiles', own('conffiles'));
  for (const name of SCRIPTS) {
    write(`DEBIAN/${name}`, own(name));
    execFileSync('chmod', ['755', join(folder, 'DEBIAN', name)]);
  }
  // It may have the password of a database.
  execFileSync('chmod', ['640', join(folder, 'etc/mesh-na/environment')]);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', folder, file]);
}

/**
 * Which Node.js: that of the distribution, which also brings its security updates, or a newer one that the user has
 * chosen. The binaries of uWebSockets.js for Node.js 22 and later need the newer C library.
 */
function control(version: string, description: string, kilobytes: number): string {
  return `Package: mesh-na
Version: ${version}
Architecture: amd64
Maintainer: Mesh Network Authority authors <nobody@localhost>
Installed-Size: ${kilobytes}
Depends: nodejs (>= 20.15), nodejs (<< 26), nodejs (<< 21) | libc6 (>= 2.38), libc6 (>= 2.28), libstdc++6, systemd | systemd-standalone-sysusers | systemd-sysusers
Section: net
Priority: optional
Description: authority of one sovereign trust network
${description.replace(/(.{1,78})(?: |$)/g, ' $1\n')}`;
}

function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const bytes = files.reduce(
    (sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size,
    0,
  );
  return Math.ceil(bytes / 1024);
}

/** The unit with the paths of the package. */
function installed(unit: string): string {
  return replaced(unit, [[/\/opt\/mesh-na/g, `/${HOME}`]]);
}

/** The unit of the service, which has a user with a name. */
function serviceUnit(unit: string): string {
  return replaced(installed(unit), [
    [/^(?:#.*\n)+(?=\[Unit\])/m, ''],
    [/^Documentation=/m, 'Documentation=man:mesh-na(1) '],
    [/^DynamicUser=yes$/m, 'User=mesh-na\nGroup=mesh-na'],
  ]);
}

function replaced(text: string, changes: readonly (readonly [RegExp, string])[]): string {
  return changes.reduce((changed, [found, by]) => {
    if (changed.search(found) < 0) throw new Error(`The unit has nothing like ${found.source}`);
    return changed.replace(found, () => by);
  }, text);
}
