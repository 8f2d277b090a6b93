/**
 * From flags, environment and the data folder to one checked configuration. A missing, unreadable or
 * contradictory setting throws an error of one clear sentence, and the authority does not start.
 */

import { existsSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { availableParallelism } from 'node:os';
import { join, resolve, sep } from 'node:path';
import type { RetentionPeriods } from '../authority/engine/retention.ts';
import type { BackupSettings } from '../backup/schedule.ts';
import { bareHost } from '../bare-host.ts';
import type { HeadSettings } from '../head/open.ts';
import { RATE_BUCKETS, type RateLimit, type RateLimitSettings } from '../http/rate-limit.ts';
import { exposedKeyFiles } from '../keys/key-permissions.ts';
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from '../log/logger.ts';
import type { GenesisBlock } from '../records/genesis.ts';
import type { DatabaseSetting } from '../store/open.ts';
import { parseStoreAddress } from '../store/postgresql/address.ts';
import { readTlsPair, type TlsPair } from '../tls/pair.ts';
import { type WebhookSettings, webhookUrls } from '../webhooks/settings.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { FILES } from './data-folder.ts';
import { loadGenesis, loadSigningKey, type SigningKey, signingKeyFile } from './identity.ts';
import { loadOperators, type OperatorEntry } from './operators.ts';
import {
  type Environment,
  type Flags,
  OPTIONS,
  type OptionName,
  RATE_LIMIT_DEFAULTS,
  rateLimitVariable,
  type Setting,
} from './options.ts';
import { unknownVariables } from './unknown-variables.ts';

const MAX_THREADS = 64;
/** A century. */
const MAX_DAYS = 36_500;
/** The limit without a setting: not all cores may be available, and each thread costs time and memory. */
const MAX_DEFAULT_THREADS = 8;

export interface LinkSetting {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** How long a request is held while nobody writes, milliseconds. */
  readonly holdMs: number;
}

/** Durations are in milliseconds. */
export interface Config extends SigningKey {
  readonly dataDir: string;
  /** Null when the data folder holds the state. */
  readonly database: DatabaseSetting | null;
  /** Null when instances do not talk to each other. */
  readonly link: LinkSetting | null;
  /** Bytes free on the disk of the state below which nothing new is enrolled; 0 where that never happens. */
  readonly minFree: number;
  /** Within how many hours the stored state is read for damage; null when it is not. */
  readonly scrubHours: number | null;
  /** Null when the service makes no backups by itself. */
  readonly backups: BackupSettings | null;
  /** Where the head of the state is kept. */
  readonly heads: HeadSettings;
  readonly webhooks: WebhookSettings;
  readonly host: string;
  readonly port: number;
  /** Null for plain HTTP. */
  readonly tls: TlsPair | null;
  /** Threads that serve HTTP; 1 is the authority's own. */
  readonly threads: number;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Null for a standard stream. */
  readonly logFile: string | null;
  readonly publicUrl: string | null;
  readonly proxyHops: number;
  /** Null when no page of another origin may use the API. */
  readonly corsOrigins: readonly string[] | null;
  readonly maxRequestBytes: number;
  /** How long a request of a node may wait to be answered; 0 is without bound. */
  readonly longestWaitMs: number;
  readonly maxFeedEntries: number;
  /** Readers of the event stream at most. */
  readonly eventReaders: number;
  readonly acceptSignatureV1: boolean;
  readonly createdStatus: 200 | 201;
  readonly activeNodeWindow: number;
  readonly clockTolerance: number;
  readonly renewalGrace: number | null;
  readonly rolePrefixes: readonly string[] | null;
  readonly refuseForeignIssuers: boolean;
  readonly commitWithinAgreement: boolean;
  readonly livenessFlush: number;
  readonly retention: RetentionPeriods;
  /** Between the announcement of a stop and the refusal of new work; null when it was not set. */
  readonly drain: number | null;
  /** Between trust cycles; null when there are none. */
  readonly trustCycle: number | null;
  readonly rateLimits: RateLimitSettings;
  /** How many refusals of one source are audited individually; null means all of them. */
  readonly singleRefusals: { readonly count: number; readonly windowMs: number } | null;
  readonly genesis: GenesisBlock;
  readonly keyId: string;
  readonly operators: readonly OperatorEntry[];
  /** Problems that do not prevent the start but that an operator should know about. */
  readonly warnings: readonly string[];
}

export function dataDirOf(flags: Flags, environment: Environment): string {
  return settingReader(flags, environment, null)('dataDir') ?? '';
}

/** Whether the settings name a genesis or a key, so that the data folder need not hold them. */
export function bringsIdentity(flags: Flags, environment: Environment): boolean {
  const setting = settingReader(flags, environment, null);
  const given = ['genesis', 'genesisJson', 'naPrivateKey', 'naPrivateKeyText'] as const;
  return given.some((name) => setting(name) !== null);
}

/** `otherVariables` are those that other commands read. */
export function loadConfig(
  flags: Flags,
  environment: Environment,
  now: number,
  otherVariables: readonly string[] = [],
): Config {
  const dataDir = dataDirOf(flags, environment);
  const file = readConfigFile(dataDir);
  const setting = settingReader(flags, environment, file);
  const genesis = loadGenesis(setting, dataDir, flags.allowUnsignedGenesis === true);
  const { publicKey, keySource } = loadSigningKey(setting, dataDir, genesis);
  const operators = loadOperators(flags, environment, file, [genesis.root_public_key, publicKey]);
  return {
    dataDir,
    database: databaseSetting(setting, environment),
    link: linkSetting(setting),
    minFree: minFree(setting),
    scrubHours: wholeNumber(setting, 'scrubHours', 0, 8760) || null,
    backups: backupSettings(flags, setting),
    heads: { paths: headFiles(flags, setting), acceptsNew: flags.newHead === true },
    webhooks: webhookSettings(flags, setting),
    host: setting('host') ?? '',
    port: wholeNumber(setting, 'port', 0, 65_535),
    tls: tlsPair(setting, now),
    threads:
      setting('threads') === null
        ? Math.min(availableParallelism(), MAX_DEFAULT_THREADS)
        : wholeNumber(setting, 'threads', 1, MAX_THREADS),
    logLevel: oneOf(setting, 'logLevel', LOG_LEVELS),
    logFormat: oneOf(setting, 'logFormat', LOG_FORMATS),
    logFile: setting('logFile'),
    publicUrl: publicUrl(setting),
    corsOrigins: corsOrigins(setting),
    proxyHops: wholeNumber(setting, 'proxyHops', 0, 16),
    maxRequestBytes: wholeNumber(setting, 'maxRequestBytes', 1024, 1 << 30),
    longestWaitMs: wholeNumber(setting, 'longestWait', 0, 60_000),
    maxFeedEntries: wholeNumber(setting, 'maxFeedEntries', 1, 10_000_000),
    eventReaders: wholeNumber(setting, 'eventReaders', 1, 1_000_000),
    acceptSignatureV1: oneOf(setting, 'adminSignatureV1', ['accept', 'refuse']) === 'accept',
    createdStatus: oneOf(setting, 'createdStatus', ['200', '201']) === '201' ? 201 : 200,
    activeNodeWindow: wholeNumber(setting, 'activeNodeWindow', 1, 86_400) * 1000,
    clockTolerance: wholeNumber(setting, 'clockTolerance', 1, 3600) * 1000,
    renewalGrace:
      setting('renewalGrace') === 'off'
        ? null
        : wholeNumber(setting, 'renewalGrace', 0, 31_536_000) * 1000,
    rolePrefixes: listOf(setting('rolePrefixes')),
    commitWithinAgreement: oneOf(setting, 'commitSubset', ['on', 'off']) === 'on',
    refuseForeignIssuers: oneOf(setting, 'foreignIssuer', ['allow', 'refuse']) === 'refuse',
    drain: setting('drain') === null ? null : wholeNumber(setting, 'drain', 0, 300) * 1000,
    livenessFlush: wholeNumber(setting, 'livenessFlush', 10, 60_000),
    retention: {
      certificate: days(setting, 'retentionCertificate'),
      renewedCertificate: days(setting, 'retentionRenewed'),
      invite: days(setting, 'retentionInvite'),
      agent: days(setting, 'retentionAgent'),
    },
    trustCycle: wholeNumber(setting, 'trustCycle', 0, 168) * 3_600_000 || null,
    rateLimits: rateLimits(environment),
    singleRefusals: singleRefusals(environment),
    genesis,
    publicKey,
    keySource,
    keyId: setting('keyId') ?? publicKey,
    operators,
    warnings: [
      ...unknownVariables(environment, otherVariables),
      ...warningsOf(genesis, operators, now),
      ...surroundingWarnings(setting, dataDir),
      ...(headFiles(flags, setting).length === 0 ? [NO_HEAD] : []),
    ],
  };
}

/** Flags come before variables, and these before the file of the data folder. */
export function settingReader(
  flags: Flags,
  environment: Environment,
  file: ConfigFile | null,
): Setting {
  const flagOf = (name: OptionName) => {
    const flag = flags[name];
    return typeof flag === 'string' && flag !== '' ? flag : null;
  };
  const variableOf = (name: OptionName) => {
    const { variable } = OPTIONS[name];
    return (variable === null ? null : environment[variable]) || null;
  };
  const read = (name: OptionName) => {
    return flagOf(name) ?? variableOf(name) ?? inFile(file, name) ?? OPTIONS[name].fallback;
  };
  const labelOf = (name: OptionName) => {
    const { flag, variable } = OPTIONS[name];
    const asFlag = flag?.split(' ')[0];
    return (
      (variableOf(name) !== null && flagOf(name) === null ? variable : asFlag) ?? variable ?? name
    );
  };
  return Object.assign(read, { labelOf });
}

/** The settings that the folder's file may have, and their members in it. */
const FILE_MEMBERS: { readonly [Name in OptionName]?: Exclude<keyof ConfigFile, 'operators'> } = {
  adminSignatureV1: 'admin_signature_v1',
  store: 'store',
  signer: 'signer',
  tlsCert: 'tls_cert',
  tlsKey: 'tls_key',
};

/** What the folder's file says about a setting. */
function inFile(file: ConfigFile | null, name: OptionName): string | undefined {
  const member = FILE_MEMBERS[name];
  return member === undefined ? undefined : file?.[member];
}

const LONGEST_SHOWN = 40;

/** A value as a message repeats it; no setting that may hold a secret is shown. */
function shown(value: string): string {
  const text = JSON.stringify(value);
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN)}…`;
}

function wholeNumber(setting: Setting, name: OptionName, lowest: number, highest: number): number {
  const text = setting(name) ?? '';
  const value = Number(text);
  if (/^[0-9]+$/.test(text) && value >= lowest && value <= highest) return value;
  throw new Error(
    `${setting.labelOf(name)} must be a whole number from ${lowest} to ${highest}, not ${shown(text)}`,
  );
}

function days(setting: Setting, name: OptionName): number {
  return wholeNumber(setting, name, 0, MAX_DAYS) * 86_400_000;
}

function oneOf<const Values extends readonly string[]>(
  setting: Setting,
  name: OptionName,
  values: Values,
): Values[number] {
  const value = setting(name) ?? '';
  if (values.includes(value)) return value;
  throw new Error(
    `${setting.labelOf(name)} must be one of ${values.join(', ')}, not ${shown(value)}`,
  );
}

function listOf(text: string | null): readonly string[] | null {
  if (text === null) return null;
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function databaseSetting(setting: Setting, environment: Environment): DatabaseSetting | null {
  const url = setting('store');
  if (url === null) return null;
  const address = parseStoreAddress(url, environment);
  const named = { url, environment: { ...environment } };
  const leaseMs = wholeNumber(setting, 'leaseMs', 500, 60_000);
  return { address: () => address, named: () => named, leaseMs };
}

/** The disk of a database is watched where the database is. */
function minFree(setting: Setting): number {
  const megabytes = wholeNumber(setting, 'minFree', 0, 1_048_576);
  return setting('store') === null ? megabytes * 1_048_576 : 0;
}

/** Other instances connect to this very address, so it names one. */
function linkSetting(setting: Setting): LinkSetting | null {
  const text = setting('link');
  const holdMs = wholeNumber(setting, 'holdMs', 0, 60_000);
  if (text === null) return null;
  const label = setting.labelOf('link');
  if (setting('store') === null) throw new Error(`${label} is of no use without --store`);
  const [, host = '', port = ''] = LINK_ADDRESS.exec(text) ?? [];
  const bare = bareHost(host);
  if (host === '' || Number(port) > 65_535 || /^[0:.]+$/.test(bare)) {
    throw new Error(
      `${label} must be the host:port at which other instances reach this one, such as 10.0.0.1:8444, not ${shown(text)}`,
    );
  }
  return { host: bare, port: Number(port), holdMs };
}

const LINK_ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$/;

function tlsPair(setting: Setting, now: number): TlsPair | null {
  const [certFile, keyFile] = [setting('tlsCert'), setting('tlsKey')];
  if (certFile === null && keyFile === null) return null;
  if (certFile !== null && keyFile !== null) return readTlsPair({ certFile, keyFile }, now);
  const [given, missing] =
    certFile === null ? (['tlsKey', '--tls-cert'] as const) : (['tlsCert', '--tls-key'] as const);
  throw new Error(`${setting.labelOf(given)} is of no use without ${missing}`);
}

function backupSettings(flags: Flags, setting: Setting): BackupSettings | null {
  const folder = setting('backupTo');
  const { backupRecipient } = flags;
  const variable = setting('backupRecipient');
  const recipients = Array.isArray(backupRecipient) ? backupRecipient : (listOf(variable) ?? []);
  if (folder === null && recipients.length > 0) {
    throw new Error(`${setting.labelOf('backupRecipient')} is of no use without --backup-to`);
  }
  if (folder === null) return null;
  return {
    folder: resolve(folder),
    every: duration(setting, 'backupEvery'),
    keep: wholeNumber(setting, 'backupKeep', 1, 10_000),
    recipients,
  };
}

const DURATION_UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** From a minute to a year. */
function duration(setting: Setting, name: OptionName): number {
  const text = setting(name) ?? '';
  const [, count = '', unit = ''] = /^([1-9][0-9]{0,5})([mhd])$/.exec(text) ?? [];
  const milliseconds = Number(count) * (DURATION_UNITS[unit as 'm' | 'h' | 'd'] ?? 0);
  if (milliseconds > 0 && milliseconds <= 366 * DURATION_UNITS.d) return milliseconds;
  throw new Error(
    `${setting.labelOf(name)} must be a duration from 1m to 366d, such as 30m or 24h, not ${shown(text)}`,
  );
}

/** The flag is repeatable; the variable names one file. */
function headFiles({ headFile }: Flags, setting: Setting): readonly string[] {
  if (Array.isArray(headFile)) return headFile;
  const path = setting('headFile');
  return path === null ? [] : [path];
}

/** The flag is repeatable; the variable may name several. */
function webhookSettings({ webhook }: Flags, setting: Setting): WebhookSettings {
  const allowsPrivate = oneOf(setting, 'webhookPrivate', ['0', '1']) === '1';
  const variable =
    setting('webhook')
      ?.split(/\s+/)
      .filter((text) => text !== '') ?? [];
  const [texts, label] = Array.isArray(webhook)
    ? [webhook, '--webhook']
    : [variable, 'MESH_WEBHOOKS'];
  return {
    urls: webhookUrls(texts, { allowsPrivate }, label),
    allowsPrivate,
    after:
      setting('webhookAfter') === null
        ? null
        : wholeNumber(setting, 'webhookAfter', 0, Number.MAX_SAFE_INTEGER),
  };
}

function publicUrl(setting: Setting): string | null {
  const text = setting('publicUrl');
  if (text === null) return null;
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new Error('MESH_PUBLIC_URL must be an http or https URL');
  }
  return text.replace(/\/+$/, '');
}

/** Exact origins as browsers send them; a pattern, a path or `null` would let in more than was meant. */
function corsOrigins(setting: Setting): readonly string[] | null {
  const origins = listOf(setting('corsOrigins')) ?? [];
  for (const origin of origins) {
    const isExact = URL.canParse(origin) && new URL(origin).origin === origin;
    if (!isExact || !/^https?:[^*]+$/.test(origin)) {
      throw new Error(
        `MESH_CORS_ORIGINS must be origins such as https://app.example, not ${origin}`,
      );
    }
  }
  return origins.length === 0 ? null : origins;
}

function rateLimits(environment: Environment): RateLimitSettings {
  const limits = RATE_BUCKETS.map((bucket) => [bucket, rateLimit(environment, bucket)]);
  return Object.fromEntries(limits) as RateLimitSettings;
}

function singleRefusals(environment: Environment): Config['singleRefusals'] {
  const limit = rateLimit(environment, 'AUTH_FAILURES');
  return limit && { count: limit.count, windowMs: limit.windowSeconds * 1000 };
}

function rateLimit(
  environment: Environment,
  bucket: keyof typeof RATE_LIMIT_DEFAULTS,
): RateLimit | null {
  const variable = rateLimitVariable(bucket);
  const text = environment[variable] || RATE_LIMIT_DEFAULTS[bucket];
  if (text === 'off') return null;
  const match = /^([1-9][0-9]{0,8})\/([1-9][0-9]{0,5})$/.exec(text);
  if (match === null) throw new Error(`${variable} must be off, or count/seconds such as 30/60`);
  return { count: Number(match[1]), windowSeconds: Number(match[2]) };
}

function warningsOf(
  genesis: GenesisBlock,
  operators: readonly OperatorEntry[],
  now: number,
): string[] {
  const warnings: string[] = [];
  if (Date.parse(genesis.network_authority.valid_to) <= now) {
    warnings.push('The validity of the authority key in the genesis block has passed');
  }
  if (!operators.some(({ tier }) => tier === 'privileged')) {
    warnings.push('No privileged operator key is configured: nothing can be revoked');
  }
  return warnings;
}

function surroundingWarnings(setting: Setting, dataDir: string): string[] {
  const keyFile = signingKeyFile(setting, dataDir);
  const warnings = exposedKeyFiles(
    join(dataDir, FILES.keys),
    keyFile === null ? [] : [keyFile],
  ).map((path) => `The key file ${path} is open to every user of this machine`);
  const ownKey = join(dataDir, FILES.naKey);
  if (setting('signer') !== null && existsSync(ownKey)) {
    warnings.push(`${ownKey} is still here: move it to where the signer alone can read it`);
  }
  const backupTo = setting('backupTo');
  if (backupTo !== null && `${resolve(backupTo)}${sep}`.startsWith(`${resolve(dataDir)}${sep}`)) {
    warnings.push('The backups are in the data folder: whatever happens to it happens to them');
  }
  return [...warnings, ...exposureWarnings(setting)];
}

const NO_HEAD =
  'An older copy of the state that is put back would not be noticed: keep its head in another place, by --head-file';

/** What may be read by others on its way. */
export function exposureWarnings(setting: Setting): string[] {
  const warnings: string[] = [];
  const host = setting('host') ?? '';
  if (setting('tlsCert') === null && !isLoopback(host)) {
    warnings.push(
      `Without --tls-cert, invite tokens travel in the clear to ${host}: let nothing but a proxy with TLS reach it, over a network that you trust`,
    );
  }
  const isBehindProxy =
    setting('tlsCert') === null && setting('publicUrl')?.startsWith('https:') === true;
  if (isBehindProxy && setting('proxyHops') === '0') {
    warnings.push(
      'The public URL is https, which a proxy has to serve, but MESH_PROXY_HOPS is 0: all clients share the address and the rate limits of that proxy',
    );
  }
  return warnings;
}

/** Nothing of what is sent there leaves the machine. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
