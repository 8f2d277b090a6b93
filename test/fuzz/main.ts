/**
 * `npx tsx test/fuzz/main.ts --requests N --seed S`: mutated requests against a server in a separate process. Prints
 * the answers by status and how the server's memory changed; exits with 1 if anything was wrong.
 */
import { randomInt } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { NO_LIMITS, startChildServer } from '../support/child-server.ts';
import { makeNetworkFolder } from '../support/folders.ts';
import { fuzz } from './fuzz.ts';
import { randomFrom } from './random.ts';

const { values } = parseArgs({
  options: { requests: { type: 'string' }, seed: { type: 'string' }, threads: { type: 'string' } },
});
const requests = Number(values.requests ?? 25_000);
const seed = Number(values.seed ?? randomInt(2 ** 31));
const ROUNDS = 5;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const { folder } = makeNetworkFolder();
const environment = {
  ...NO_LIMITS,
  MESH_RATE_LIMIT_VERIFY: 'off',
  MESH_THREADS: values.threads ?? '1',
};
const server = await startChildServer(folder, { environment });
print(`seed ${seed}, ${requests} requests`);
const random = randomFrom(seed);
const problems: string[] = [];
const totals = new Map<number, number>();
for (let round = 0; round < ROUNDS; round += 1) {
  const report = await fuzz(server.na, random, Math.ceil(requests / ROUNDS));
  problems.push(...report.problems);
  for (const [status, count] of report.statuses) {
    totals.set(status, (totals.get(status) ?? 0) + count);
  }
  print(`${Math.round(((round + 1) * 100) / ROUNDS)} %: resident ${residentMegabytes()} MB`);
}
print(JSON.stringify(Object.fromEntries([...totals].sort(([a], [b]) => a - b))));
for (const problem of problems) print(problem);
print(`${problems.length} problems`);
const { code } = await server.end('SIGTERM');
rmSync(folder, { recursive: true, force: true });
process.exitCode = problems.length === 0 && code === 0 ? 0 : 1;

function residentMegabytes(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
