/** The cost of commands that contact no server, compared to Node.js with an empty script. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { scratchFolder } from '../test/support/scratch.ts';
import type { Settings } from './contest.ts';
import { median, type Report } from './report.ts';
import { ROOT } from './servers.ts';

const PROGRAM = 'src/build/start.js';
/** Arguments of the commands, of which capitals stand for a new folder; the first is Node.js alone. */
const COMMANDS: readonly (readonly string[])[] = [
  ['--eval', ''],
  [PROGRAM, '--version'],
  [PROGRAM, 'completion', 'bash'],
  [PROGRAM, 'data-usage', 'sign', '--help'],
  [PROGRAM, 'node', 'status', '--offline', '--node-dir', 'NODE'],
  [PROGRAM, 'init', '--data-dir', 'NETWORK', '--network-name', 'bench'],
];
/** `user system elapsed`, in seconds. */
const TIMED = 'TIMEFORMAT="%U %S %R"; { time "$@" > /dev/null 2>&1; } 2>&1; exit 0';

interface Cost {
  readonly cpuMs: number;
  readonly elapsedMs: number;
}

export async function benchStarts({ rounds, progress }: Settings): Promise<Report> {
  const costs = COMMANDS.map((): Cost[] => []);
  for (let round = 0; round <= rounds; round += 1) {
    progress(`starts: round ${round} of ${rounds}`);
    for (const [index, command] of COMMANDS.entries()) {
      const cost = costOf(command);
      // The first start reads files that are cached later.
      if (round > 0) costs[index]?.push(cost);
    }
  }
  return {
    benchmark: 'starts',
    about: `${rounds} starts of each command in turn`,
    lines: [],
    comparisons: [],
    notes: COMMANDS.map((command, index) => {
      const name = index === 0 ? 'Node.js alone' : `mesh-na ${command.slice(1, 3).join(' ')}`;
      const of = (part: keyof Cost) => median((costs[index] ?? []).map((cost) => cost[part]));
      return `${name}: ${of('cpuMs').toFixed(0)} ms of CPU, ${of('elapsedMs').toFixed(0)} ms elapsed`;
    }),
  };
}

function costOf(command: readonly string[]): Cost {
  const scratch = scratchFolder('mesh-na-starts-');
  const placed = command.map((part) => (/^[A-Z]+$/.test(part) ? join(scratch.path, part) : part));
  const args = ['-c', TIMED, 'bash', process.execPath, ...placed];
  const { stdout } = spawnSync('bash', args, { cwd: ROOT, encoding: 'utf8' });
  scratch.remove();
  const [user = 0, system = 0, elapsed = 0] = stdout.trim().split(' ').map(Number);
  return { cpuMs: 1000 * (user + system), elapsedMs: 1000 * elapsed };
}
