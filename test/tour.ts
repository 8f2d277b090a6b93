/**
 * `npm run tour heartbeat`: shows the files and functions that one request passes through, as recorded by V8
 * while the real server answers it. `npm run tour` alone lists the requests.
 */
import { Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { PROJECT_PATH } from './support/project.ts';
import {
  joinedNode,
  operatorRequest,
  outcome,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';

/** Each is prepared and sent twice, because the first time fills caches. */
const REQUESTS: Readonly<Record<string, (na: TestAuthority) => Promise<SignedRequest>>> = {
  async heartbeat(na) {
    const { key, certId } = await joinedNode(na);
    return signedByNode(na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
  },
  async revocation(na) {
    const { certId } = await joinedNode(na);
    return operatorRequest(na, '/admin/revoke', { cert_id: certId });
  },
  async crl() {
    return { method: 'GET', path: '/crl', init: { headers: {} } };
  },
};

const [name = ''] = process.argv.slice(2);
const prepare = REQUESTS[name];
if (prepare === undefined) {
  process.stderr.write(`Usage: npm run tour ${Object.keys(REQUESTS).join(' | ')}\n`);
  process.exitCode = 2;
} else {
  await using na = await startTestAuthority();
  await sendSigned(na, await prepare(na));
  const request = await prepare(na);
  const crossed = await functionsCrossed(async () => {
    const received = await sendSigned(na, request);
    if (received.status !== 200) throw new Error(`The answer was ${outcome(received)}`);
  });
  for (const [file, functions] of crossed) {
    process.stdout.write(`${file}\n    ${functions.join(', ')}\n`);
  }
  const count = [...crossed.values()].flat().length;
  process.stdout.write(`\n${crossed.size} files, ${count} functions\n`);
}

/** Names of the functions that ran, by file; a function without a name counts as part of the one around it. */
async function functionsCrossed(
  run: () => Promise<void>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await session.post('Profiler.takePreciseCoverage');
  await run();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  const crossed = new Map<string, string[]>();
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue;
    const file = relative(PROJECT_PATH, fileURLToPath(url));
    if (!/^(?:src|machines)\//.test(file)) continue;
    const ran = functions.filter(({ ranges }) => ranges.some(({ count }) => count > 0));
    const names = ran.map(({ functionName }) => functionName).filter((each) => each !== '');
    if (ran.length > 0) crossed.set(file, [...new Set(names)]);
  }
  return new Map([...crossed].sort());
}
