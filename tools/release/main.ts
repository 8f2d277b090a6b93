/** `npm run release`: writes what users install to `dist/release`. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipped, makeReadable, sourceDate, tarOf, writeSums } from './archive.ts';
import { writeDeb } from './deb.ts';
import { billOfMaterials, releaseNotes } from './documents.ts';
import { debianRoot, imageNode } from './fetched.ts';
import { imageOf } from './image.ts';
import { readManifest, stagePackage } from './package.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'dist/release');
const staged = join(root, 'dist/staged');
const seconds = sourceDate(root);
const { name, version } = readManifest(root);
const notes = releaseNotes(root, version);

runBuild('build.js');
mkdirSync(folder, { recursive: true });

const program = join(staged, 'program', 'package');
stagePackage(root, program);
writeNpmPackage('program', name);

const client = join(staged, 'client', 'package');
runBuild('build-client.js', client);
writeNpmPackage('client', `${name}-client`);

const deb = `mesh-na_${version}_amd64.deb`;
writeDeb(root, program, join(staged, 'debian'), join(folder, deb));
report(deb);

const debian = debianRoot(root, 'image');
const parts = { debian, node: imageNode(root), program };
write(`mesh-na-${version}-image.tar`, imageOf(parts, join(staged, 'image'), seconds));

cpSync(join(program, 'man/mesh-na.1'), join(folder, 'mesh-na.1'));
writeFileSync(join(folder, 'sbom.cdx.json'), billOfMaterials(root, name, seconds));
writeFileSync(join(folder, 'NOTES.txt'), notes);
writeSums(folder);
rmSync(staged, { recursive: true });

function runBuild(script: string, ...args: readonly string[]): void {
  const path = join(root, 'src/build', script);
  execFileSync(process.execPath, [path, ...args], { cwd: root, stdio: 'inherit' });
}

function writeNpmPackage(from: string, packed: string): void {
  makeReadable(join(staged, from));
  const bytes = gzipped(tarOf(join(staged, from), ['package'], seconds));
  write(`${packed}-${version}.tgz`, bytes);
}

function write(file: string, bytes: Buffer): void {
  writeFileSync(join(folder, file), bytes);
  report(file);
}

function report(file: string): void {
  const { size } = statSync(join(folder, file));
  process.stdout.write(`${(size / 1e6).toFixed(1).padStart(7)} MB  ${file}\n`);
}
