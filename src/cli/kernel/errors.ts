/** Exit codes of commands, and the code and one-sentence message of an error. */

import { CommanderError } from 'commander';
import { inWords } from '../../base/duration.ts';
import { messageOf } from '../../base/error-message.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { UnreadableFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { AddressError, AuthorityError, isUnreachable } from '../../client/authority-error.ts';
import { cureOf, cureOfSilence, cureOfSystemError } from './cures.ts';
import { wrongClock, wrongOperatorKey } from './refused-proof.ts';

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  unusable: 3,
  refused: 4,
  unreachable: 5,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_CODE_HELP = `
Exit codes:
  0  done
  1  unexpected failure
  2  wrong usage
  3  start refused (serve), or local files unusable
  4  refused by the authority; or checked, and denied, revoked, expired or not genuine
  5  authority unreachable, or failing itself`;

export interface Outcome {
  readonly exit: ExitCode;
  readonly code: string;
  /** Empty when the output is complete: help, version, a verdict. */
  readonly message: string;
  /** What to do, unless the message says so. */
  readonly cure?: string | null;
  /** Whether the command would have succeeded later with --wait; the message says when. */
  readonly mayWait?: boolean;
}

type Failure = Error & { readonly failure: Outcome };

/** An error that ends the command with this exit code; `message` is one sentence for the user. */
export function failure(exit: ExitCode, code: string, message: string): Failure {
  return Object.assign(new Error(message), { failure: { exit, code, message } });
}

export function usageFailure(message: string): Failure {
  return failure(EXIT.usage, 'usage', message);
}

/** Runs work on local files; an error ends the command as "local files unusable". */
export function onLocalFiles<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw isSystemError(error) ? error : failure(EXIT.unusable, 'local_files', messageOf(error));
  }
}

export function outcomeOf(error: unknown): Outcome {
  if (error instanceof CommanderError) return commanderOutcome(error);
  if (error instanceof AuthorityError) return authorityOutcome(error);
  if (error instanceof Error && 'failure' in error) return (error as Failure).failure;
  if (isSystemError(error)) return systemOutcome(error);
  if (error instanceof AddressError) {
    return { exit: EXIT.usage, code: 'usage', message: error.message };
  }
  if (error instanceof UnreadableFile) {
    return { exit: EXIT.unusable, code: 'local_files', message: error.message };
  }
  return { exit: EXIT.failed, code: 'unexpected', message: messageOf(error) };
}

function commanderOutcome({ code, exitCode, message }: CommanderError): Outcome {
  if (exitCode === 0) return { exit: EXIT.done, code, message: '' };
  const said = code === 'commander.help' ? '' : message.replace(/^error: /, '');
  return { exit: EXIT.usage, code: 'usage', message: said };
}

function authorityOutcome(error: AuthorityError): Outcome {
  const { code, message, status, requestId, details, retryAfter, waited } = error;
  if (status === 0 || code === 'unreadable_answer') {
    return { exit: EXIT.unreachable, code, message, cure: cureOfSilence(error) };
  }
  const cure =
    wrongClock(error, systemRuntime.now()) ??
    wrongOperatorKey(error) ??
    sentenceIn(details) ??
    cureOf(error);
  const request = requestId === null ? '' : `, request ${requestId}`;
  const mayWait = retryAfter !== null && waited === null;
  if (isUnreachable(error)) {
    const sentence = `The authority failed: ${message} (${status} ${code}${request})`;
    return { exit: EXIT.unreachable, code, message: sentence + laterHint(error), cure, mayWait };
  }
  const cause = causeIn(details);
  const sentence = `The authority refused: ${message} (${status} ${code}${cause}${request})`;
  return { exit: EXIT.refused, code, message: sentence + laterHint(error), cure, mayWait };
}

function laterHint({ retryAfter, waited }: AuthorityError): string {
  if (retryAfter === null) return '';
  const hint = `; try again in ${inWords(retryAfter)}`;
  if (waited === null) return hint;
  return waited === 0
    ? `${hint}, which is longer than --wait allows`
    : `${hint}; already waited ${inWords(waited)}`;
}

/** What is wrong with a record that was refused, and what to do. */
function sentenceIn({ message, problem }: JsonObject): string | null {
  return [message, problem].find((text) => typeof text === 'string') ?? null;
}

/** What else is worth knowing, such as the invites whose tokens were lost with the first answer. */
function causeIn({ cause, count, activates_at, token_fingerprints }: JsonObject): string {
  if (Array.isArray(token_fingerprints)) return `: invites ${token_fingerprints.join(', ')}`;
  const said = cause ?? count ?? activates_at;
  return typeof said === 'string' || typeof said === 'number' ? `: ${said}` : '';
}

/** An error of the operating system, such as that a file cannot be written. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'errno' in error;
}

const READING = new Set(['open', 'read', 'scandir', 'stat', 'lstat', 'access']);

function systemOutcome(error: NodeJS.ErrnoException): Outcome {
  const { path, code = 'unknown cause', syscall = '' } = error;
  const what = READING.has(syscall) ? 'cannot be opened' : 'cannot be changed';
  const message = path === undefined ? error.message : `${path} ${what} (${code})`;
  return { exit: EXIT.unusable, code: 'local_files', message, cure: cureOfSystemError(code) };
}
