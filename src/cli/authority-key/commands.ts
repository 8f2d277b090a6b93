/**
 * `mesh-na authority-key`: replaces the key of the authority in the same network. `stage`, `cancel`, `activate`,
 * `roll-back` and `finish` are the steps of a succession.
 */

import type { Command } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { instantOf } from '../../protocol/records/record.ts';
import {
  readSignedSuccession,
  readSuccessionRequest,
} from '../../protocol/records/succession-request.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { routeCommand } from '../connection/route-command.ts';
import { define } from '../kernel/command.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { asJson, printResult } from '../kernel/output.ts';
import { addPrepareCommand } from './prepare.ts';
import { addSignCommand } from './root-key.ts';
import { addStatusCommand } from './status.ts';

export function addAuthorityKeyCommands(authorityKey: Command): void {
  addPrepareCommand(authorityKey);
  addSignCommand(authorityKey);
  addStepCommands(authorityKey);
  addStatusCommand(authorityKey);
}

function addStepCommands(authorityKey: Command): void {
  define(authorityKey, 'stage', {
    about: 'publish a signed succession, which takes effect at its time (privileged)',
    asks: OPERATOR,
    args: [['<file>', 'succession from authority-key sign']],
    examples: ['mesh-na authority-key stage succession.json'],
    run: (options, [file = '']) => runStage(file, options),
  });
  routeCommand(authorityKey, 'cancel', 'cancelSuccession', {
    about: 'take the staged succession back (privileged)',
    examples: ['mesh-na authority-key cancel'],
    text: ({ public_key }) => [`The key ${public_key} is not staged any more.`],
  });
  routeCommand(authorityKey, 'activate', 'activateSuccession', {
    about: 'let the staged key sign now, if its time has come (privileged)',
    examples: ['mesh-na authority-key activate'],
    text: ({ public_key, kind, overlap_until }) => [
      `The key ${public_key} signs${kind === 'planned' ? `; the previous one signs as well until ${overlap_until}` : ''}.`,
    ],
  });
  routeCommand(authorityKey, 'roll-back', 'rollBackAuthorityKey', {
    about: 'return to the key before, within the overlap (privileged)',
    examples: ['mesh-na authority-key roll-back'],
    text: ({ public_key, overlap_until }) => [
      `The key ${public_key} is current again; the other one signs as well until ${overlap_until}.`,
    ],
  });
  routeCommand(authorityKey, 'finish', 'finishSuccession', {
    about: 'end the overlap now: the previous key signs no more (privileged)',
    values: {
      despite: [
        '--despite <number>',
        'exact number of nodes that have not followed, to finish all the same',
      ],
    },
    examples: ['mesh-na authority-key finish', 'mesh-na authority-key finish --despite 3'],
    text: ({ public_key }) => [`The key ${public_key} signs no more.`],
  });
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
  printResult(options, asJson(staged), [
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
