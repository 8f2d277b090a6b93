/** The image, as a tar of an OCI image layout, written without a daemon: Debian, Node.js and the program are its layers. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipped, makeReadable, sha256, tarOf } from './archive.ts';
import { installProgram } from './deb.ts';
import { jsonText, readManifest } from './package.ts';

const USER = 10_001;
const FILES = {
  'etc/passwd': `root:x:0:0:root:/:/sbin/nologin\nmesh-na:x:${USER}:${USER}::/data:/sbin/nologin\n`,
  'etc/group': `root:x:0:\nmesh-na:x:${USER}:\n`,
};
const NODE = ['/usr/bin/node', '--no-allocation-site-pretenuring'];

export interface ImageParts {
  /** The tar of a Debian root. */
  readonly debian: string;
  /** The folder of a package of Node.js. */
  readonly node: string;
  /** The folder of the program. */
  readonly program: string;
}

/** Writes the layout below an empty folder, and returns the bytes of its tar. */
export function imageOf({ debian, node, program }: ImageParts, folder: string, seconds: number) {
  const { name, version, description, license } = readManifest(program);
  const layout = join(folder, 'layout');
  const blob = (bytes: Buffer, mediaType: string) => {
    const digest = sha256(bytes);
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    writeFileSync(join(layout, 'blobs/sha256', digest), bytes);
    return {
      mediaType: `application/vnd.oci.image.${mediaType}`,
      digest: `sha256:${digest}`,
      size: bytes.length,
    };
  };
  const tars = [
    readFileSync(debian),
    layerOf(join(folder, 'node'), seconds, (at) => {
      mkdirSync(join(at, 'usr/bin'), { recursive: true });
      cpSync(join(node, 'bin/node'), join(at, 'usr/bin/node'));
      mkdirSync(join(at, 'usr/share/doc/nodejs'), { recursive: true });
      cpSync(join(node, 'LICENSE'), join(at, 'usr/share/doc/nodejs/copyright'));
    }),
    layerOf(join(folder, 'program'), seconds, (at) => {
      installProgram(program, at);
      for (const [path, text] of Object.entries(FILES)) {
        mkdirSync(dirname(join(at, path)), { recursive: true });
        writeFileSync(join(at, path), text);
      }
    }),
    dataLayer(join(folder, 'data'), seconds),
  ];
  const created = new Date(seconds * 1000).toISOString();
  const config = {
    created,
    architecture: 'amd64',
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      ExposedPorts: { '8443/tcp': {} },
      Env: ['PATH=/usr/bin', 'MESH_DATA_DIR=/data', 'HOST=0.0.0.0', 'MESH_LOG_FORMAT=json'],
      Entrypoint: ['/usr/bin/tini', '--', ...NODE, '/usr/lib/mesh-na/dist/src/main.js'],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      WorkingDir: '/data',
    },
    rootfs: { type: 'layers', diff_ids: tars.map((tar) => `sha256:${sha256(tar)}`) },
    history: ['Debian 13', 'Node.js', `${name} ${version}`, 'data'].map((comment) => ({
      created,
      comment,
    })),
  };
  const annotations = {
    'org.opencontainers.image.created': created,
    'org.opencontainers.image.title': name,
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': license,
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: blob(Buffer.from(jsonText(config)), 'config.v1+json'),
    layers: tars.map((tar) => blob(gzipped(tar), 'layer.v1.tar+gzip')),
    annotations,
  };
  const tagged = {
    ...blob(Buffer.from(jsonText(manifest)), 'manifest.v1+json'),
    platform: { architecture: 'amd64', os: 'linux' },
    annotations: { 'org.opencontainers.image.ref.name': version },
  };
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [tagged],
  };
  writeFileSync(join(layout, 'index.json'), jsonText(index));
  writeFileSync(join(layout, 'oci-layout'), jsonText({ imageLayoutVersion: '1.0.0' }));
  return tarOf(layout, ['blobs', 'index.json', 'oci-layout'], seconds);
}

function layerOf(folder: string, seconds: number, fill: (folder: string) => void): Buffer {
  mkdirSync(folder, { recursive: true });
  fill(folder);
  makeReadable(folder);
  return tarOf(folder, ['.'], seconds);
}

/** The user of the service alone may enter it, as it has private keys. */
function dataLayer(folder: string, seconds: number): Buffer {
  mkdirSync(join(folder, 'data'), { recursive: true, mode: 0o700 });
  return tarOf(folder, ['data'], seconds, USER);
}
