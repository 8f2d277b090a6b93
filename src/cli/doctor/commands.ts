/** `mesh-na doctor`: diagnoses an authority, on its machine and from a client's point of view. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import { systemRuntime } from '../../base/runtime.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { FILES } from '../../server/config/data-folder.ts';
import { variablesOf } from '../command-reference.ts';
import { CA_OPTION, certificatesIn, httpFetch } from '../connection/server.ts';
import { DATA_DIR, define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { serverUrl } from '../kernel/options.ts';
import {
  type Line,
  type OutputOptions,
  painted,
  printable,
  printResult,
  type Style,
  wrapped,
} from '../kernel/output.ts';
import { whileWaiting } from '../kernel/terminal.ts';
import { SIGNER, STATE_IN_DATABASE } from '../state/backup.ts';
import { environment, storeOption } from '../state/place.ts';
import { packageVersion } from '../version.ts';
import { CHECKS, type CheckName, type Finding, OUTCOMES, type Outcome } from './finding.ts';

const DOCTOR = [
  DATA_DIR,
  option('--config <file>', 'configuration file, as for serve'),
  storeOption(STATE_IN_DATABASE),
  SIGNER,
  option('--head-file <file>', 'head file of the state, as for serve (repeatable)', { many: true }),
  option('--tls-cert <file>', 'TLS certificate, as for serve'),
  option('--tls-key <file>', 'private key of the TLS certificate'),
  option('--backup-to <folder>', 'folder of backups', { env: 'MESH_BACKUP_TO' }),
  option('--url <url>', 'also check the authority at this address from the outside', {
    env: 'MESH_URL',
    parse: serverUrl,
  }),
  CA_OPTION,
  option('--deep', 'read every row of the state and of the newest backup'),
  option('--all', 'also show each check that found nothing wrong'),
] as const;

type DoctorOptions = OptionsIn<typeof DOCTOR> & OutputOptions;

export function addDoctorCommand(program: Command): void {
  define(program, 'doctor', {
    about: 'diagnose an authority: what is wrong, why it matters and what to do',
    options: DOCTOR,
    examples: [
      'mesh-na doctor --data-dir /var/lib/mesh --backup-to /backup',
      'mesh-na doctor --url https://na.example',
    ],
    run: (options, _, command) => run(options, command),
  });
}

async function run(options: DoctorOptions, command: Command): Promise<void> {
  const local = isLocal(options, command) ? await localReport(options, command) : null;
  const { url } = options;
  const remote =
    url === undefined
      ? []
      : await whileWaiting('Asking the authority', () =>
          remoteFindings({ ...options, url }, local?.genesis),
        );
  const findings = [...(local?.findings ?? []), ...remote];
  printResult(options, asResult(findings), linesOf(findings, options));
  if (countOf(findings, 'wrong') > 0) throw failure(EXIT.refused, 'something_is_wrong', '');
}

/** With only an address the check is remote, unless the data folder belongs to an authority. */
function isLocal({ url, dataDir }: DoctorOptions, command: Command): boolean {
  const isNamed = command.getOptionValueSource('dataDir') !== 'default';
  return url === undefined || isNamed || mayHold(dataDir);
}

/** Also true for a folder that this user cannot read, so that the doctor reports it. */
function mayHold(dataDir: string): boolean {
  try {
    return statSync(join(dataDir, FILES.genesis)).isFile();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    return code !== 'ENOENT' && code !== 'ENOTDIR';
  }
}

/** Loads the local checks on demand, because only they need native code. */
async function localReport(options: DoctorOptions, command: Command) {
  const { checkLocal } = await import('./local.ts');
  const { thisMachine } = await import('./machine.ts');
  const { dataDir, deep = false } = options;
  // The configuration file may name another data folder.
  const isNamed = command.getOptionValueSource('dataDir') !== 'default';
  const flags = { ...options, dataDir: isNamed ? dataDir : undefined };
  return whileWaiting('Checking the state', () =>
    checkLocal({
      flags,
      environment: environment(),
      otherVariables: variablesOf(command.parent ?? command),
      machine: thisMachine(systemRuntime.now),
      deep,
    }),
  );
}

/** What this machine sees of an authority from the outside. */
export async function remoteFindings(
  { url, ca }: Required<Pick<DoctorOptions, 'url'>> & Pick<DoctorOptions, 'ca'>,
  genesis: GenesisBlock | null = null,
): Promise<Finding[]> {
  const { checkRemote } = await import('./remote.ts');
  return checkRemote({
    url,
    fetch: httpFetch(ca),
    ca: ca === undefined ? null : certificatesIn(ca),
    genesis,
    version: packageVersion(),
    now: systemRuntime.now,
  });
}

function countOf(findings: readonly Finding[], wanted: Outcome): number {
  return findings.filter(({ outcome }) => outcome === wanted).length;
}

function asResult(findings: readonly Finding[]) {
  const counts = OUTCOMES.map((outcome) => [outcome, countOf(findings, outcome)]);
  const checks = findings.map(({ check, outcome, found, cure }) => ({
    check,
    outcome,
    found,
    why: CHECKS[check],
    cure,
  }));
  return { ...(Object.fromEntries(counts) as Record<Outcome, number>), checks };
}

const STYLES: { readonly [Name in Outcome]: Style } = {
  ok: 'green',
  warning: 'yellow',
  wrong: 'red',
  unknown: 'bold',
};
/** What needs attention comes first, the worst of it first. */
const ORDER = ['wrong', 'warning', 'unknown', 'ok'] as const satisfies readonly Outcome[];
const WIDTHS = {
  outcome: Math.max(...OUTCOMES.map(({ length }) => length)),
  check: Math.max(...Object.keys(CHECKS).map(({ length }) => length)),
};

function linesOf(findings: readonly Finding[], { all = false }: DoctorOptions): Line[] {
  const explained = new Set<CheckName>();
  const shown = ORDER.filter((outcome) => all || outcome !== 'ok');
  const lines = shown
    .flatMap((wanted) => findings.filter(({ outcome }) => outcome === wanted))
    .map((finding) => lineOf(finding, explained));
  const fine = findings.filter(({ outcome }) => outcome === 'ok').map(({ check }) => check);
  const folded = `${[...new Set(fine)].join(', ')} (--all shows what was found)`;
  if (!all && fine.length > 0) lines.push(labeled('ok', folded));
  return [...lines, summaryOf(findings)];
}

/** The finding and, unless it is ok, why it matters, which is said once for each check, and what to do. */
function lineOf({ check, outcome, found, cure }: Finding, explained: Set<CheckName>): Line {
  const name = check.padEnd(WIDTHS.check);
  if (cure === null) return labeled(outcome, `${name}  ${found}`);
  const why = explained.has(check) ? '' : ` ${CHECKS[check]}.`;
  explained.add(check);
  return labeled(outcome, `${name}  ${found}.${why} ${cure}.`);
}

function labeled(outcome: Outcome, text: string): Line {
  const label = outcome.padEnd(WIDTHS.outcome + 2);
  const [first = '', ...others] = wrapped(printable(label + text), process.stdout, label.length);
  const painting = painted(STYLES[outcome], outcome, process.stdout);
  return { styled: [painting + first.slice(outcome.length), ...others].join('\n') };
}

function summaryOf(findings: readonly Finding[]): string {
  const [wrong, warnings] = [countOf(findings, 'wrong'), countOf(findings, 'warning')];
  const unknown = countOf(findings, 'unknown');
  return `${counted(findings.length, 'check')}: ${wrong} wrong, ${counted(warnings, 'warning')}, ${unknown} unknown.`;
}
