/** What goes with a release: its notes, and the list of everything that is in it. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from './archive.ts';
import { jsonText } from './package.ts';

/** The section of the change log about this version. */
export function releaseNotes(root: string, version: string): string {
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${version}\n`));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${version}`);
  return `# ${section.trimEnd()}\n`;
}

interface Bom {
  serialNumber: string;
  readonly metadata: { timestamp: string; readonly component: { name: string } };
  components: { readonly 'bom-ref': string }[];
  dependencies: { readonly ref: string; dependsOn: string[] }[];
}

interface Locked {
  readonly version?: string;
  readonly name?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
}

/** The software bill of materials in the form of CycloneDX: every npm package that is in the program or bundled with it. */
export function billOfMaterials(root: string, name: string, seconds: number): string {
  const args = ['sbom', '--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx'];
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  const bom: Bom = JSON.parse(execFileSync('npm', args, options));
  const absent = ofOtherPlatforms(root);
  bom.components = bom.components.filter((component) => !absent.has(component['bom-ref']));
  bom.dependencies = bom.dependencies.filter(({ ref }) => !absent.has(ref));
  for (const each of bom.dependencies) {
    each.dependsOn = each.dependsOn.filter((ref) => !absent.has(ref));
  }
  // npm takes the name of the folder, the time of day and a random number.
  bom.metadata.component.name = name;
  bom.metadata.timestamp = new Date(seconds * 1000).toISOString();
  const digest = sha256(jsonText(bom.components));
  const uuid = /^(.{8})(.{4})(.{3})(.{3})(.{12})/.exec(digest)?.slice(1) ?? [];
  bom.serialNumber = `urn:uuid:${uuid[0]}-${uuid[1]}-8${uuid[2]}-8${uuid[3]}-${uuid[4]}`;
  return jsonText(bom);
}

function ofOtherPlatforms(root: string): Set<string> {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const locked = Object.entries(lock.packages as Readonly<Record<string, Locked>>);
  const others = locked.filter(
    ([, { os = ['linux'], cpu = ['x64'] }]) => !os.includes('linux') || !cpu.includes('x64'),
  );
  return new Set(
    others.map(
      ([path, { name, version }]) => `${name ?? path.replace(/^.*node_modules\//, '')}@${version}`,
    ),
  );
}
