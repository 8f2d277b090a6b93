/** The transfer size of pages: the bytes of each, plain and compressed, and those of a change sent to its viewers. */
import { rmSync } from 'node:fs';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { LIVE_TOPICS } from '../src/protocol/api/pages.ts';
import { startTestAuthority, type TestAuthority } from '../test/support/authority.ts';
import { makeNetworkFolder } from '../test/support/folders.ts';
import { pageAddresses } from '../test/support/page-addresses.ts';
import {
  fillNetwork,
  networkNameOf,
  SAMPLE_NETWORKS,
  type SampleNetwork,
} from '../test/support/sample-networks.ts';
import { issued, recognize } from '../test/support/trust.ts';
import type { Settings } from './contest.ts';
import { openViewer } from './live-viewer.ts';
import type { Load } from './load.ts';
import type { Report, Size } from './report.ts';

export async function benchPages(_load: Load, { progress }: Settings): Promise<Report> {
  const sizes: Size[] = [];
  for (const sample of SAMPLE_NETWORKS) {
    progress(`${sample.name}: ${sample.about}`);
    sizes.push(...(await sizesIn(sample)));
  }
  return {
    benchmark: 'pages',
    about: 'bytes of each page, plain and with gzip, and of the message about a new treaty',
    lines: [],
    comparisons: [],
    notes: SAMPLE_NETWORKS.map(({ name, about }) => `${name}: ${about}`),
    sizes,
  };
}

async function sizesIn(sample: SampleNetwork): Promise<Size[]> {
  const { folder: dataDir } = makeNetworkFolder(networkNameOf(sample));
  try {
    const commands = commandReference(buildProgram());
    await using na = await startTestAuthority({ dataDir, commands });
    const sizes: Size[] = [];
    for (const { name, path } of pageAddresses(await fillNetwork(na, sample))) {
      const [plain, gzip] = [await sizeOf(na, path, 'identity'), await sizeOf(na, path, 'gzip')];
      sizes.push({ network: sample.name, what: name, plain, gzip });
    }
    return [...sizes, ...(await changeSizes(na, sample.name))];
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function sizeOf({ url }: TestAuthority, path: string, encoding: string): Promise<number> {
  const headers = { Accept: 'text/html', 'Accept-Encoding': encoding };
  const response = await fetch(url + path, { headers });
  await response.arrayBuffer();
  return Number(response.headers.get('content-length'));
}

/** The sizes of the messages about a new treaty to a viewer of each live page; live messages are not compressed. */
async function changeSizes(na: TestAuthority, network: string): Promise<Size[]> {
  const viewers = await Promise.all(LIVE_TOPICS.map((topic) => openViewer(na.url, topic)));
  const messages = viewers.map(({ nextMessage }) => nextMessage());
  await issued(recognize(na, { subject_sovereign_id: 'a-new-neighbor' }));
  const sizes = await Promise.all(
    viewers.map(async ({ topic, close }, index) => {
      const plain = (await messages[index])?.byteLength ?? 0;
      close();
      return { network, what: `live ${topic}, a change`, plain, gzip: null };
    }),
  );
  return sizes;
}
