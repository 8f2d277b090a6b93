/** `mesh-na store move`: moves the state between a data folder and a database while it is served. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { systemRuntime } from '../base/runtime.ts';
import type { Moved, MoveStep } from '../maintenance/move/move.ts';
import { FILES } from '../server/config/data-folder.ts';
import { countsText, rowCounts } from './backup.ts';
import { assertConfirmed } from './confirm.ts';
import { placeOf } from './move-places.ts';
import { addLocalOptions, dataDirOption } from './options.ts';
import { type OutputOptions, printResult } from './output.ts';
import { printable } from './printable.ts';
import { onState } from './store-address.ts';

interface MoveOptions extends OutputOptions {
  readonly from: string;
  readonly to: string;
  readonly dataDir: string;
  readonly resume?: boolean;
  readonly abandon?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export function addMoveCommand(store: Command): void {
  const move = store
    .command('move')
    .description('move the state between a data folder and a database while it is served')
    .requiredOption('--from <place>', 'place of the state: lmdb:<folder>, or the URL of a database')
    .requiredOption('--to <place>', 'new place, in the same form, without a state')
    .addOption(dataDirOption())
    .addOption(
      new Option('--resume', 'continue an interrupted move').conflicts(['abandon', 'dryRun']),
    )
    .addOption(
      new Option('--abandon', 'remove what an interrupted move left in the new place').conflicts(
        'dryRun',
      ),
    )
    .option('--dry-run', 'check the state and show what would be moved')
    .option('--yes', 'move without asking; required when not on a terminal')
    .action(runMove);
  addLocalOptions(move, [
    'mesh-na store move --from lmdb:./mesh-data --to postgresql://mesh@db/mesh --dry-run',
    'mesh-na store move --from lmdb:./mesh-data --to postgresql://mesh@db/mesh',
    'mesh-na store move --from lmdb:./mesh-data --to postgresql://mesh@db/mesh --resume --yes',
  ]);
}

/** The full check is repeated while nobody serves the state if it takes no longer than this. */
const QUICK_CHECK_MS = 500;

async function runMove({ from, to, dataDir, yes = false, ...options }: MoveOptions): Promise<void> {
  const { resume = false, abandon = false, dryRun = false } = options;
  if (!dryRun && !abandon && !yes) {
    const shown = `The state moves from ${from} to ${to}. The authority that serves ${from} will be asked to stop, and the state there can never be opened again.`;
    await assertConfirmed([shown], CONFIRMATION);
  }
  const places = await onState(async () => ({
    source: await placeOf(from, dataDir),
    target: await placeOf(to, dataDir),
  }));
  if (abandon) {
    const { abandonMove } = await import('../maintenance/move/move.ts');
    await onState(() => abandonMove(places.source, places.target));
    printResult(options, { from, to, moved: false }, [`Removed the interrupted move from ${to}.`]);
    return;
  }
  const moved = await onState(async () => {
    const { verifySignature: verify } = await import('../base/crypto/ed25519.ts');
    const { checkMove, moveState } = await import('../maintenance/move/move.ts');
    if (dryRun) return checkMove(places.source, verify);
    return moveState({
      from: places.source,
      to: places.target,
      verify,
      runtime: systemRuntime,
      resumes: resume,
      quickCheckMs: QUICK_CHECK_MS,
      onStep: printStep,
    });
  });
  print(moved, { ...options, from, to, dataDir, dryRun });
}

const CONFIRMATION = {
  question: 'Move it?',
  otherwise:
    'The move stops the authority and closes the old place for good: add --yes, or use --dry-run to see what would be moved',
  declined: 'Nothing was moved',
};

function print(
  { facts: { revision }, tables, pause }: Moved,
  options: OutputOptions & Pick<MoveOptions, 'from' | 'to' | 'dryRun' | 'dataDir'>,
): void {
  const { from, to, dryRun = false } = options;
  const rows = countsText(rowCounts(tables));
  const lines = [`${dryRun ? 'To be moved' : 'Moved'}: revision ${revision}, rows: ${rows}`];
  if (!dryRun) lines.push('Every row arrived, and the old state can no longer be opened.');
  lines.push(...filesToBring(options));
  if (pause !== null) lines.push(`Nobody could serve the state for ${inSeconds(pause)}.`);
  const pauseMs = pause === null ? null : Math.round(pause);
  printResult(options, { from, to, moved: !dryRun, revision, tables, pause_ms: pauseMs }, lines);
}

/** Lists the files to copy separately, because a move transfers only the state. */
function filesToBring({ to, dataDir }: Pick<MoveOptions, 'to' | 'dataDir'>): string[] {
  const folder = /^lmdb:(.+)$/.exec(to)?.[1];
  const needed = [FILES.genesis, FILES.config, FILES.naKey];
  const missing = needed.filter((name) => folder === undefined || !existsSync(join(folder, name)));
  if (missing.length === 0) return [];
  const place = folder ?? 'the data folder of each instance elsewhere';
  return [
    `Serving it requires the same ${missing.join(', ')}: copy them from ${dataDir} to ${place}.`,
  ];
}

/** Shows progress; steps without changes are not printed. */
function printStep(step: MoveStep): void {
  const text = textOf(step);
  if (text !== null) process.stderr.write(`${printable(text)}\n`);
}

function textOf(step: MoveStep): string | null {
  switch (step.name) {
    case 'copied':
      return `Copied ${step.rows} rows in ${inSeconds(step.took)}`;
    case 'compared':
      return step.rows === 0 ? null : `Copied ${step.rows} differences in ${inSeconds(step.took)}`;
    case 'checked':
      return `Both places have the same state at revision ${step.revision}; the check took ${inSeconds(step.took)}`;
    case 'awaited':
      return `Waiting for ${step.instances} ${step.instances === 1 ? 'instance' : 'instances'} on the new place to read the state`;
    case 'asked': {
      const holder = step.holder ?? 'the process that serves the state';
      return step.isAsked
        ? `Asked ${holder} to stop and hand over`
        : `Ready to take over: stop ${holder} now`;
    }
    case 'handed-over':
      return `Handed over: nobody could serve the state for ${inSeconds(step.pause)}`;
  }
}

function inSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
