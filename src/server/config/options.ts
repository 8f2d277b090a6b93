/**
 * Every setting of `mesh-na serve`, once: flag, variable, member of the configuration file, default, kind and meaning
 * [core-7]. The command line, the reader of all sources, the schema of the file and docs/configuration.md are derived
 * from this table.
 */
import { isIP } from 'node:net';
import { LOG_FORMATS, LOG_LEVELS } from '../../base/log/logger.ts';
import type { RATE_BUCKETS } from '../../protocol/route-description.ts';
import {
  checkedText,
  DURATION_TEXT,
  JSON_TEXT,
  type Kind,
  list,
  oneOf,
  SHORT_DURATION_OR_OFF,
  STRINGS_BY_NAME,
  SWITCH,
  TEXT,
  text,
  type ValueOf,
  whole,
  wholeOrOff,
} from './kinds.ts';

/** The names of a setting. */
interface Names {
  /** With a placeholder for its value, such as `--port <port>`. */
  readonly flag?: string;
  readonly variable?: string;
  /** Path in the configuration file, if it does not follow from the variable; null if the file cannot set it. */
  readonly member?: string | null;
  /** The default, as text. */
  readonly fallback?: string;
  readonly repeatable?: true;
  /** Whether its value is never shown, because it is a secret or could contain one by mistake. */
  readonly isSecret?: boolean;
}

export interface OptionEntry extends Names {
  readonly member: string | null;
  readonly kind: Kind;
  readonly help: string;
}

function option<const N extends Names, K extends Kind>(kind: K, names: N, help: string) {
  const { member = memberOf(names.variable ?? '') }: Names = names;
  return { ...names, member, kind, help };
}

/** Settings with these prefixes are grouped in objects of the configuration file. */
const OBJECTS = /^(tls|log|backup|webhook|federation|retention|rate_limit)_/;

/** The member of the configuration file for a variable. */
function memberOf(variable: string): string {
  return variable
    .replace(/^MESH_/, '')
    .toLowerCase()
    .replace(OBJECTS, '$1.');
}

const DAYS = whole(0, 36_500);
const LIMIT = text(
  '^(off|[1-9][0-9]{0,8}/[1-9][0-9]{0,5})$',
  'off, or count/seconds such as 30/60',
);
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?$/;
const HOST = checkedText(
  (host) => isIP(host) !== 0 || HOST_NAME.test(host),
  'an address of this machine, such as 127.0.0.1, or its name',
);
const PUBLIC_URL = checkedText(
  (url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol),
  'an http or https URL',
);
/** Exact origins as browsers send them; a pattern, a path or `null` would admit more than intended. */
const ORIGINS = list(
  /,/,
  'origins such as https://app.example',
  (origin) =>
    URL.canParse(origin) && new URL(origin).origin === origin && /^https?:[^*]+$/.test(origin),
);

type Bucket = (typeof RATE_BUCKETS)[number] | 'AUTH_FAILURES';

function limit<const B extends Bucket>(bucket: B, fallback: string, help: string) {
  const names = { variable: `MESH_RATE_LIMIT_${bucket}`, fallback };
  return { [`rateLimit.${bucket}`]: option(LIMIT, names, help) } as {
    [Name in `rateLimit.${B}`]: Entry<typeof LIMIT>;
  };
}

type Entry<K extends Kind> = OptionEntry & { readonly kind: K; readonly fallback: string };

/** The settings, by the headings of their documentation. */
export const GROUPS = {
  'Where it listens': {
    host: option(
      HOST,
      { flag: '--host <address>', variable: 'HOST', fallback: '127.0.0.1' },
      'address to listen on',
    ),
    port: option(
      whole(0, 65_535),
      { flag: '--port <port>', variable: 'PORT', fallback: '8443' },
      'port to listen on; 0 picks a free one',
    ),
    tlsCert: option(
      TEXT,
      { flag: '--tls-cert <file>', variable: 'MESH_TLS_CERT' },
      'TLS certificate in PEM form, with its chain; read again on `SIGHUP` and within ten seconds of a change',
    ),
    tlsKey: option(
      TEXT,
      { flag: '--tls-key <file>', variable: 'MESH_TLS_KEY' },
      'the certificate’s private key in PEM form, without a passphrase',
    ),
    threads: option(
      whole(1, 64),
      { flag: '--threads <count>', variable: 'MESH_THREADS' },
      'number of threads that serve HTTP; with 1, the authority’s own thread serves it; unset, one per core, at most 8',
    ),
    publicUrl: option(
      PUBLIC_URL,
      { variable: 'MESH_PUBLIC_URL' },
      'base URL used in documents and pages; unset, the URL of each request',
    ),
    proxyHops: option(
      whole(0, 16),
      { variable: 'MESH_PROXY_HOPS', fallback: '0' },
      'number of trusted proxies in front of the service; forwarded addresses, hosts and schemes are trusted only from them',
    ),
    corsOrigins: option(
      ORIGINS,
      { variable: 'MESH_CORS_ORIGINS' },
      'origins whose pages may call the API from a browser, such as https://app.example; comma-separated',
    ),
    eventReaders: option(
      whole(1, 1_000_000),
      { variable: 'MESH_EVENT_READERS', fallback: '10000' },
      'most concurrent readers of GET /events, divided evenly among the threads',
    ),
    maxRequestBytes: option(
      whole(1024, 1 << 30),
      { variable: 'MESH_MAX_REQUEST_BYTES', fallback: '2097152' },
      'largest request body in bytes; many routes allow less',
    ),
    longestWait: option(
      whole(0, 60_000),
      { variable: 'MESH_LONGEST_WAIT_MS', fallback: '4000' },
      'how many milliseconds a request may wait before it is refused unread; 0 sets no limit',
    ),
  },
  'Identity and state': {
    config: option(
      TEXT,
      { flag: '--config <file>', variable: 'MESH_CONFIG', member: null },
      'configuration file to use instead of `mesh-na.json` in the data folder',
    ),
    dataDir: option(
      TEXT,
      { flag: '--data-dir <folder>', variable: 'MESH_DATA_DIR', fallback: './mesh-data' },
      'folder with keys, genesis block and state',
    ),
    store: option(
      TEXT,
      { flag: '--store <url>', variable: 'MESH_STORE', isSecret: true },
      'PostgreSQL database for the state, such as postgresql://mesh@db:5432/mesh; unset, the state is in the data folder',
    ),
    leaseMs: option(
      whole(500, 60_000),
      { variable: 'MESH_LEASE_MS', fallback: '1500' },
      'with --store: how many milliseconds the write lease lasts if it cannot be renewed; another instance then takes over',
    ),
    link: option(
      TEXT,
      { flag: '--link <host:port>', variable: 'MESH_LINK' },
      'with --store: address at which this instance, while it is active, accepts calls from the others, so that all instances can answer',
    ),
    holdMs: option(
      whole(0, 60_000),
      { variable: 'MESH_HOLD_MS', fallback: '3000' },
      'with --link: how many milliseconds a request is held while another instance takes over',
    ),
    minFree: option(
      whole(0, 1_048_576),
      { variable: 'MESH_MIN_FREE_MB', fallback: '256' },
      'refuse invites, joins and new agents when fewer megabytes are free on the disk of the data folder; 0 never refuses; no effect with --store',
    ),
    genesis: option(
      TEXT,
      { flag: '--genesis <file>', variable: 'GENESIS_FILE' },
      'file with the genesis block; unset, the one in the data folder',
    ),
    genesisJson: option(
      JSON_TEXT,
      { variable: 'GENESIS_JSON' },
      'genesis block as JSON, instead of a file',
    ),
    allowUnsignedGenesis: option(
      SWITCH,
      { flag: '--allow-unsigned-genesis', member: 'allow_unsigned_genesis' },
      'start even if the genesis block has no valid root signature',
    ),
    naPrivateKey: option(
      TEXT,
      { flag: '--na-private-key <file>', variable: 'NA_PRIVATE_KEY_FILE' },
      'key file of the authority; unset, the one in the data folder',
    ),
    naPrivateKeyText: option(
      TEXT,
      { variable: 'NA_PRIVATE_KEY', isSecret: true },
      'key of the authority as base64, instead of a file',
    ),
    signer: option(
      TEXT,
      { flag: '--signer <address>', variable: 'MESH_SIGNER' },
      'socket of the signer process that holds the authority key, such as unix:/run/mesh-na/signer.sock, instead of a key file',
    ),
    keyId: option(
      TEXT,
      { flag: '--key-id <label>', variable: 'NA_KEY_ID' },
      'label of the first authority key in `issued_by` and in signatures; unset, and for later keys, the public key',
    ),
  },
  Operators: {
    operatorPublicKey: option(
      list(null, 'id=key-or-file'),
      {
        flag: '--operator-public-key <id=key-or-file>',
        repeatable: true,
        isSecret: true,
        member: null,
      },
      'operator public key, as base64 or as a file; repeatable',
    ),
    operatorPublicKeys: option(
      STRINGS_BY_NAME,
      { variable: 'OPERATOR_PUBLIC_KEYS_JSON', member: null, isSecret: true },
      'JSON object that maps key ids to public keys',
    ),
    operatorKeyTier: option(
      list(null, 'id=tier'),
      { flag: '--operator-key-tier <id=tier>', repeatable: true, member: null },
      'tier of an operator key: `standard` or `privileged`; repeatable',
    ),
    operatorKeyTiers: option(
      STRINGS_BY_NAME,
      { variable: 'OPERATOR_KEY_TIERS_JSON', member: null },
      'JSON object that maps key ids to tiers',
    ),
    adminSignatureV1: option(
      oneOf('accept', 'refuse'),
      { variable: 'MESH_ADMIN_SIGNATURE_V1', fallback: 'refuse' },
      '`accept` or `refuse` version 1 operator signatures, which bind neither path nor authority',
    ),
  },
  'Nodes and certificates': {
    activeNodeWindow: option(
      whole(1, 86_400),
      { variable: 'MESH_ACTIVE_NODE_WINDOW_SECONDS', fallback: '300' },
      'how many seconds a node counts as active after its last contact',
    ),
    clockTolerance: option(
      whole(1, 3600),
      { variable: 'MESH_CLOCK_TOLERANCE_SECONDS', fallback: '300' },
      'how many seconds the timestamp of a signed request may differ from the current time; always 300 for the removal of an agent',
    ),
    renewalGrace: option(
      wholeOrOff(0, 31_536_000),
      { variable: 'RENEWAL_GRACE_SECONDS', fallback: '900' },
      'how many seconds a certificate stays usable after its renewal, while its key has at most 16 live certificates; with `off`, until it expires',
    ),
    heartbeatSession: option(
      SHORT_DURATION_OR_OFF,
      { variable: 'MESH_HEARTBEAT_SESSION', fallback: '1h' },
      'how long a node may prove its heartbeats with a session key after it has signed one; with `off`, it signs all of them',
    ),
    rolePrefixes: option(
      list(/,/, 'a list of prefixes'),
      { variable: 'MESH_ROLE_PREFIXES' },
      'comma-separated prefixes; each role must begin with one of them; unset, any role is allowed',
    ),
    createdStatus: option(
      oneOf(200, 201),
      { variable: 'MESH_CREATED_STATUS', fallback: '200' },
      'success status for joins, renewals, invites, policies, attestations and treaties: `200`, or `201`, which existing command-line clients need',
    ),
  },
  'Trust between sovereigns': {
    foreignIssuer: option(
      oneOf('allow', 'refuse'),
      { variable: 'MESH_FOREIGN_ISSUER', fallback: 'allow' },
      '`allow` or `refuse` attestations and treaties in the name of another sovereign',
    ),
    commitSubset: option(
      oneOf('on', 'off'),
      { variable: 'MESH_COMMIT_SUBSET', fallback: 'on' },
      '`on` or `off`: whether committed capabilities must be part of the agreement',
    ),
    maxFeedEntries: option(
      whole(1, 10_000_000),
      { variable: 'MESH_MAX_FEED_ENTRIES', fallback: '100000' },
      'most revoked ids in an imported feed',
    ),
    trustCycle: option(
      whole(0, 168),
      { variable: 'MESH_TRUST_CYCLE_HOURS', fallback: '6' },
      'hours between trust cycles, in which the authority tests recognition, revocation and tamper detection end to end with a made-up peer; one runs at startup; 0 disables them',
    ),
  },
  Backups: {
    backupTo: option(
      TEXT,
      { flag: '--backup-to <folder>', variable: 'MESH_BACKUP_TO' },
      'write backups to this folder, which should be on another disk, and remove the oldest ones',
    ),
    backupEvery: option(
      DURATION_TEXT,
      { flag: '--backup-every <time>', variable: 'MESH_BACKUP_EVERY', fallback: '24h' },
      'how often to make a backup, such as 30m, 24h or 7d; counted from the last backup, across restarts',
    ),
    backupKeep: option(
      whole(1, 10_000),
      { flag: '--backup-keep <count>', variable: 'MESH_BACKUP_KEEP', fallback: '7' },
      'how many scheduled backups to keep',
    ),
    backupRecipient: option(
      list(/,/, 'a list of age recipients'),
      { flag: '--backup-recipient <age1…>', variable: 'MESH_BACKUP_RECIPIENT', repeatable: true },
      'encrypt scheduled backups for this age recipient; repeatable; comma-separated in the variable',
    ),
    headFile: option(
      list(null, 'a list of files'),
      { flag: '--head-file <file>', variable: 'MESH_HEAD_FILE', repeatable: true },
      'keep the head of the state in this file, on another volume, so that an older copy of the state is detected; repeatable',
    ),
    newHead: option(
      SWITCH,
      { flag: '--new-head', member: null },
      'accept, for this start only, that a head file is missing or dates from before a restore',
    ),
  },
  Retention: {
    retentionCertificate: option(
      DAYS,
      { variable: 'MESH_RETENTION_CERTIFICATE_DAYS', fallback: '365' },
      'days to keep the last certificate of a key after it expired',
    ),
    retentionRenewed: option(
      DAYS,
      { variable: 'MESH_RETENTION_RENEWED_CERTIFICATE_DAYS', fallback: '1' },
      'days to keep a certificate after it expired if its key has a newer one',
    ),
    retentionInvite: option(
      DAYS,
      { variable: 'MESH_RETENTION_INVITE_DAYS', fallback: '30' },
      'days to keep an invite after it was used or expired',
    ),
    retentionAgent: option(
      DAYS,
      { variable: 'MESH_RETENTION_AGENT_DAYS', fallback: '30' },
      'days to keep an agent registration after it ended',
    ),
  },
  Webhooks: {
    webhook: option(
      list(/\s+/, 'a list of URLs'),
      {
        flag: '--webhook <url>',
        variable: 'MESH_WEBHOOKS',
        member: 'webhook.urls',
        repeatable: true,
        isSecret: true,
      },
      'post signed audit log entries to this URL; repeatable; separated by spaces in the variable',
    ),
    webhookPrivate: option(
      SWITCH,
      { variable: 'MESH_WEBHOOK_PRIVATE', fallback: '0' },
      '1 allows webhooks on this machine, in its private network, and without TLS',
    ),
    webhookAfter: option(
      whole(0, Number.MAX_SAFE_INTEGER),
      { variable: 'MESH_WEBHOOK_AFTER' },
      'index of the entry after which a new webhook begins; 0 starts with the first entry; unset, the end of the log',
    ),
  },
  Federation: {
    federationInterval: option(
      SHORT_DURATION_OR_OFF,
      { variable: 'MESH_FEDERATION_INTERVAL', fallback: '5m' },
      'time between two fetches of the feed and the keys of each sovereign whose treaty has an endpoint, or `off`',
    ),
    federationPrivate: option(
      SWITCH,
      { variable: 'MESH_FEDERATION_PRIVATE', fallback: '0' },
      '1 allows endpoints on this machine, in its private network, and without TLS',
    ),
  },
  Process: {
    logLevel: option(
      oneOf(...LOG_LEVELS),
      { variable: 'MESH_LOG_LEVEL', fallback: 'INFO' },
      '`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`',
    ),
    logFormat: option(
      oneOf(...LOG_FORMATS),
      { variable: 'MESH_LOG_FORMAT', fallback: 'text' },
      '`text` or `json`',
    ),
    logFile: option(
      TEXT,
      { flag: '--log-file <file>', variable: 'MESH_LOG_FILE' },
      'append log lines to this file, which is reopened on `SIGHUP`; unset, standard output, or standard error with --json',
    ),
    livenessFlush: option(
      whole(10, 60_000),
      { variable: 'MESH_LIVENESS_FLUSH_MS', fallback: '1000' },
      'milliseconds between writes of liveness; a crash loses at most this much of it',
    ),
    drain: option(
      whole(0, 300),
      { variable: 'MESH_DRAIN_SECONDS' },
      'how many seconds /readyz answers 503 during a stop before new work is refused; unset, 0 on a terminal and 3 otherwise',
    ),
  },
  'Rate limits': {
    ...limit(
      'ADMIN',
      '30/60',
      'all `POST /admin/*` requests from an address, including those of strangers',
    ),
    ...limit('VERIFY', '60/60', 'requests from an address to each public verification endpoint'),
    ...limit('POLICY_READ', '120/60', 'reads of the data license from an address'),
    ...limit(
      'TRUST_PATH',
      '600/60',
      'trust path queries from an address, including those on `/atlas`; explained ones count both here and in `EXPLAIN`',
    ),
    ...limit(
      'EXPLAIN',
      '60/60',
      'explained trust paths, and pages about them, requested from an address',
    ),
    ...limit(
      'SEARCH',
      '600/60',
      'queries from an address that search, sort or filter lists, or pages about the recognition graph; paging through a list does not count',
    ),
    ...limit('HISTORY', '120/60', 'requests for the history from an address'),
    ...limit('AGENTS', '30/60', 'agent registrations from an address'),
    ...limit('AGENT_DELETE', '30/60', 'agent removals from an address'),
    ...limit('JOIN', '600/60', 'joins from an address'),
    ...limit(
      'JOIN_FAILURES',
      '10/60',
      'joins with an invalid invite from an address; a valid invite always works',
    ),
    ...limit(
      'NODE_FAILURES',
      '60/60',
      'failed node proofs, per address and claimed key; a proof that verifies always passes',
    ),
    ...limit('HEARTBEAT', 'off', 'heartbeats from an address'),
    ...limit('RENEW', 'off', 'renewals from an address'),
    ...limit(
      'AUTH_FAILURES',
      '10/60',
      'refuses nothing: up to this number, refused proofs from an address are audited one by one, further ones as one entry per minute',
    ),
  },
} as const;

type Groups = typeof GROUPS;
type Options = UnionToIntersection<Groups[keyof Groups]>;
type UnionToIntersection<U> = (U extends unknown ? (one: U) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

export const OPTIONS = Object.assign({}, ...Object.values(GROUPS)) as Options;

export type OptionName = keyof Options;

/** The help text of a setting without Markdown markup. */
export function plain(help: string): string {
  return help.replaceAll('`', '');
}

/** The primary name of a setting, for messages. */
export function nameOf(name: OptionName): string {
  const { flag, variable }: OptionEntry = OPTIONS[name];
  return flag?.split(' ')[0] ?? variable ?? name;
}

/** The type of a setting's value; null if it is not set and has no default. */
export type Value<Name extends OptionName> =
  | ValueOf<Options[Name]['kind']>
  | (Options[Name] extends { readonly fallback: string } ? never : null);

/** The values of flags by option name, as parsed from the command line. */
export type Flags = {
  readonly [Name in OptionName]?: string | boolean | readonly string[] | undefined;
};
export type Environment = { readonly [name: string]: string | undefined };

export const SOURCES = ['flag', 'variable', 'file', 'default'] as const;
export type Source = (typeof SOURCES)[number];

/**
 * Reads one setting from the first source that sets it: flag, variable, configuration file, default. Null if none does.
 */
export interface Setting {
  <Name extends OptionName>(name: Name): Value<Name>;
  /** The name under which it was given, for messages. */
  labelOf(name: OptionName): string;
  sourceOf(name: OptionName): Source;
}
