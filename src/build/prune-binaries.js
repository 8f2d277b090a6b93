/**
 * `npm run prune-binaries`: removes the uWebSockets.js binaries that this machine and this version of Node.js do not
 * load. The package contains one for each platform and version of Node.js, some 250 MB in total. The next `npm ci` or
 * `npm install` restores them.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const MEGABYTE = 1e6;
const folder = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
const own = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
const binaries = readdirSync(folder).filter((name) => /^uws_.*\.node$/.test(name));

if (binaries.includes(own)) {
  const others = binaries.filter((name) => name !== own).map((name) => join(folder, name));
  const bytes = others.reduce((sum, path) => sum + statSync(path).size, 0);
  for (const path of others) rmSync(path);
  const freed = Math.round(bytes / MEGABYTE);
  process.stdout.write(`Kept ${own} and removed ${others.length} other binaries (${freed} MB).\n`);
} else {
  process.stderr.write(`${folder} has no ${own}. Nothing was removed.\n`);
  process.exitCode = 1;
}
