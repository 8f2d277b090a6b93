/**
 * Every setting of `mesh-na serve`, once: flag, variable, member of the configuration file, default, kind and meaning
 * [core-7]. The command line, the reading of all sources, the schema of the file and docs/configuration.md follow
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
  STRINGS_BY_NAME,
  SWITCH,
  TEXT,
  text,
  type ValueOf,
  whole,
  wholeOrOff,
} from './kinds.ts';

/** Under which names a setting is given. */
interface Names {
  /** With its value's name, as `--port <port>`. */
  readonly flag?: string;
  readonly variable?: string;
  /** Path in the configuration file, where it does not follow from the variable; null for none. */
  readonly member?: string | null;
  /** The default, as text. */
  readonly fallback?: string;
  readonly repeatable?: true;
  /** Whether its value is shown nowhere: it is secret, or a secret may be there by mistake. */
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

/** What belongs together is in an object of the file. */
const OBJECTS = /^(tls|log|backup|webhook|retention|rate_limit)_/;

/** The name of the variable, as it is in the configuration file. */
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
/** Exact origins as browsers send them; a pattern, a path or `null` would let in more than was meant. */
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

/** By the titles under which they are documented. */
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
      'its private key in PEM form, without a passphrase',
    ),
    threads: option(
      whole(1, 64),
      { flag: '--threads <count>', variable: 'MESH_THREADS' },
      'threads that serve HTTP; with 1 the thread of the authority serves it too; unset, one per core, at most 8',
    ),
    publicUrl: option(
      PUBLIC_URL,
      { variable: 'MESH_PUBLIC_URL' },
      'base URL that documents and pages publish; unset, that of each request',
    ),
    proxyHops: option(
      whole(0, 16),
      { variable: 'MESH_PROXY_HOPS', fallback: '0' },
      'how many trusted proxies stand in front; forwarded addresses, hosts and schemes count only within them',
    ),
    corsOrigins: option(
      ORIGINS,
      { variable: 'MESH_CORS_ORIGINS' },
      'origins whose pages may use the API from a browser, such as https://app.example; comma-separated',
    ),
    eventReaders: option(
      whole(1, 1_000_000),
      { variable: 'MESH_EVENT_READERS', fallback: '10000' },
      'most readers of GET /events at a time, divided evenly among the threads',
    ),
    maxRequestBytes: option(
      whole(1024, 1 << 30),
      { variable: 'MESH_MAX_REQUEST_BYTES', fallback: '2097152' },
      'bytes of the largest request body; many routes allow fewer',
    ),
    longestWait: option(
      whole(0, 60_000),
      { variable: 'MESH_LONGEST_WAIT_MS', fallback: '4000' },
      'how many milliseconds a request of a node may wait before it is turned away unread; 0 sets no limit',
    ),
  },
  'Identity and state': {
    config: option(
      TEXT,
      { flag: '--config <file>', variable: 'MESH_CONFIG', member: null },
      'configuration file, in place of `mesh-na.json` in the data folder',
    ),
    dataDir: option(
      TEXT,
      { flag: '--data-dir <folder>', variable: 'MESH_DATA_DIR', fallback: './mesh-data' },
      'keys, genesis and state',
    ),
    store: option(
      TEXT,
      { flag: '--store <url>', variable: 'MESH_STORE', isSecret: true },
      'PostgreSQL database that holds the state, such as postgresql://mesh@db:5432/mesh; unset, the data folder holds it',
    ),
    leaseMs: option(
      whole(500, 60_000),
      { variable: 'MESH_LEASE_MS', fallback: '1500' },
      'with --store: how many milliseconds the right to write lasts when it cannot be renewed; another instance then takes over',
    ),
    link: option(
      TEXT,
      { flag: '--link <host:port>', variable: 'MESH_LINK' },
      'with --store: where this instance accepts the calls of the others while it writes, so that all instances answer',
    ),
    holdMs: option(
      whole(0, 60_000),
      { variable: 'MESH_HOLD_MS', fallback: '3000' },
      'with --link: how many milliseconds a request is held while another instance takes over',
    ),
    minFree: option(
      whole(0, 1_048_576),
      { variable: 'MESH_MIN_FREE_MB', fallback: '256' },
      'with fewer megabytes free on the disk of the data folder, invites, joins and new agents are refused; 0 never refuses; no effect with --store',
    ),
    genesis: option(
      TEXT,
      { flag: '--genesis <file>', variable: 'GENESIS_FILE' },
      'file with the genesis block; unset, that of the data folder',
    ),
    genesisJson: option(
      JSON_TEXT,
      { variable: 'GENESIS_JSON' },
      'the genesis block itself, instead of a file',
    ),
    allowUnsignedGenesis: option(
      SWITCH,
      { flag: '--allow-unsigned-genesis', member: 'allow_unsigned_genesis' },
      'start with a genesis block that has no valid root signature',
    ),
    naPrivateKey: option(
      TEXT,
      { flag: '--na-private-key <file>', variable: 'NA_PRIVATE_KEY_FILE' },
      'key file of the authority; unset, that of the data folder',
    ),
    naPrivateKeyText: option(
      TEXT,
      { variable: 'NA_PRIVATE_KEY', isSecret: true },
      'the key itself, instead of a file',
    ),
    signer: option(
      TEXT,
      { flag: '--signer <address>', variable: 'MESH_SIGNER' },
      'socket of the process that holds the authority key, such as unix:/run/mesh-na/signer.sock, instead of a key file',
    ),
    keyId: option(
      TEXT,
      { flag: '--key-id <label>', variable: 'NA_KEY_ID' },
      'label of the authority key in `issued_by` and in signatures; unset, the public key',
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
      'operator key, as base64 or as a file; repeatable',
    ),
    operatorPublicKeys: option(
      STRINGS_BY_NAME,
      { variable: 'OPERATOR_PUBLIC_KEYS_JSON', member: null, isSecret: true },
      'JSON object from key id to key',
    ),
    operatorKeyTier: option(
      list(null, 'id=tier'),
      { flag: '--operator-key-tier <id=tier>', repeatable: true, member: null },
      'tier of an operator key: `standard` or `privileged`; repeatable',
    ),
    operatorKeyTiers: option(
      STRINGS_BY_NAME,
      { variable: 'OPERATOR_KEY_TIERS_JSON', member: null },
      'JSON object from key id to tier',
    ),
    adminSignatureV1: option(
      oneOf('accept', 'refuse'),
      { variable: 'MESH_ADMIN_SIGNATURE_V1', fallback: 'accept' },
      '`accept` or `refuse` operator signatures of version 1, which bind neither path nor authority; `init` writes `refuse` into `mesh-na.json`',
    ),
  },
  'Nodes and certificates': {
    activeNodeWindow: option(
      whole(1, 86_400),
      { variable: 'MESH_ACTIVE_NODE_WINDOW_SECONDS', fallback: '300' },
      'how many seconds after its last contact a node counts as active',
    ),
    clockTolerance: option(
      whole(1, 3600),
      { variable: 'MESH_CLOCK_TOLERANCE_SECONDS', fallback: '300' },
      'how many seconds a signed request may be old or ahead; for the removal of an agent it is always 300',
    ),
    renewalGrace: option(
      wholeOrOff(0, 31_536_000),
      { variable: 'RENEWAL_GRACE_SECONDS', fallback: '900' },
      'how many seconds a renewed certificate stays usable, while its key has at most 16 live ones; with `off`, until it expires',
    ),
    rolePrefixes: option(
      list(/,/, 'a list of prefixes'),
      { variable: 'MESH_ROLE_PREFIXES' },
      'prefixes, one of which a role must begin with, comma-separated; unset, any role is allowed',
    ),
    createdStatus: option(
      oneOf(200, 201),
      { variable: 'MESH_CREATED_STATUS', fallback: '200' },
      'success status of join, renewal, invite, policy, attestation and treaty: `200`, or `201`, which existing command-line clients need',
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
      '`on` or `off`: whether committed capabilities must be among those of the agreement',
    ),
    maxFeedEntries: option(
      whole(1, 10_000_000),
      { variable: 'MESH_MAX_FEED_ENTRIES', fallback: '100000' },
      'how many revoked ids an imported feed may list',
    ),
    trustCycle: option(
      whole(0, 168),
      { variable: 'MESH_TRUST_CYCLE_HOURS', fallback: '6' },
      'how many hours lie between trust cycles, in which the authority checks recognition, revocation and tampering from end to end with an invented peer; one runs at the start; 0 is never',
    ),
  },
  'Backups and damage': {
    backupTo: option(
      TEXT,
      { flag: '--backup-to <folder>', variable: 'MESH_BACKUP_TO' },
      'write backups to this folder, on another disk, and remove the oldest of them',
    ),
    backupEvery: option(
      DURATION_TEXT,
      { flag: '--backup-every <time>', variable: 'MESH_BACKUP_EVERY', fallback: '24h' },
      'how often to make one, such as 30m, 24h or 7d; counted from the last one, across restarts',
    ),
    backupKeep: option(
      whole(1, 10_000),
      { flag: '--backup-keep <count>', variable: 'MESH_BACKUP_KEEP', fallback: '7' },
      'how many of these backups to keep',
    ),
    backupRecipient: option(
      list(/,/, 'a list of recipients of age'),
      { flag: '--backup-recipient <age1…>', variable: 'MESH_BACKUP_RECIPIENT', repeatable: true },
      'encrypt these backups for this recipient of age; repeatable, in the variable comma-separated',
    ),
    headFile: option(
      list(null, 'a list of files'),
      { flag: '--head-file <file>', variable: 'MESH_HEAD_FILE', repeatable: true },
      'keep the head of the state in this file, on another volume, so that an older copy of the state is detected; repeatable',
    ),
    newHead: option(
      SWITCH,
      { flag: '--new-head', member: null },
      'accept once that a head file is missing, or dates from before a restore',
    ),
    scrubHours: option(
      whole(0, 8760),
      { variable: 'MESH_SCRUB_HOURS', fallback: '168' },
      'in how many hours all rows of the state are read once, to find damage; 0 is never',
    ),
  },
  Retention: {
    retentionCertificate: option(
      DAYS,
      { variable: 'MESH_RETENTION_CERTIFICATE_DAYS', fallback: '365' },
      'how many days the last certificate of a key is kept after it expired',
    ),
    retentionRenewed: option(
      DAYS,
      { variable: 'MESH_RETENTION_RENEWED_CERTIFICATE_DAYS', fallback: '1' },
      'how many days a certificate is kept after it expired when its key has a newer one',
    ),
    retentionInvite: option(
      DAYS,
      { variable: 'MESH_RETENTION_INVITE_DAYS', fallback: '30' },
      'how many days an invite is kept after it was used or expired',
    ),
    retentionAgent: option(
      DAYS,
      { variable: 'MESH_RETENTION_AGENT_DAYS', fallback: '30' },
      'how many days an agent registration that has ended is kept',
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
      'post the entries of the audit log to this URL, signed; repeatable, in the variable separated by blanks',
    ),
    webhookPrivate: option(
      SWITCH,
      { variable: 'MESH_WEBHOOK_PRIVATE', fallback: '0' },
      '1 allows webhooks on this machine, in its private network, and without TLS',
    ),
    webhookAfter: option(
      whole(0, Number.MAX_SAFE_INTEGER),
      { variable: 'MESH_WEBHOOK_AFTER' },
      'index of the entry after which a new webhook begins; 0 is before the first; unset, the end of the log',
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
      'append log lines to this file, and reopen it on `SIGHUP`; unset, standard output, or standard error with --json',
    ),
    livenessFlush: option(
      whole(10, 60_000),
      { variable: 'MESH_LIVENESS_FLUSH_MS', fallback: '1000' },
      'how many milliseconds lie between writes of liveness; a crash loses at most the liveness of this time',
    ),
    drain: option(
      whole(0, 300),
      { variable: 'MESH_DRAIN_SECONDS' },
      'how many seconds /readyz answers 503 before a stop refuses work; unset, 0 on a terminal and 3 elsewhere',
    ),
  },
  'Rate limits': {
    ...limit(
      'ADMIN',
      '30/60',
      'all `POST /admin/*` of an address together, also those of strangers',
    ),
    ...limit(
      'ADMIN_FAILURES',
      'off',
      'operator requests of an address and key id that fail authentication; set it, for example to `30/60`, where strangers share the address of operators: what fails is then counted here and no longer in `ADMIN`',
    ),
    ...limit('VERIFY', '60/60', 'requests of an address to each public verification endpoint'),
    ...limit('POLICY_READ', '120/60', 'reads of the data license by an address'),
    ...limit(
      'TRUST_PATH',
      '600/60',
      'questions of an address about trust paths, on `/atlas` too; explained ones count here and in `EXPLAIN`',
    ),
    ...limit('EXPLAIN', '60/60', 'explained trust paths, and pages about them, read by an address'),
    ...limit('AGENTS', '30/60', 'registrations of agents from an address'),
    ...limit('AGENT_DELETE', '30/60', 'removals of agents from an address'),
    ...limit('JOIN', '600/60', 'joins from an address'),
    ...limit(
      'JOIN_FAILURES',
      '10/60',
      'joins from an address whose invite is not valid; a valid invite always works',
    ),
    ...limit(
      'NODE_FAILURES',
      '60/60',
      'failed node proofs of an address and claimed key; a proof that verifies always passes',
    ),
    ...limit('HEARTBEAT', 'off', 'heartbeats from an address'),
    ...limit('RENEW', 'off', 'renewals from an address'),
    ...limit(
      'AUTH_FAILURES',
      '10/60',
      'refuses nothing: up to this number, refused proofs of an address are audited one by one, further ones as one entry a minute',
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

/** The meaning of a setting without the marks of Markdown. */
export function plain(help: string): string {
  return help.replaceAll('`', '');
}

/** The name under which a setting is best known. */
export function nameOf(name: OptionName): string {
  const { flag, variable }: OptionEntry = OPTIONS[name];
  return flag?.split(' ')[0] ?? variable ?? name;
}

/** What a setting is read as; null when it is given nowhere and has no default. */
export type Value<Name extends OptionName> =
  | ValueOf<Options[Name]['kind']>
  | (Options[Name] extends { readonly fallback: string } ? never : null);

/** Values of flags by option name, as the command line gave them. */
export type Flags = { readonly [Name in OptionName]?: string | boolean | readonly string[] };
export type Environment = { readonly [name: string]: string | undefined };

export const SOURCES = ['flag', 'variable', 'file', 'default'] as const;
export type Source = (typeof SOURCES)[number];

/** Reads one setting: the flag, else the variable, else the configuration file, else the default; or null. */
export interface Setting {
  <Name extends OptionName>(name: Name): Value<Name>;
  /** The name under which it was given, for messages. */
  labelOf(name: OptionName): string;
  sourceOf(name: OptionName): Source;
}
