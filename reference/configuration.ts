/** `docs/configuration.md`: every setting of `mesh-na serve`. */
import {
  OPTIONS,
  type OptionEntry,
  type OptionName,
  RATE_LIMIT_DEFAULTS,
  rateLimitVariable,
} from '../src/config/options.ts';
import { code, escaped, page, sentence, table } from './markdown.ts';

const INTRODUCTION = `Settings of \`mesh-na serve\`. None is needed to begin with: \`mesh-na init\` writes keys, a genesis block and
\`mesh-na.json\` into the data folder, and \`mesh-na serve\` reads them.

A flag wins over an environment variable, a variable over \`mesh-na.json\` in the data folder, and that over the default.
Operator keys and tiers of all three are merged; a contradiction refuses the start, and so does a key without a tier. A
value that cannot be read refuses the start with exit code 3 and a sentence that names the setting.`;

const GROUPS: readonly { readonly title: string; readonly options: readonly OptionName[] }[] = [
  {
    title: 'Where it listens',
    options: ['host', 'port', 'tlsCert', 'tlsKey', 'threads', 'publicUrl', 'proxyHops'],
  },
  {
    title: 'Identity and state',
    options: [
      'dataDir',
      'store',
      'leaseMs',
      'link',
      'holdMs',
      'genesis',
      'genesisJson',
      'allowUnsignedGenesis',
      'naPrivateKey',
      'naPrivateKeyText',
      'signer',
      'keyId',
    ],
  },
  {
    title: 'Operators',
    options: [
      'operatorPublicKey',
      'operatorPublicKeys',
      'operatorKeyTier',
      'operatorKeyTiers',
      'adminSignatureV1',
    ],
  },
  {
    title: 'Nodes and certificates',
    options: [
      'activeNodeWindow',
      'clockTolerance',
      'renewalGrace',
      'rolePrefixes',
      'createdStatus',
    ],
  },
  {
    title: 'Trust between sovereigns',
    options: ['foreignIssuer', 'commitSubset', 'maxFeedEntries', 'trustCycle'],
  },
  {
    title: 'Retention',
    options: ['retentionCertificate', 'retentionRenewed', 'retentionInvite', 'retentionAgent'],
  },
  {
    title: 'Process',
    options: [
      'logLevel',
      'logFormat',
      'logFile',
      'maxRequestBytes',
      'longestWait',
      'livenessFlush',
      'drain',
    ],
  },
];

/** Longer explanations for newcomers, used instead of the line of help. */
const MEANINGS: { readonly [Name in OptionName]?: string } = {
  threads:
    'Threads that serve HTTP, by default one per core, at most 8. With 1 the thread of the authority serves by itself.',
  tlsCert:
    'File with the TLS certificate in PEM form, followed by those of its issuers. Read again on `SIGHUP` and within ten seconds of a change.',
  tlsKey: 'File with the private key of that certificate in PEM form, without a passphrase.',
  publicUrl: 'Base URL that documents and pages publish. By default that of each request.',
  proxyHops:
    'How many trusted proxies stand in front. Forwarded addresses, hosts and schemes count only within them.',
  genesis: 'File with the genesis block. By default that of the data folder.',
  genesisJson: 'The genesis block itself, in place of a file.',
  naPrivateKey: 'File with the key of the authority. By default that of the data folder.',
  naPrivateKeyText: 'The key itself, in place of a file.',
  keyId:
    'Label of the key of the authority in `issued_by` and in signatures. By default the public key.',
  operatorPublicKey: 'An operator key, as base64 or as a file. Can be repeated.',
  operatorPublicKeys: 'Operator keys as one JSON object, from key id to key.',
  operatorKeyTier: 'Tier of an operator key: `standard` or `privileged`. Can be repeated.',
  operatorKeyTiers: 'Tiers as one JSON object, from key id to tier.',
  adminSignatureV1:
    '`accept` or `refuse` operator signatures of version 1, which bind neither path nor authority. By default what `mesh-na.json` says, where `init` writes `refuse`; without it `accept`.',
  clockTolerance:
    'How many seconds a signed request may be old or ahead. For the removal of an agent it is always 300.',
  activeNodeWindow: 'How many seconds after its last contact a node counts as active.',
  renewalGrace:
    'How many seconds a renewed certificate stays usable; with `off`, until it expires.',
  rolePrefixes:
    'Prefixes, separated by commas, one of which each role must begin with. By default any role is allowed.',
  createdStatus:
    'Status of success of join, renewal, invite, policy, attestation and treaty: `200` or `201`. Existing command lines need `201`.',
  foreignIssuer: '`allow` or `refuse` attestations and treaties in the name of another sovereign.',
  commitSubset:
    '`on` or `off`: whether capabilities that are committed to must be among those of the agreement.',
  maxFeedEntries: 'How many revoked ids an imported feed may list.',
  trustCycle:
    'How many hours lie between trust cycles, in which the authority checks recognition, revocation and tampering from end to end with an invented peer. One runs at the start; `0` is never.',
  retentionCertificate: 'How many days the last certificate of a key is kept after it expired.',
  retentionRenewed:
    'How many days a certificate is kept after it expired when its key has a newer one.',
  retentionInvite: 'How many days an invite is kept after it was used or expired.',
  retentionAgent: 'How many days an agent registration that has ended is kept.',
  logLevel: '`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`.',
  logFormat: '`text` or `json`.',
  logFile:
    'File that log lines are appended to, and that `SIGHUP` opens anew. By default they go to standard output, with `--json` to standard error.',
  maxRequestBytes: 'Bytes of the largest request body, where the route allows so much.',
  livenessFlush:
    'How many milliseconds lie between writes of liveness. A crash loses at most so much of it.',
  drain:
    'How many seconds `/readyz` answers 503 before a stop refuses work. By default 0 on a terminal, else 3.',
};

const RATE_LIMITS = `A limit is \`count/seconds\`, or \`off\`. Windows slide, refused requests are not counted, and limits are forgotten at a
restart. An address is an IPv4 address or the /64 of an IPv6 address.`;

const LARGE_BODIES = `Bodies above 256 KiB (feed imports, large policies) have to be read before their signature can be checked. Those that
prove to be forged are bounded whatever the limits: six a minute on each thread, two of one address; further ones are
answered \`429 admin_auth_throttled\` unread. That does not hold up an operator whose address has lately sent a request
that verified under the same key to the same thread: within ten minutes of any, \`mesh-na policy list\` for one, the
address has an allowance of its own.`;

const BUCKETS: Readonly<Record<keyof typeof RATE_LIMIT_DEFAULTS, string>> = {
  ADMIN: 'all `POST /admin/*` of an address together, also those of strangers',
  ADMIN_FAILURES:
    'operator requests of an address and key id that fail authentication; set it, for example to `30/60`, where strangers share the address of operators: what fails is then counted here and no longer in `ADMIN`',
  VERIFY: 'requests of an address to each public verification endpoint',
  POLICY_READ: 'reads of the data license by an address',
  EXPLAIN: 'explained trust paths, and pages about them, read by an address',
  TRUST_PATH:
    'questions of an address about trust paths, on `/atlas` too; explained ones count here and in `EXPLAIN`',
  AGENTS: 'registrations of agents from an address',
  AGENT_DELETE: 'removals of agents from an address',
  JOIN: 'joins from an address',
  JOIN_FAILURES: 'joins from an address whose invite is not valid; a valid invite always works',
  NODE_FAILURES:
    'failed node proofs of an address and claimed key; a proof that verifies always passes',
  HEARTBEAT: 'heartbeats from an address',
  RENEW: 'renewals from an address',
  AUTH_FAILURES:
    'refuses nothing: so many refused proofs of an address are audited one by one, further ones as one entry a minute',
};

export function configurationPage(): string {
  const grouped = new Set(GROUPS.flatMap(({ options }) => options));
  const others = (Object.keys(OPTIONS) as OptionName[]).filter((name) => !grouped.has(name));
  const groups = others.length === 0 ? GROUPS : [...GROUPS, { title: 'More', options: others }];
  return page(
    'Configuration',
    INTRODUCTION,
    ...groups.map(({ title, options }) => `## ${title}\n\n${tableOf(options)}`),
    `## Rate limits\n\n${RATE_LIMITS}\n\n${limitTable()}\n\n${LARGE_BODIES}`,
  );
}

function tableOf(names: readonly OptionName[]): string {
  const rows = names.map((name) => {
    const { flag, variable, fallback, help }: OptionEntry = OPTIONS[name];
    const meaning = MEANINGS[name] ?? escaped(sentence(help));
    return [
      flag === null ? '' : code(flag),
      variable === null ? '' : code(variable),
      fallback === null ? '' : code(fallback),
      meaning,
    ];
  });
  return table(['Flag', 'Variable', 'Default', 'Meaning'], rows);
}

function limitTable(): string {
  const rows = Object.entries(BUCKETS).map(([bucket, counted]) => [
    code(rateLimitVariable(bucket)),
    code(RATE_LIMIT_DEFAULTS[bucket as keyof typeof RATE_LIMIT_DEFAULTS]),
    sentence(counted),
  ]);
  return table(['Variable', 'Default', 'What it counts'], rows);
}
