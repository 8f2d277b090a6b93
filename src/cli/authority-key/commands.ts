/**
 * `mesh-na authority-key`: replaces the key of the authority in the same network. `stage`, `cancel`, `activate`,
 * `roll-back` and `finish` are the steps of a succession.
 */
import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import type { AuthorityKeyStep } from '../../protocol/answers/operators.ts';
import { instantOf } from '../../protocol/records/record.ts';
import {
  readSignedSuccession,
  readSuccessionRequest,
} from '../../protocol/records/succession-request.ts';
import {
  addOperatorOptions,
  type OperatorOptions,
  operatorClient,
} from '../connection/operator.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { wholeNumber } from '../kernel/options.ts';
import { asJson, printResult } from '../kernel/output.ts';
import { addPrepareCommand } from './prepare.ts';
import { addSignCommand } from './sign.ts';
import { addStatusCommand } from './status.ts';

export function addAuthorityKeyCommands(program: Command): void {
  const authorityKey = program
    .command('authority-key')
    .description('replace the key of the authority, step by step');
  addPrepareCommand(authorityKey);
  addSignCommand(authorityKey);
  addStepCommands(authorityKey);
  addStatusCommand(authorityKey);
}

function addStepCommands(authorityKey: Command): void {
  const stage = authorityKey
    .command('stage')
    .description('publish a signed succession, which takes effect at its time (privileged)')
    .argument('<file>', 'succession from authority-key sign')
    .action(runStage);
  addOperatorOptions(stage, ['mesh-na authority-key stage succession.json']);

  const cancel = authorityKey
    .command('cancel')
    .description('take the staged succession back (privileged)')
    .action(runCancel);
  addOperatorOptions(cancel, ['mesh-na authority-key cancel']);

  const activate = authorityKey
    .command('activate')
    .description('let the staged key sign now, if its time has come (privileged)')
    .action(runActivate);
  addOperatorOptions(activate, ['mesh-na authority-key activate']);

  const rollBack = authorityKey
    .command('roll-back')
    .description('return to the key before, within the overlap (privileged)')
    .action(runRollBack);
  addOperatorOptions(rollBack, ['mesh-na authority-key roll-back']);

  const finish = authorityKey
    .command('finish')
    .description('end the overlap now: the previous key signs no more (privileged)')
    .option(
      '--despite <number>',
      'exact number of nodes that have not followed, to finish all the same',
      wholeNumber(Number.MAX_SAFE_INTEGER),
    )
    .action(runFinish);
  addOperatorOptions(finish, [
    'mesh-na authority-key finish',
    'mesh-na authority-key finish --despite 3',
  ]);
}

async function runStage(file: string, options: OperatorOptions): Promise<void> {
  const given = await readJsonFile(file);
  if (readSuccessionRequest(given) !== null) {
    throw notHolding(file, 'a succession, but a request: sign it first with authority-key sign');
  }
  const succession = readSignedSuccession(given);
  if (succession === null) {
    throw notHolding(file, 'a succession: name the file that authority-key sign wrote');
  }
  const staged = await operatorClient(options).stageSuccession(succession);
  const { public_key, activates_at, overlap_until, kind, key_held } = staged;
  const isDue = instantOf(activates_at) <= systemRuntime.now();
  show(options, staged, [
    isDue
      ? `The key ${public_key} is staged: it takes over now, because ${activates_at} has passed.`
      : `The key ${public_key} is staged: it takes over at ${activates_at}.`,
    ...(kind === 'planned' ? [`Both keys sign until ${overlap_until}.`] : []),
    ...(key_held
      ? []
      : [
          'The authority does not hold the private key yet, and the key cannot take over without it: put it in place.',
        ]),
  ]);
}

async function runCancel(options: OperatorOptions): Promise<void> {
  const canceled = await operatorClient(options).cancelSuccession();
  show(options, canceled, [`The key ${canceled.public_key} is not staged any more.`]);
}

async function runActivate(options: OperatorOptions): Promise<void> {
  const activated = await operatorClient(options).activateSuccession();
  const { public_key, kind, overlap_until } = activated;
  const until = kind === 'planned' ? `; the previous one signs as well until ${overlap_until}` : '';
  show(options, activated, [`The key ${public_key} signs${until}.`]);
}

async function runRollBack(options: OperatorOptions): Promise<void> {
  const returned = await operatorClient(options).rollBackAuthorityKey();
  show(options, returned, [
    `The key ${returned.public_key} is current again; the other one signs as well until ${returned.overlap_until}.`,
  ]);
}

async function runFinish(options: OperatorOptions & { readonly despite?: number }): Promise<void> {
  const finished = await operatorClient(options).finishSuccession({ despite: options.despite });
  show(options, finished, [`The key ${finished.public_key} signs no more.`]);
}

function show(options: OperatorOptions, step: AuthorityKeyStep, lines: readonly string[]): void {
  printResult(options, asJson(step), [...lines]);
}
