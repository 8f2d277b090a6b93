/** What `npm run release` writes, built from a copy of the checkout, because it compiles into `dist/`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_PATH } from './project.ts';
import { scratchFolder } from './scratch.ts';

const RELEASED_FROM = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'tsconfig.client.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
  'docs',
  'machines',
  'src',
  'tools',
];

/** The folder of the release, which `run.ts` makes once for all files of its run. */
export function releaseFolder(): string {
  return process.env.MESH_TEST_RELEASE ?? makeRelease();
}

/** Each call creates one. */
export function makeRelease(): string {
  const copy = join(scratchFolder('mesh-na-release-').path, 'checkout');
  mkdirSync(copy);
  for (const name of RELEASED_FROM) {
    cpSync(join(PROJECT_PATH, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(PROJECT_PATH, 'node_modules'), join(copy, 'node_modules'));
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1700000000' };
  const stdio = ['ignore', 'ignore', 'pipe'] as const;
  execFileSync('npm', ['run', '-s', 'release'], { cwd: copy, env, stdio: [...stdio] });
  return join(copy, 'dist/release');
}
