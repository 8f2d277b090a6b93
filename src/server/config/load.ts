/**
 * From flags, environment and the data folder to one checked configuration. A missing, unreadable or contradictory
 * setting throws a one-sentence error, and the authority does not start.
 */

import { existsSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { availableParallelism } from 'node:os';
import { join, resolve, sep } from 'node:path';
import type { AuthorityOptions } from '../../authority/open.ts';
import { bareHost } from '../../base/bare-host.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import { DAY_MS } from '../../base/duration.ts';
import { exposedKeyFiles } from '../../base/keys/key-file.ts';
import type { LogSettings } from '../../base/log/logger.ts';
import { readTlsPair, type TlsPair } from '../../base/tls/pair.ts';
import type { EdgeOptions } from '../../edge/edge-config.ts';
import type { RateLimit, RateLimitSettings } from '../../edge/limits/rate-limit.ts';
import type { BackupSettings } from '../../maintenance/backup/schedule.ts';
import { namedFirstPolicy } from '../../protocol/records/first-policy.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { RATE_BUCKETS } from '../../protocol/route-description.ts';
import type { DatabaseSetting } from '../../store/open.ts';
import { parseStoreAddress } from '../../store/postgresql/address.ts';
import type { FederationSettings } from '../federation/federation.ts';
import type { HeadSettings } from '../head/open.ts';
import { type WebhookSettings, webhookUrls } from '../webhooks/settings.ts';
import { shown, unknownVariables } from './config-file.ts';
import { demandFile, demandFolder, FILES } from './data-folder.ts';
import {
  type IdentityFiles,
  loadGenesis,
  loadSigningKey,
  nextKeyProblem,
  ownIdentityFiles,
  type SigningKey,
  signingKeyFile,
} from './identity.ts';
import { durationOf } from './kinds.ts';
import { loadOperators, type OperatorEntry } from './operators.ts';
import type { Environment, Flags, Setting } from './options.ts';
import { readSettings, type Settings } from './settings.ts';

/** The default limit: not all cores may be available, and each thread costs time and memory. */
const MAX_DEFAULT_THREADS = 8;

export interface LinkSetting {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** How long a request is held while there is no active instance, milliseconds. */
  readonly holdMs: number;
}

/** Durations are in milliseconds. */
export interface Config extends SigningKey {
  readonly dataDir: string;
  readonly genesis: GenesisBlock;
  readonly keyId: string;
  readonly operators: readonly OperatorEntry[];
  /** The files that the service replaces at the end of a succession. */
  readonly identityFiles: IdentityFiles;
  /** Null if the data folder holds the state. */
  readonly database: DatabaseSetting | null;
  /** Null if instances do not forward to each other. */
  readonly link: LinkSetting | null;
  readonly authority: AuthorityConfig;
  readonly edge: EdgeOptions;
  /** Null for plain HTTP. */
  readonly tls: TlsPair | null;
  readonly port: number;
  /** The number of threads that serve HTTP; with 1, the authority's thread serves it too. */
  readonly threads: number;
  /** The most readers of the event stream. */
  readonly eventReaders: number;
  readonly log: LogSettings;
  /** Null for a standard stream. */
  readonly logFile: string | null;
  /** Free bytes on the disk of the state below which nothing new is enrolled; 0 disables the check. */
  readonly minFree: number;
  /** Null if the service makes no scheduled backups. */
  readonly backups: BackupSettings | null;
  /** Where the head of the state is kept. */
  readonly heads: HeadSettings;
  readonly webhooks: WebhookSettings;
  /** Null if the authorities of other sovereigns are not fetched. */
  readonly federation: FederationSettings | null;
  /** Time between the announcement of a stop and the refusal of new work; null if not set. */
  readonly drain: number | null;
  /** Time between trust cycles; null disables them. */
  readonly trustCycle: number | null;
  /** Problems that an operator should know about but that do not prevent the start. */
  readonly warnings: readonly string[];
}

export type AuthorityConfig = Pick<
  AuthorityOptions,
  'settings' | 'clockTolerance' | 'flushInterval' | 'retention'
>;

/** Whether the settings supply a genesis block or a key, so that the data folder need not contain them. */
export function bringsIdentity(setting: Setting): boolean {
  const given = ['genesis', 'genesisJson', 'naPrivateKey', 'naPrivateKeyText'] as const;
  return given.some((name) => setting(name) !== null);
}

export interface CheckedConfig {
  /** Null if there are problems. */
  readonly config: Config | null;
  /** Sentences that name the setting as it was given; any of them prevents the start. */
  readonly problems: readonly string[];
}

/** The configuration, if the authority would start with it; otherwise throws a one-sentence error. */
export function loadConfig(
  flags: Flags,
  environment: Environment,
  now: number,
  otherVariables: readonly string[] = [],
): Config {
  const { config, problems } = checkConfig(flags, environment, now, otherVariables);
  const [first = 'The settings are not valid', ...more] = problems;
  if (config !== null && problems.length === 0) return config;
  const rest = more.length === 1 ? '1 more problem' : `${more.length} more problems`;
  throw new Error(more.length === 0 ? first : `${first} (serve --check names ${rest})`);
}

/**
 * Checks everything that can be checked before serving. Nothing is opened for writing. `otherVariables` are the
 * variables that other commands read.
 */
export function checkConfig(
  flags: Flags,
  environment: Environment,
  now: number,
  otherVariables: readonly string[] = [],
): CheckedConfig {
  const settings = readSettings(flags, environment);
  const { setting, dataDir } = settings;
  const problems = [...settings.problems];
  function attempt<T>(work: () => T): T | null {
    try {
      return work();
    } catch (cause) {
      problems.push(cause instanceof Error ? cause.message : String(cause));
      return null;
    }
  }
  const { genesis, key, operators, webhooks, ...parts } = partsOf(
    settings,
    environment,
    now,
    attempt,
  );
  const isComplete = problems.length === 0;
  checkPlaces(setting, attempt);
  if (!isComplete || genesis === null || key === null || operators === null || webhooks === null) {
    return { config: null, problems };
  }
  const warnings = [
    ...settings.warnings,
    ...unknownVariables(environment, otherVariables),
    ...warningsOf(genesis, operators, now),
    ...surroundingWarnings(setting, dataDir),
    ...(filled(setting('headFile')) === null ? [NO_HEAD] : []),
  ];
  const config: Config = {
    ...key,
    ...parts,
    keyId: setting('keyId') ?? key.publicKey,
    dataDir,
    genesis,
    operators,
    identityFiles: ownIdentityFiles(setting, dataDir),
    authority: authorityConfig(setting, genesis),
    edge: edgeOptions(setting),
    port: setting('port'),
    threads: setting('threads') ?? Math.min(availableParallelism(), MAX_DEFAULT_THREADS),
    eventReaders: setting('eventReaders'),
    log: { level: setting('logLevel'), format: setting('logFormat') },
    logFile: setting('logFile'),
    minFree: minFree(setting),
    heads: { paths: setting('headFile') ?? [], acceptsNew: setting('newHead') === true },
    webhooks,
    federation: federationSettings(setting),
    drain: inSeconds(setting('drain')),
    trustCycle: setting('trustCycle') * 3_600_000 || null,
    warnings,
  };
  return { config, problems };
}

/** The parts that need more than one setting, a file, or a check; null for each that has a problem. */
function partsOf(
  { setting, dataDir, operators }: Settings,
  environment: Environment,
  now: number,
  attempt: <T>(work: () => T) => T | null,
) {
  const genesis = attempt(() =>
    loadGenesis(setting, dataDir, setting('allowUnsignedGenesis') === true),
  );
  const otherKeys =
    genesis === null ? [] : [genesis.root_public_key, genesis.network_authority.public_key];
  return {
    genesis,
    key: attempt(() => loadSigningKey(setting, dataDir, genesis)),
    operators: attempt(() => loadOperators(setting, operators, otherKeys)),
    database: attempt(() => databaseSetting(setting, environment)),
    link: attempt(() => linkSetting(setting)),
    backups: attempt(() => backupSettings(setting)),
    webhooks: attempt(() => webhookSettings(setting)),
    tls: attempt(() => tlsPair(setting, now)),
  };
}

function authorityConfig(setting: Setting, genesis: GenesisBlock): AuthorityConfig {
  const authFailures = limitOf(setting('rateLimit.AUTH_FAILURES'));
  return {
    settings: {
      networkName: genesis.network_name,
      networkVersion: genesis.network_version,
      activeWindow: setting('activeNodeWindow') * 1000,
      renewalGrace: inSeconds(setting('renewalGrace')),
      refuseForeignIssuers: setting('foreignIssuer') === 'refuse',
      commitWithinAgreement: setting('commitSubset') === 'on',
      singleRefusals: authFailures && {
        count: authFailures.count,
        windowMs: authFailures.windowSeconds * 1000,
      },
      genesis,
      firstPolicy: namedFirstPolicy(genesis, SHA256),
    },
    clockTolerance: setting('clockTolerance') * 1000,
    flushInterval: setting('livenessFlush'),
    retention: {
      certificate: setting('retentionCertificate') * DAY_MS,
      renewedCertificate: setting('retentionRenewed') * DAY_MS,
      invite: setting('retentionInvite') * DAY_MS,
      agent: setting('retentionAgent') * DAY_MS,
    },
  };
}

function edgeOptions(setting: Setting): EdgeOptions {
  const limits = RATE_BUCKETS.map((bucket) => [bucket, limitOf(setting(`rateLimit.${bucket}`))]);
  return {
    host: setting('host'),
    publicUrl: setting('publicUrl')?.replace(/\/+$/, '') ?? null,
    proxyHops: setting('proxyHops'),
    corsOrigins: filled(setting('corsOrigins')),
    maxRequestBytes: setting('maxRequestBytes'),
    longestWaitMs: setting('longestWait'),
    maxFeedEntries: setting('maxFeedEntries'),
    createdStatus: setting('createdStatus'),
    rolePrefixes: setting('rolePrefixes'),
    acceptSignatureV1: setting('adminSignatureV1') === 'accept',
    heartbeatSession: durationOf(setting('heartbeatSession')) || null,
    rateLimits: Object.fromEntries(limits) as RateLimitSettings,
  };
}

/** Checks the folders in which files will be created. */
function checkPlaces(setting: Setting, attempt: (work: () => void) => void): void {
  const [backupTo, logFile] = [setting('backupTo'), setting('logFile')];
  if (backupTo !== null) attempt(() => demandFolder(setting.labelOf('backupTo'), backupTo));
  for (const path of setting('headFile') ?? []) {
    attempt(() => demandFile(setting.labelOf('headFile'), path));
  }
  if (logFile !== null) attempt(() => demandFile(setting.labelOf('logFile'), logFile));
}

function inSeconds(seconds: number | 'off' | null): number | null {
  return typeof seconds === 'number' ? seconds * 1000 : null;
}

function filled(list: readonly string[] | null): readonly string[] | null {
  return list === null || list.length === 0 ? null : list;
}

function databaseSetting(setting: Setting, environment: Environment): DatabaseSetting | null {
  const url = setting('store');
  if (url === null) return null;
  const address = parseStoreAddress(url, environment);
  const named = { url, environment: { ...environment } };
  return { address: () => address, named: () => named, leaseMs: setting('leaseMs') };
}

/** With a database, its own host monitors the disk. */
function minFree(setting: Setting): number {
  return setting('store') === null ? setting('minFree') * 1_048_576 : 0;
}

/** Other instances connect to this address, so it must be reachable, not a wildcard. */
function linkSetting(setting: Setting): LinkSetting | null {
  const text = setting('link');
  if (text === null) return null;
  const label = setting.labelOf('link');
  if (setting('store') === null) throw new Error(`${label} requires --store`);
  const [, host = '', port = ''] = LINK_ADDRESS.exec(text) ?? [];
  const bare = bareHost(host);
  if (host === '' || Number(port) > 65_535 || /^[0:.]+$/.test(bare)) {
    throw new Error(
      `${label} must be the host:port at which other instances reach this one, such as 10.0.0.1:8444, not ${shown(text)}`,
    );
  }
  return { host: bare, port: Number(port), holdMs: setting('holdMs') };
}

const LINK_ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$/;

function tlsPair(setting: Setting, now: number): TlsPair | null {
  const [certFile, keyFile] = [setting('tlsCert'), setting('tlsKey')];
  if (certFile === null && keyFile === null) return null;
  if (certFile !== null && keyFile !== null) return readTlsPair({ certFile, keyFile }, now);
  const [given, missing] =
    certFile === null ? (['tlsKey', '--tls-cert'] as const) : (['tlsCert', '--tls-key'] as const);
  throw new Error(`${setting.labelOf(given)} requires ${missing}`);
}

function backupSettings(setting: Setting): BackupSettings | null {
  const folder = setting('backupTo');
  const recipients = setting('backupRecipient') ?? [];
  if (folder === null && recipients.length > 0) {
    throw new Error(`${setting.labelOf('backupRecipient')} requires --backup-to`);
  }
  if (folder === null) return null;
  return {
    folder: resolve(folder),
    every: durationOf(setting('backupEvery')),
    keep: setting('backupKeep'),
    recipients,
  };
}

function webhookSettings(setting: Setting): WebhookSettings {
  const allowsPrivate = setting('webhookPrivate');
  return {
    urls: webhookUrls(setting('webhook') ?? [], { allowsPrivate }, setting.labelOf('webhook')),
    allowsPrivate,
    after: setting('webhookAfter'),
  };
}

function federationSettings(setting: Setting): FederationSettings | null {
  const every = durationOf(setting('federationInterval'));
  return every === 0 ? null : { every, allowsPrivate: setting('federationPrivate') };
}

function limitOf(text: string): RateLimit | null {
  const [count, windowSeconds] = text.split('/').map(Number);
  return windowSeconds === undefined ? null : { count: Number(count), windowSeconds };
}

function warningsOf(
  genesis: GenesisBlock,
  operators: readonly OperatorEntry[],
  now: number,
): string[] {
  const warnings: string[] = [];
  if (Date.parse(genesis.network_authority.valid_to) <= now) {
    warnings.push('The authority key in the genesis block is past its validity period');
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
  ).map((path) => `The key file ${path} can be opened by every user of this machine`);
  const ownKey = join(dataDir, FILES.naKey);
  if (setting('signer') !== null && existsSync(ownKey)) {
    warnings.push(
      `${ownKey} is still in the data folder: move it to a place that only the signer can read`,
    );
  }
  const nextKey = nextKeyProblem(setting, dataDir);
  if (nextKey !== null) warnings.push(`The next key cannot be used: ${nextKey}`);
  const backupTo = setting('backupTo');
  if (backupTo !== null && `${resolve(backupTo)}${sep}`.startsWith(`${resolve(dataDir)}${sep}`)) {
    warnings.push('The backups are in the data folder and would be lost together with it');
  }
  return [...warnings, ...exposureWarnings(setting)];
}

const NO_HEAD =
  'A rollback to an older copy of the state would not be detected: keep its head on another volume with --head-file';

/** Warnings about data that others may read in transit. */
export function exposureWarnings(setting: Setting): string[] {
  const warnings: string[] = [];
  const host = setting('host') ?? '';
  if (setting('tlsCert') === null && !isLoopback(host)) {
    warnings.push(
      `Without --tls-cert, invite tokens travel in the clear to ${host}: make sure that only a TLS proxy can reach it, over a trusted network`,
    );
  }
  const isBehindProxy =
    setting('tlsCert') === null && setting('publicUrl')?.startsWith('https:') === true;
  if (isBehindProxy && setting('proxyHops') === 0) {
    warnings.push(
      'The public URL is https, so there must be a proxy, but MESH_PROXY_HOPS is 0: all clients share the address and the rate limits of that proxy',
    );
  }
  return warnings;
}

/** Traffic to these hosts does not leave the machine. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}
