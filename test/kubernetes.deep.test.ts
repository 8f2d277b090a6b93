/** The manifests of docs/deploy, checked against the published Kubernetes schemas and the image that they run. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildProgram } from '../src/cli/program.ts';
import { OPTIONS, type OptionEntry } from '../src/server/config/options.ts';
import { packagesOf } from '../tools/release/fetched.ts';
import { PROJECT_PATH } from './support/project.ts';

const modules = packagesOf(PROJECT_PATH, 'test/kubernetes');
const { parseAllDocuments } = createRequire(join(modules, 'index.js'))('yaml');

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  // biome-ignore lint/suspicious/noExplicitAny: its schema checks it.
  readonly spec: any;
}

function manifestsIn(name: string): Manifest[] {
  const text = readFileSync(join(PROJECT_PATH, 'docs/deploy', name), 'utf8');
  return parseAllDocuments(text).map((document: { toJS(): Manifest }) => document.toJS());
}

function workloadOf(manifests: readonly Manifest[]): Manifest {
  const workload = manifests.find(({ spec }) => spec.template !== undefined);
  assert.ok(workload !== undefined);
  return workload;
}

async function assertValid(manifest: Manifest): Promise<void> {
  const path = join(modules, 'kubernetes-models', manifest.apiVersion, `${manifest.kind}.js`);
  const { [manifest.kind]: Model } = await import(pathToFileURL(path).href);
  new Model(manifest).validate();
}

for (const name of ['kubernetes.yml', 'kubernetes-postgresql.yml', 'kubernetes-init.yml']) {
  suite(name, () => {
    const manifests = manifestsIn(name);
    const workload = workloadOf(manifests);
    const pod = workload.spec.template.spec;
    const [container] = pod.containers;

    test('every manifest is valid, and would not be with a value of another type', async () => {
      for (const manifest of manifests) await assertValid(manifest);
      const template = { spec: { ...pod, terminationGracePeriodSeconds: 'many' } };
      await assert.rejects(assertValid({ ...workload, spec: { ...workload.spec, template } }));
    });

    test('it uses only options and variables that the program has', () => {
      const [run, ...args] = container.args;
      const known = buildProgram()
        .commands.find((command) => command.name() === run)
        ?.options.map(({ long }) => long);
      const given = args.flatMap((arg: string) => /^--[^=]+/.exec(arg) ?? []);
      assert.ok(known !== undefined, run);
      for (const option of given) assert.ok(known.includes(option), option);
      const variables = Object.values<OptionEntry>(OPTIONS).map(({ variable }) => variable);
      for (const { name } of container.env) {
        assert.ok(name === 'POD_IP' || variables.includes(name), name);
      }
    });

    test('it runs as the user of the image, without privileges, and writes only to its volumes', () => {
      const { runAsUser, runAsNonRoot } = pod.securityContext;
      assert.deepEqual([runAsUser, runAsNonRoot], [10_001, true]);
      const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } =
        container.securityContext;
      assert.deepEqual(
        [readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities.drop],
        [true, false, ['ALL']],
      );
      const written = new Set(
        container.volumeMounts.map((each: { mountPath: string }) => each.mountPath),
      );
      assert.ok(written.has('/data'));
      // The link has its sockets in a folder for temporary files.
      const isLinked = container.env.some((each: { name: string }) => each.name === 'MESH_LINK');
      assert.equal(written.has('/tmp'), isLinked);
    });

    if (workload.kind === 'Job') return;

    test('its probes use routes that answer without a proof', () => {
      const asked = ['startupProbe', 'livenessProbe', 'readinessProbe'].map(
        (probe) => container[probe].httpGet.path,
      );
      assert.deepEqual(asked, ['/healthz', '/healthz', '/readyz']);
    });

    test('a pod that finds its volume empty creates no other network', () => {
      assert.equal(container.args[0], 'serve');
      assert.ok(!container.args.includes('--create'));
    });
  });
}

test('the job creates the network in the folder and volume that the one instance serves', () => {
  const { metadata, spec } = workloadOf(manifestsIn('kubernetes.yml'));
  const init = manifestsIn('kubernetes-init.yml');
  const pod = workloadOf(init).spec.template.spec;
  const claim = init.find(({ kind }) => kind === 'PersistentVolumeClaim');
  const [data] = spec.volumeClaimTemplates;
  // The name that Kubernetes gives to the claim of its first pod.
  assert.equal(claim?.metadata.name, `${data.metadata.name}-${metadata.name}-0`);
  assert.deepEqual(claim.spec, data.spec);
  assert.equal(pod.volumes[0].persistentVolumeClaim.claimName, claim.metadata.name);
  const [one] = spec.template.spec.containers;
  const [once] = pod.containers;
  assert.deepEqual([once.image, once.volumeMounts[0]], [one.image, one.volumeMounts[0]]);
  assert.deepEqual(once.env[0], one.env[0]);
});
