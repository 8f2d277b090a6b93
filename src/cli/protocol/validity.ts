/** Options for the validity of agreements and licenses. */
import { type Command, Option } from 'commander';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant, parseRequestTimestamp } from '../../base/timestamp.ts';
import { usageFailure } from '../kernel/errors.ts';
import { timeAhead, wholeNumber } from '../kernel/options.ts';

const HOUR_MS = 3_600_000;
const DEFAULT_HOURS = 168;
/** Ten years, as for certificates and treaties. */
const MOST_HOURS = 87_600;

export interface WindowOptions {
  readonly validFrom?: string;
  readonly validUntil?: string;
  readonly validityHours?: number;
}

export interface ValidityWindow {
  readonly valid_from: string;
  readonly valid_until: string;
}

/** `defaults` describes the default ends of the window. */
export function addWindowOptions(
  command: Command,
  defaults = { from: 'now', until: `${DEFAULT_HOURS} hours later` },
): Command {
  const until = new Option('--valid-until <time>', `when it ends (default: ${defaults.until})`);
  return command
    .option('--valid-from <time>', `when it begins (default: ${defaults.from})`, timeAhead)
    .addOption(until.argParser(timeAhead))
    .addOption(
      new Option('--validity-hours <n>', 'duration, instead of --valid-until')
        .conflicts('validUntil')
        .argParser(wholeNumber(MOST_HOURS)),
    );
}

/** The requested window; missing bounds come from `fallback`, or else the window begins now. */
export function windowOf(
  options: WindowOptions,
  fallback: Partial<ValidityWindow> = {},
): ValidityWindow {
  const { validFrom, validUntil, validityHours } = options;
  const valid_from = validFrom ?? fallback.valid_from ?? hoursFromNow(0);
  const kept = validityHours === undefined ? fallback.valid_until : undefined;
  const valid_until = validUntil ?? kept ?? later(valid_from, validityHours ?? DEFAULT_HOURS);
  return { valid_from, valid_until };
}

export function hoursFromNow(hours: number): string {
  return formatInstant(systemRuntime.now() + hours * HOUR_MS);
}

function later(start: string, hours: number): string {
  const instant = parseRequestTimestamp(start);
  if (instant === null)
    throw usageFailure('--valid-from is required: the offer has no readable one');
  return formatInstant(instant + hours * HOUR_MS);
}
