/** Exit codes of commands, the code and one-sentence message of an error, and what to do about it. */

import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { inWords } from '../../base/duration.ts';
import { messageOf } from '../../base/error-message.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { readKeyText } from '../../base/keys/key-file.ts';
import { UnreadableFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { AddressError, AuthorityError, isUnreachable } from '../../client/authority-error.ts';
import type { PublicClient } from '../../client/public-client.ts';
import { REFUSALS } from '../../protocol/refusals.ts';
import { readConfigFile } from '../../server/config/config-file.ts';
import { FILES } from '../../server/config/data-folder.ts';

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
export function failure(
  exit: ExitCode,
  code: string,
  message: string,
  cure: string | null = cureOfSystemError(message),
): Failure {
  return Object.assign(new Error(message), { failure: { exit, code, message, cure } });
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
  const known = outcomeIn(error);
  if (known !== null) return known;
  if (isSystemError(error)) return systemOutcome(error);
  if (error instanceof AddressError) {
    return { exit: EXIT.usage, code: 'usage', message: error.message };
  }
  if (error instanceof UnreadableFile) {
    return { exit: EXIT.unusable, code: 'local_files', message: error.message };
  }
  return { exit: EXIT.failed, code: 'unexpected', message: messageOf(error) };
}

function commanderOutcome({ code, exitCode, message, used }: Misuse): Outcome {
  if (exitCode === 0) return { exit: EXIT.done, code, message: '' };
  const said = code === 'commander.help' ? '' : withoutFarGuess(message.replace(/^error: /, ''));
  const json = /'(-o|--output)'/.test(said) ? 'For JSON, use --json. ' : '';
  const cure = used === undefined ? null : `${json}See ${used} --help.`;
  return { exit: EXIT.usage, code: 'usage', message: said, cure };
}

function outcomeIn(error: unknown): Outcome | null {
  return error instanceof Error && 'failure' in error ? (error as Failure).failure : null;
}

/** The library also guesses options that share only some letters in the middle. */
function withoutFarGuess(message: string): string {
  return message.replace(/('--(..)[^']*')\n\(Did you mean --(?!\2).*\?\)$/, '$1');
}

/** A wrong use, and the command that says more with `--help`. */
interface Misuse extends CommanderError {
  readonly used?: string;
}

/** Makes each wrong use say which command was used. */
export function rememberUsed(command: Command): void {
  const path = pathOf(command);
  command.exitOverride((error) => {
    const about = requiredIn(command, error.message);
    if (about !== undefined) error.message += `: ${about}`;
    throw Object.assign(error, { used: path });
  });
}

/** What the option or argument is that a message calls missing. */
function requiredIn(command: Command, message: string): string | undefined {
  const [, name] =
    /^error: (?:required option|missing required argument) '(.+)'/.exec(message) ?? [];
  const option = command.options.find(({ flags }) => flags === name);
  return (option ?? command.registeredArguments.find((each) => each.name() === name))?.description;
}

/** Runs a command; a wrong use that only the command sees names its help, too. */
export async function usedAs(command: Command, run: () => unknown): Promise<void> {
  try {
    await run();
  } catch (error) {
    const { code = '', message = '' } = outcomeIn(error) ?? {};
    if (code !== 'usage' || message.includes('--help')) throw await explained(error);
    throw failure(EXIT.usage, 'usage', message, `See ${pathOf(command)} --help.`);
  }
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
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
    cureOf(error.wireCode, message, status);
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
  const said = cause ?? (count === 0 ? undefined : count) ?? activates_at;
  return typeof said === 'string' || typeof said === 'number' ? `: ${said}` : '';
}

/** An error of the operating system, such as that a file cannot be written. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'errno' in error;
}

const READING = new Set(['open', 'read', 'scandir', 'stat', 'lstat', 'access']);

function systemOutcome(error: NodeJS.ErrnoException): Outcome {
  const { path, code = 'unknown cause', syscall = '' } = error;
  if (code === 'EEXIST') return existing((error as { dest?: string }).dest ?? path);
  const what = READING.has(syscall) ? 'cannot be opened' : 'cannot be changed';
  const message = path === undefined ? error.message : `${path} ${what} (${code})`;
  return { exit: EXIT.unusable, code: 'local_files', message, cure: cureOfSystemError(code) };
}

function existing(path = 'The file'): Outcome {
  const cure = 'Choose another name, or remove it first.';
  return { exit: EXIT.unusable, code: 'local_files', message: `${path} exists`, cure };
}

const LINK = /\[([^\]]+)\]\(([^)]+)\)/g;

/** Returns what to do about a refusal, as plain text; null for an unknown code. */
export function cureOf(code: string, message: string, status?: number): string | null {
  const known = Object.values(REFUSALS).filter(
    (refusal) => refusal.code === code && (status ?? refusal.status) === refusal.status,
  );
  const refusal = known.find((each) => each.message === message) ?? known[0];
  return refusal?.cure.replace(LINK, '$1: docs/$2').replaceAll('`', '') ?? null;
}

const NOT_TRUSTED =
  'Trust the issuer of its certificate with --ca, or install a certificate that is valid for this name.';

const SILENCE: { readonly [code: string]: string } = {
  ENOTFOUND: 'The host is unknown: correct the name in the address, or fix the resolver.',
  EAI_AGAIN: 'The resolver does not answer: check the network of this machine.',
  ECONNREFUSED: 'Nothing listens there: start the authority, or correct the host and port.',
  ECONNRESET:
    'The server closed the connection: try https:// if it uses TLS; otherwise, check its log.',
  EPROTO: 'The server does not use TLS: use http://, or enable TLS there.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The server does not use TLS: use http://, or enable TLS there.',
  EHOSTUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ENETUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ETIMEDOUT: 'The host does not answer: check firewalls, or correct the address.',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: NOT_TRUSTED,
  CERT_NOT_YET_VALID: 'Correct the clock of this machine, or the certificate of the server.',
  CERT_HAS_EXPIRED: 'Renew the certificate of the server, or correct the clock of this machine.',
};

/** Returns what to do when no answer arrived, or an answer that is not from an authority. */
function cureOfSilence({ code, cause }: AuthorityError): string | null {
  if (code === 'unreadable_answer') {
    return 'Another server answers there: correct the address, or check the proxy in front of the authority.';
  }
  if (code === 'timeout')
    return 'Try again; if the problem persists, check the log of the authority.';
  const reason = cause instanceof Error ? cause.cause : undefined;
  if (reason instanceof Error && 'location' in reason) {
    return `It redirects to ${reason.location}: give that address, if you trust it.`;
  }
  const known = reason instanceof Error && 'code' in reason ? SILENCE[String(reason.code)] : null;
  return known ?? null;
}

const SYSTEM: { readonly [code: string]: string } = {
  ENOENT: 'The file or folder does not exist: correct the path.',
  EACCES: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EPERM: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EISDIR: 'This is a folder: give the path of a file.',
  ENOTDIR: 'A part of the path is a file: correct the path.',
  ENOSPC: 'The disk is full: free up space.',
  EROFS: 'The file system is read-only: choose another place.',
};

/** The code is alone, or ends a message in parentheses. */
function cureOfSystemError(text: string): string | null {
  return SYSTEM[/\((\w+)\)$/.exec(text)?.[1] ?? text] ?? null;
}

/** Differences beyond this are reported; authorities tolerate a few minutes. */
const ODD_MS = 60_000;

function wrongClock(error: AuthorityError, now: number): string | null {
  if (error.status !== 401 || error.answeredAt === null) return null;
  const ahead = now - error.answeredAt;
  if (Math.abs(ahead) < ODD_MS) return null;
  const seconds = Math.round(Math.abs(ahead) / 1000);
  const days = Math.round(seconds / 86_400);
  const by = days > 2 ? `${days} days` : inWords(seconds);
  const where = ahead > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${by} ${where} the clock of the authority: correct the wrong one.`;
}

/** Whom requests are signed for, and who answers them. */
export interface Addressee {
  readonly url: string;
  /** Base64 public key of the authority. */
  readonly audience: string;
  readonly publicClient: Pick<PublicClient, 'authorityKeys'>;
}

export interface OperatorSignature extends Addressee {
  readonly keyId: string;
  readonly publicKey: string;
  /** Null when an agent signs. */
  readonly keyFile: string | null;
  readonly dataDir: string;
}

/** A command signs as one operator. */
let used: OperatorSignature | null = null;

/** A refused signature may be for another authority, or for a key that the authority has replaced. */
export async function explained(
  error: unknown,
  addressee: Addressee | null = used,
): Promise<unknown> {
  if (!(error instanceof AuthorityError) || error.status !== 401 || addressee === null) {
    return error;
  }
  const { url, audience, publicClient } = addressee;
  const { keys = [] } = (await publicClient.authorityKeys().catch(() => null)) ?? {};
  const current = keys.find(({ state }) => state === 'current')?.public_key ?? audience;
  if (current === audience) return error;
  if (keys.some(({ public_key: key }) => key === audience)) {
    // Requests may also name the key that was replaced last, so that need not be what is wrong.
    const { exit, code, message, cure } = outcomeOf(error);
    const replaced = 'The authority has replaced its key: run mesh-na connect again.';
    return failure(exit, code, message, `${cure ?? ''} ${replaced}`.trimStart());
  }
  const message = `Another authority answers at ${url}: its key is ${current}, not ${audience}`;
  return failure(EXIT.refused, 'other_authority', message, 'Check the address.');
}

export function noteSignature(signature: OperatorSignature): void {
  used = signature;
}

function wrongOperatorKey({ code, message }: AuthorityError): string | null {
  if (code !== 'admin_auth_failed' || used === null) return null;
  const { keyId, publicKey, keyFile, dataDir } = used;
  const list = 'run mesh-na operator-key list with another key to see the usable ones';
  if (message === UNKNOWN) {
    return `The authority has no usable key ${keyId}: it is unknown or revoked. Correct --key-id; ${list}.`;
  }
  const named = keyFile === null ? null : idIn(keyFile);
  const what = keyFile === null ? 'The key of the agent' : `The key file ${keyFile}`;
  if (named !== null && named !== keyId) {
    return `${what} belongs to ${named}, not to ${keyId}: correct --key-file or --key-id.`;
  }
  const configured = configuredKey(dataDir, keyId);
  if (configured !== null && configured !== publicKey) {
    return `${what} does not match ${keyId}, whose public key in ${dataDir} is ${configured}: correct --key-file or --key-id.`;
  }
  return null;
}

const UNKNOWN = 'Unknown admin key';
const ID_LINE = /^# key id: (\S+)\s*$/m;

function idIn(keyFile: string): string | null {
  try {
    return ID_LINE.exec(readKeyText(keyFile))?.[1] ?? null;
  } catch {
    return null;
  }
}

/** Null if the operators are configured elsewhere, or the data folder is on another machine. */
function configuredKey(dataDir: string, keyId: string): string | null {
  try {
    const { operators } = readConfigFile(join(dataDir, FILES.config), false);
    return operators.find(({ key_id }) => key_id === keyId)?.public_key ?? null;
  } catch {
    return null;
  }
}
