/** `mesh-na events`: shows the events of an authority from its audit log. */
import { type Command, InvalidArgumentError } from 'commander';
import { inWords } from '../../base/duration.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { EventChainError } from '../../client/event-chain.ts';
import {
  addOperatorOptions,
  type OperatorOptions,
  operatorClient,
} from '../connection/operator.ts';
import { publicClient } from '../connection/server.ts';
import { EXIT, failure } from '../kernel/errors.ts';
import { asJson, printNotice, printResult } from '../kernel/output.ts';
import type { TableOptions } from '../kernel/table.ts';
import { stopSignal } from '../service/stop-request.ts';
import { addEventFilters, type EventFilter, eventLine, isWanted } from './event-lines.ts';

interface EventsOptions extends OperatorOptions, EventFilter, TableOptions {
  readonly follow?: boolean;
  readonly after?: number;
}

export function addEventsCommand(program: Command): void {
  const events = program
    .command('events')
    .description('show past events, or new ones with --follow, verifying the audit log (standard)')
    .option('--follow', 'wait for new events, reconnecting as needed, until interrupted')
    .option(
      '--after <index>',
      'start after the event with this index (default: 0, or the last event with --follow)',
      eventIndex,
    )
    .action(showEvents);
  addOperatorOptions(addEventFilters(events), [
    'mesh-na events --type certificate_revoked',
    'mesh-na events --subject 5a1f6e0c --since 7d',
    'mesh-na events --follow',
    'mesh-na events --follow --after 0 --json | jq -c .entry',
  ]);
}

async function showEvents(options: EventsOptions): Promise<void> {
  const { follow = false, json = false } = options;
  const shown: JsonObject[] = [];
  const signal = stopSignal();
  const events = operatorClient(options).events({
    follow,
    after: await firstIndex(options),
    signal,
    onLost: ({ message }, ms) =>
      printNotice(`${message}; trying again in ${inWords(Math.ceil(ms / 1000))}`),
  });
  try {
    for await (const event of events) {
      const entry = { ...event.entry, details: asJson(event.entry.details) };
      if (!isWanted(entry, options)) continue;
      // Print a single object, unless the list never ends.
      if (json && !follow) shown.push(asJson(event));
      else printResult({ json }, asJson(event), [eventLine(entry, options, `${event.index}  `)]);
    }
  } catch (error) {
    if (!(error instanceof EventChainError)) throw error;
    throw failure(EXIT.refused, error.problem, error.message);
  }
  if (json && !follow) printResult(options, { events: shown }, []);
}

/** With `--follow`, start with new events. */
async function firstIndex(options: EventsOptions): Promise<number> {
  const { follow = false, after } = options;
  if (after !== undefined || !follow) return after ?? 0;
  return (await publicClient(options).readBulletin()).log_size;
}

function eventIndex(text: string): number {
  const index = Number(text);
  if (/^[0-9]+$/.test(text) && Number.isSafeInteger(index)) return index;
  throw new InvalidArgumentError('It must be the index of an event, or 0.');
}
