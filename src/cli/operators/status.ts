/** `mesh-na status`: one screen about an authority: the verdict, what to do, its nodes, what ends, and who changed what. */

import type { Command } from 'commander';
import { fromNow } from '../../base/duration.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { isChange } from '../../client/events.ts';
import { nodeNames } from '../../client/nodes.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { PublicClient } from '../../client/public-client.ts';
import { byRequest, createEntryNames } from '../../protocol/audit-sentence.ts';
import type { Dashboard, Lapsing } from '../../protocol/rows/dashboard.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { metricOf, publicClient } from '../connection/server.ts';
import { define, WIDE } from '../kernel/command.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { asJson, painted, printable, printResult, type Style, wrapped } from '../kernel/output.ts';
import type { TableOptions } from '../kernel/table.ts';
import { entryLines, entryOf, type Shown } from './events.ts';

const CHANGES = 5;
/** Among this many entries of the log, the newest changes are looked for. */
const ENTRIES_READ = 500;

export function addStatusCommand(program: Command): void {
  define(program, 'status', {
    about: 'show how an authority is: what to do, its nodes, and the last changes (standard)',
    asks: OPERATOR,
    options: [WIDE],
    notes: 'Exit code 4 if something needs action now.',
    examples: ['mesh-na status', 'mesh-na status --profile alpha --json'],
    run: runStatus,
  });
}

async function runStatus(options: OperatorOptions & TableOptions): Promise<void> {
  const [reader, operator] = [publicClient(options), operatorClient(options)];
  const dashboard = await reader.readDashboard();
  const [{ lapsing }, changes, verified, { verdictOf, FINDING_CURES }] = await Promise.all([
    operator.readHorizon(),
    lastChanges(reader, operator),
    metricOf(options, 'mesh_na_backup_verified_timestamp_seconds'),
    import('../../pages/dashboard/posture-section.ts'),
  ]);
  const { posture, fleet, sovereign } = dashboard;
  const findings = posture.findings.map((finding) => ({
    ...finding,
    since: finding.since ?? null,
    command: FINDING_CURES[finding.rule]?.[1] ?? null,
  }));
  const { word, tone } = verdictOf(posture);
  const result = {
    network_name: sovereign.id,
    url: options.url,
    profile: options.usedProfile ?? null,
    key_id: options.keyId,
    status: posture.status,
    findings,
    unknown: posture.unknown,
    nodes: fleet,
    backup_verified_at: verified ? new Date(verified * 1000).toISOString() : null,
    ends: lapsing,
    changes: changes
      .flat()
      .slice(-CHANGES)
      .reverse()
      .map(({ entry }) => asJson(entry)),
  };
  const from =
    options.usedProfile === undefined
      ? `data folder ${options.dataDir}`
      : `profile "${options.usedProfile}"`;
  printResult(options, result, [
    { styled: painted(STYLES[tone], word, process.stdout) },
    ...findings.flatMap(({ sentence, since, command }) => [
      ...prose('  ', since === null ? sentence : `${sentence} Since ${sinceText(since, options)}.`),
      // By itself and in one line, so that it can be copied.
      ...(command === null ? [] : [`    mesh-na ${command}`]),
    ]),
    ...posture.unknown.flatMap(({ sentence }) => prose('  ', sentence)),
    '',
    ...prose('network   ', `${sovereign.id} at ${options.url}, as ${options.keyId} (${from})`),
    ...prose('nodes     ', nodesText(fleet)),
    ...prose('backup    ', backupText(verified)),
    ...prose('ends      ', endsText(lapsing)),
    ...changes.toReversed().flatMap(([first, ...others], index) => {
      const before = index === 0 ? 'changes   ' : '          ';
      return entryLines([{ ...first, before }, ...others], options);
    }),
  ]);
  if (posture.status === 'action') throw failure(EXIT.refused, 'action_needed', '');
}

const STYLES = { ok: 'green', warn: 'yellow', danger: 'red' } as const satisfies Record<
  string,
  Style
>;

/** On a terminal, a time is how long ago it was, as in tables. */
function sinceText(since: string, { wide = false }: TableOptions): string {
  return process.stdout.isTTY && !wide ? ago(Date.parse(since)) : since;
}

function prose(label: string, text: string): string[] {
  return wrapped(printable(label + text), process.stdout, label.length);
}

function nodesText(fleet: Dashboard['fleet']): string {
  if (fleet === null) return 'not counted yet';
  const { expected, healthy, unwell, silent, lapsing, lapsed } = fleet;
  const known = (count: number | null) => count ?? 'not known yet';
  return `${expected}: healthy ${known(healthy)}, unwell ${unwell}, silent ${known(silent)}; certificates ending ${lapsing}, ended ${lapsed}`;
}

function backupText(verified: number | null): string {
  if (verified === null) return 'not known: /metrics is not visible from here';
  if (Number.isNaN(verified)) return 'none was verified by this instance since its start';
  return `verified ${ago(verified * 1000)}`;
}

/** Certificates of nodes are left out, because nodes renew by themselves. */
function endsText(lapsing: readonly Lapsing[]): string {
  const ends = lapsing
    .filter(({ kind }) => kind !== 'certificate')
    .toSorted((a, b) => Date.parse(a.soonest) - Date.parse(b.soonest))
    .map(({ kind, count, soonest }) => {
      return `${kind} ${ago(Date.parse(soonest))}${count === 1 ? '' : ` (first of ${count})`}`;
    });
  return ends.join(', ') || 'nothing that does not renew by itself';
}

function ago(instant: number): string {
  return fromNow(instant - systemRuntime.now());
}

/** The newest changes that operators made, in the order of the log, with those together that are one sentence. */
async function lastChanges(reader: PublicClient, operator: OperatorClient) {
  const { log_size } = await reader.readBulletin();
  const after = Math.max(0, log_size - ENTRIES_READ);
  const named = createEntryNames();
  const changes: Shown[] = [];
  for await (const event of operator.events({ follow: false, after })) {
    const change = named(entryOf(event));
    if (isChange(change.entry)) changes.push(change);
  }
  const last = byRequest(changes).slice(-CHANGES);
  await nodeNames(operator)(last.flat());
  return last;
}
