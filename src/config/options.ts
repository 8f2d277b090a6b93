/**
 * Every setting of `mesh-na serve`: flag, environment variable, default and meaning [core-7].
 * `load.ts` reads it, the command line is built from it, and docs/configuration.md is made from it.
 */
import type { RATE_BUCKETS } from '../http/rate-limit.ts';

export interface OptionEntry {
  /** Flag with its value's name, as `--port <port>`; null when there is only a variable. */
  readonly flag: string | null;
  readonly variable: string | null;
  /** Null when there is no default. */
  readonly fallback: string | null;
  readonly help: string;
  readonly repeatable?: true;
}

function option(
  flag: string | null,
  variable: string | null,
  fallback: string | null,
  help: string,
): OptionEntry {
  return { flag, variable, fallback, help };
}

export const OPTIONS = {
  dataDir: option('--data-dir <folder>', 'MESH_DATA_DIR', './mesh-data', 'keys, genesis and state'),
  store: option(
    '--store <url>',
    'MESH_STORE',
    null,
    'PostgreSQL database that holds the state, such as postgresql://mesh@db:5432/mesh; else the data folder does',
  ),
  leaseMs: option(
    null,
    'MESH_LEASE_MS',
    '1500',
    'with --store: how long the right to write lasts when it cannot be renewed; another instance takes over after it',
  ),
  minFree: option(
    null,
    'MESH_MIN_FREE_MB',
    '256',
    'with fewer megabytes free on the disk of the data folder, invites, joins and new agents are refused; 0 refuses none; without effect with --store',
  ),
  link: option(
    '--link <host:port>',
    'MESH_LINK',
    null,
    'with --store: where this instance takes the calls of the others while it writes; all instances answer then',
  ),
  holdMs: option(
    null,
    'MESH_HOLD_MS',
    '3000',
    'with --link: how long a request is held while another instance takes over',
  ),
  headFile: {
    ...option(
      '--head-file <file>',
      'MESH_HEAD_FILE',
      null,
      'keep the head of the state in this file, on another volume, so that an older copy of the state is found out; repeatable',
    ),
    repeatable: true,
  },
  scrubHours: option(
    null,
    'MESH_SCRUB_HOURS',
    '168',
    'within how many hours all rows of the state are read, to find damage; 0 is never',
  ),
  backupTo: option(
    '--backup-to <folder>',
    'MESH_BACKUP_TO',
    null,
    'make backups into this folder, on another disk, and remove older ones of its own',
  ),
  backupEvery: option(
    '--backup-every <time>',
    'MESH_BACKUP_EVERY',
    '24h',
    'how often, such as 30m, 24h or 7d; counted from the last one, also after a start',
  ),
  backupKeep: option(
    '--backup-keep <count>',
    'MESH_BACKUP_KEEP',
    '7',
    'how many of those backups are kept',
  ),
  backupRecipient: {
    ...option(
      '--backup-recipient <age1…>',
      'MESH_BACKUP_RECIPIENT',
      null,
      'encrypt those backups for this recipient of age; repeatable, the variable comma-separated',
    ),
    repeatable: true,
  },
  newHead: option(
    '--new-head',
    null,
    null,
    'accept once that a head file is missing, or from before a restore',
  ),
  host: option('--host <address>', 'HOST', '127.0.0.1', 'address to listen on'),
  port: option('--port <port>', 'PORT', '8443', 'port to listen on; 0 picks a free one'),
  tlsCert: option(
    '--tls-cert <file>',
    'MESH_TLS_CERT',
    null,
    'TLS certificate in PEM form, with its chain; read again on SIGHUP and when it changes',
  ),
  tlsKey: option('--tls-key <file>', 'MESH_TLS_KEY', null, 'its private key in PEM form'),
  threads: option(
    '--threads <count>',
    'MESH_THREADS',
    null,
    'threads that serve HTTP; 1 serves from the thread of the authority; unset is one per core, at most 8',
  ),
  genesis: option(
    '--genesis <file>',
    'GENESIS_FILE',
    null,
    'genesis block, else the data folder’s',
  ),
  genesisJson: option(null, 'GENESIS_JSON', null, 'genesis block itself, instead of a file'),
  naPrivateKey: option(
    '--na-private-key <file>',
    'NA_PRIVATE_KEY_FILE',
    null,
    'key file of the authority, else the data folder’s',
  ),
  naPrivateKeyText: option(null, 'NA_PRIVATE_KEY', null, 'the key itself, instead of a file'),
  signer: option(
    '--signer <address>',
    'MESH_SIGNER',
    null,
    'socket of the process that holds the authority key, such as unix:/run/mesh-na/signer.sock, instead of a key file',
  ),
  keyId: option('--key-id <label>', 'NA_KEY_ID', null, 'label of the authority key, else the key'),
  allowUnsignedGenesis: option(
    '--allow-unsigned-genesis',
    null,
    null,
    'start with a genesis block that has no valid root signature',
  ),
  operatorPublicKey: {
    ...option('--operator-public-key <id=key-or-file>', null, null, 'operator key; repeatable'),
    repeatable: true,
  },
  operatorPublicKeys: option(null, 'OPERATOR_PUBLIC_KEYS_JSON', null, 'object: key id to key'),
  operatorKeyTier: {
    ...option('--operator-key-tier <id=tier>', null, null, 'standard or privileged; repeatable'),
    repeatable: true,
  },
  operatorKeyTiers: option(null, 'OPERATOR_KEY_TIERS_JSON', null, 'object: key id to tier'),
  logLevel: option(null, 'MESH_LOG_LEVEL', 'INFO', 'DEBUG, INFO, WARNING, ERROR or CRITICAL'),
  logFormat: option(null, 'MESH_LOG_FORMAT', 'text', 'text or json'),
  logFile: option(
    '--log-file <file>',
    'MESH_LOG_FILE',
    null,
    'append log lines to this file, and open it anew on SIGHUP; else standard output, or standard error with --json',
  ),
  publicUrl: option(
    null,
    'MESH_PUBLIC_URL',
    null,
    'public base URL; otherwise taken from the request',
  ),
  corsOrigins: option(
    null,
    'MESH_CORS_ORIGINS',
    null,
    'origins whose pages may use the API from a browser, such as https://app.example; comma-separated',
  ),
  proxyHops: option(null, 'MESH_PROXY_HOPS', '0', 'trusted proxies in front of the authority'),
  maxRequestBytes: option(null, 'MESH_MAX_REQUEST_BYTES', '2097152', 'largest request body'),
  longestWait: option(
    null,
    'MESH_LONGEST_WAIT_MS',
    '4000',
    'how long a request of a node may wait before it is turned away unread; 0 is for ever',
  ),
  maxFeedEntries: option(
    null,
    'MESH_MAX_FEED_ENTRIES',
    '100000',
    'revoked ids that an imported feed may list',
  ),
  eventReaders: option(
    null,
    'MESH_EVENT_READERS',
    '10000',
    'readers of GET /events at most, shared out evenly among the threads',
  ),
  webhook: {
    ...option(
      '--webhook <url>',
      'MESH_WEBHOOKS',
      null,
      'post the entries of the audit log to this URL, signed; repeatable, the variable separated by blanks',
    ),
    repeatable: true,
  },
  webhookPrivate: option(
    null,
    'MESH_WEBHOOK_PRIVATE',
    '0',
    '1 lets webhooks be on this machine, in its private network, and without TLS',
  ),
  webhookAfter: option(
    null,
    'MESH_WEBHOOK_AFTER',
    null,
    'index of the entry after which a new webhook begins; 0 is before the first, unset the end of the log',
  ),
  adminSignatureV1: option(
    null,
    'MESH_ADMIN_SIGNATURE_V1',
    'accept',
    'accept or refuse operator signatures of version 1; init writes refuse into the data folder',
  ),
  createdStatus: option(null, 'MESH_CREATED_STATUS', '200', '200 or 201 on the routes that create'),
  activeNodeWindow: option(
    null,
    'MESH_ACTIVE_NODE_WINDOW_SECONDS',
    '300',
    'how long after its last contact a node counts as active',
  ),
  clockTolerance: option(
    null,
    'MESH_CLOCK_TOLERANCE_SECONDS',
    '300',
    'how old or ahead a signed request may be',
  ),
  renewalGrace: option(
    null,
    'RENEWAL_GRACE_SECONDS',
    '900',
    'how long a renewed certificate stays usable; off is until it expires',
  ),
  rolePrefixes: option(
    null,
    'MESH_ROLE_PREFIXES',
    null,
    'comma-separated prefixes, one of which a role must have',
  ),
  foreignIssuer: option(
    null,
    'MESH_FOREIGN_ISSUER',
    'allow',
    'allow or refuse issuing in the name of another sovereign',
  ),
  commitSubset: option(
    null,
    'MESH_COMMIT_SUBSET',
    'on',
    'on or off: whether committed capabilities must be among those of the agreement',
  ),
  livenessFlush: option(
    null,
    'MESH_LIVENESS_FLUSH_MS',
    '1000',
    'how often liveness is written; a crash loses at most this much of it',
  ),
  retentionCertificate: option(
    null,
    'MESH_RETENTION_CERTIFICATE_DAYS',
    '365',
    'how long the last certificate of a key is kept after it expired',
  ),
  retentionRenewed: option(
    null,
    'MESH_RETENTION_RENEWED_CERTIFICATE_DAYS',
    '1',
    'how long a certificate is kept after it expired when its key has a newer one',
  ),
  retentionInvite: option(
    null,
    'MESH_RETENTION_INVITE_DAYS',
    '30',
    'how long an invite is kept after it was used or expired',
  ),
  retentionAgent: option(
    null,
    'MESH_RETENTION_AGENT_DAYS',
    '30',
    'how long an agent registration that has ended is kept',
  ),
  drain: option(
    null,
    'MESH_DRAIN_SECONDS',
    null,
    'how long /readyz answers 503 before a stop refuses work; unset is 0 on a terminal, else 3',
  ),
  trustCycle: option(
    null,
    'MESH_TRUST_CYCLE_HOURS',
    '6',
    'how often the authority checks its own trust decisions, in addition to the start; 0 is never',
  ),
} as const satisfies Record<string, OptionEntry>;

export type OptionName = keyof typeof OPTIONS;

/** Buckets and their defaults, `count/seconds` or `off` [core-4-1]. */
export const RATE_LIMIT_DEFAULTS = {
  ADMIN: '30/60',
  ADMIN_FAILURES: 'off',
  VERIFY: '60/60',
  POLICY_READ: '120/60',
  TRUST_PATH: '600/60',
  EXPLAIN: '60/60',
  AGENTS: '30/60',
  AGENT_DELETE: '30/60',
  JOIN: '600/60',
  JOIN_FAILURES: '10/60',
  NODE_FAILURES: '60/60',
  HEARTBEAT: 'off',
  RENEW: 'off',
  AUTH_FAILURES: '10/60',
} as const satisfies Record<(typeof RATE_BUCKETS)[number] | 'AUTH_FAILURES', string>;

export function rateLimitVariable(bucket: string): string {
  return `MESH_RATE_LIMIT_${bucket}`;
}

/** Values of flags by option name, as the command line gave them. */
export type Flags = { readonly [Name in OptionName]?: string | boolean | readonly string[] };
export type Environment = { readonly [name: string]: string | undefined };
/** Reads one setting: the flag, else the variable, else the folder's file, else the default; or null. */
export interface Setting {
  (name: OptionName): string | null;
  /** The name under which it was given, for messages. */
  labelOf(name: OptionName): string;
}
