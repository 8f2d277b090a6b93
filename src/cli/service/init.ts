import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { FIRST_OPERATORS } from '../connection/profiles.ts';
import { DATA_DIR, define, option } from '../kernel/command.ts';
import { onLocalFiles } from '../kernel/errors.ts';
import { printResult } from '../kernel/output.ts';
import type { InitSummary } from './init-network.ts';

const DEFAULT_VERSION = 'v0.1';

export function addInitCommand(program: Command): void {
  define(program, 'init', {
    about: 'create the keys, genesis and configuration of a new network; overwrites nothing',
    options: [
      DATA_DIR,
      option('--network-name <name>', 'name of the network, which is its sovereign id', {
        fallback: 'local-mesh',
      }),
      option('--network-version <version>', 'version of the network', {
        fallback: DEFAULT_VERSION as string,
      }),
    ],
    examples: ['mesh-na init', 'mesh-na init --data-dir /var/lib/mesh --network-name alpha'],
    async run({ json = false, dataDir, networkName, networkVersion }) {
      const summary = await makeNetwork({ dataDir, networkName, networkVersion });
      printResult({ json }, summary, summaryText(summary, dataDir));
    },
  });
}

interface NewNetwork {
  readonly dataDir: string;
  readonly networkName: string;
  readonly networkVersion?: string;
}

/** Creates a network, with defaults for missing options. */
export async function makeNetwork(network: NewNetwork): Promise<InitSummary> {
  // Loaded on demand, so that other commands start without native code.
  const { initNetwork } = await import('./init-network.ts');
  return onLocalFiles(() =>
    initNetwork({
      networkVersion: DEFAULT_VERSION,
      ...network,
      now: systemRuntime.now(),
      randomSeed: () => systemRuntime.randomBytes(32),
    }),
  );
}

export function summaryText(summary: InitSummary, dataDir: string): string[] {
  const [privileged] = FIRST_OPERATORS;
  return [
    `Network "${summary.network_name}" created.`,
    '',
    `  genesis        ${summary.genesis_file}`,
    `  root key       ${summary.root_public_key}`,
    `  authority key  ${summary.na_public_key}`,
    ...summary.operators.map(({ key_id, key_file }) => `  ${key_id.padEnd(14)} ${key_file}`),
    '',
    'Next:',
    `  mesh-na serve --data-dir ${dataDir}            start the authority`,
    `  mesh-na invite create --data-dir ${dataDir}    invite a node, signed by ${privileged.key_id}`,
    '  Move keys/root.key offline: the running authority never needs it.',
  ];
}
