import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { Ajv } from 'ajv';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { isSignedByRoot } from '../src/protocol/records/genesis.ts';
import { configFileSchema } from '../src/server/config/config-file.ts';
import { type Config, checkConfig, loadConfig } from '../src/server/config/load.ts';
import {
  type Environment,
  type Flags,
  nameOf,
  OPTIONS,
  type OptionEntry,
  type OptionName,
} from '../src/server/config/options.ts';
import { REAL_TIME } from './support/clock.ts';
import {
  type Case,
  flag,
  genesisWith,
  KEY,
  keyFlag,
  remove,
  type Setup,
  seedIn,
  setupOf,
  tiersJson,
  variable,
} from './support/refused-starts.ts';
import { newKey } from './support/requests.ts';

function load({ flags, environment }: Setup): Config {
  return loadConfig(flags as Flags, environment as Environment, REAL_TIME.now());
}

function refuses(title: string, cases: readonly Case[]): void {
  suite(`the start is refused, in one sentence, with ${title}`, () => {
    for (const [what, prepare, message] of cases) {
      test(what, () => {
        const setup = setupOf();
        load(setup);
        prepare(setup);
        assert.throws(
          () => load(setup),
          (error: unknown) => {
            assert.ok(error instanceof Error);
            assert.match(error.message, message);
            assert.match(error.message, /^\S[^\n\r]{10,300}[^\s.]$/);
            return true;
          },
        );
      });
    }
  });
}

function accepts(what: string, prepare: (setup: Setup) => void, check: (config: Config) => void) {
  test(what, () => {
    const setup = setupOf();
    prepare(setup);
    check(load(setup));
  });
}

const asFolder = (name: string) => (setup: Setup) => {
  rmSync(setup.path(name));
  mkdirSync(setup.path(name));
};
const replaced = (name: string, text: string) => (setup: Setup) => setup.write(name, text);

const all =
  (...steps: ((setup: Setup) => void)[]) =>
  (setup: Setup) => {
    for (const step of steps) step(setup);
  };

const genesisText = (text: string) => replaced('genesis.json', text);
const genesisWithout = (name: string) => genesisWith(() => ({ [name]: undefined }));
const genesisBy = (signers: (root: Signer) => Signer[]) => genesisWith(() => ({}), signers);
const naive = genesisWith(({ genesis }) => ({
  network_authority: { ...genesis.network_authority, valid_to: '2026-01-01T00:00:00' },
}));
const genesisFlag = flag('genesis', '/nonexistent/g.json');
const genesisJson = (text: string) => variable('GENESIS_JSON', text);

refuses('a genesis block that is', [
  [
    'missing',
    remove('genesis.json'),
    /^The genesis file .*genesis\.json cannot be read \(ENOENT\), although .*keys belongs to a network: restore its genesis\.json, mesh-na\.json and keys\/$/,
  ],
  ['in a folder that does not exist', flag('dataDir', '/nonexistent'), /genesis file .* cannot be/],
  ['a folder', asFolder('genesis.json'), /^The genesis file .* cannot be read/],
  ['named by --genesis and missing', genesisFlag, /\/nonexistent\/g\.json/],
  [
    'empty',
    genesisText(''),
    /^The genesis block is not valid JSON; restore .*genesis\.json from a copy that you trust$/,
  ],
  ['no JSON', genesisText('{"network_name":'), /not valid JSON; restore /],
  ['JSON with a name twice', genesisText('{"a":1,"a":1}'), /not valid JSON; restore /],
  ['a list', genesisText('[]'), /^The genesis block does not have the expected form; restore /],
  ['null', genesisText('null'), /does not have the expected form; restore /],
  ['without a root key', genesisWithout('root_public_key'), /expected form; restore /],
  ['without an authority', genesisWithout('network_authority'), /expected form; restore /],
  ['without a name', genesisWith(() => ({ network_name: '' })), /expected form; restore /],
  ['with a naive date', naive, /expected form; restore /],
  ['GENESIS_JSON and no JSON', genesisJson('{'), /not valid JSON; restore GENESIS_JSON /],
  ['GENESIS_JSON and another record', genesisJson('{"a":1}'), /expected form; restore /],
]);

test('an empty folder is that of a new network, or of a lost one', () => {
  const setup = setupOf();
  for (const name of readdirSync(setup.folder)) remove(name)(setup);
  assert.throws(
    () => load(setup),
    /for a new network run mesh-na init .*if there was one, mount its volume, or restore/,
  );
});

const UNSIGNED = /no valid root signature/;
const otherRoot = genesisWith(() => ({ root_public_key: newKey().publicKey }));
const altered = (setup: Setup) =>
  setup.write('genesis.json', JSON.stringify({ ...setup.genesis, network_version: 'v9.9' }));

refuses('a genesis block whose signature is', [
  [
    'missing',
    genesisBy(() => []),
    /no valid root signature, so .*; restore .*genesis\.json from a copy that you trust$/,
  ],
  ['that of another key', genesisBy(() => [newKey()]), UNSIGNED],
  ['valid next to one that is not', genesisBy((root) => [root, newKey()]), UNSIGNED],
  ['valid for another content', altered, UNSIGNED],
  ['that of the root key over another root key', otherRoot, UNSIGNED],
]);

accepts(
  'a genesis block without signature starts with --allow-unsigned-genesis',
  all(
    genesisBy(() => []),
    (setup) => {
      setup.flags.allowUnsignedGenesis = true;
    },
  ),
  ({ genesis }) => assert.equal(isSignedByRoot(genesis, verifySignature), false),
);

const OTHER_SEED = Buffer.alloc(32, 9).toString('base64');
const keyText = (text: string) => replaced('keys/na.key', text);
const keyOf = (bytes: number) => keyText(Buffer.alloc(bytes).toString('base64'));
const keyVariable = (text: string) => variable('NA_PRIVATE_KEY', text);
const openToAll = (setup: Setup) => chmodSync(setup.path('keys/na.key'), 0o604);
const otherAuthority = genesisWith(({ genesis }) => ({
  network_authority: { ...genesis.network_authority, public_key: newKey().publicKey },
}));

refuses('an authority key that is', [
  ['missing', remove('keys/na.key'), /^The key file .*na\.key cannot be read \(ENOENT\)$/],
  ['a folder', asFolder('keys/na.key'), /^The key file .*na\.key cannot be read \(EISDIR\)$/],
  ['empty', keyText(''), /canonical base64 of 32 bytes$/],
  ['malformed', keyText('not a key'), /canonical base64 of 32 bytes$/],
  ['too short', keyOf(31), /of 32 bytes$/],
  ['too long', keyOf(64), /of 32 bytes$/],
  ['named and missing', flag('naPrivateKey', '/nonexistent/na.key'), /\/nonexistent\/na\.key/],
  [
    'open to every user',
    openToAll,
    /na\.key can be opened by other users; run chmod 600 \S+na\.key$/,
  ],
  [
    'another than the genesis names',
    keyText(OTHER_SEED),
    /private key is not that of \S+, which the genesis block names: restore .* replaced it$/,
  ],
  ['NA_PRIVATE_KEY and malformed', keyVariable('secret-text'), /^NA_PRIVATE_KEY is not/],
  [
    'NA_PRIVATE_KEY and another',
    keyVariable(OTHER_SEED),
    /which the genesis block names: restore that key, or configure the genesis block /,
  ],
  [
    'fitting, for a genesis that names another authority',
    otherAuthority,
    /which the genesis block names: restore that key, or configure the genesis block /,
  ],
]);

test('no message repeats a private key that was refused', () => {
  for (const text of ['c2VjcmV0LXRleHQ=', Buffer.alloc(31, 7).toString('base64')]) {
    for (const prepare of [variable('NA_PRIVATE_KEY', text), replaced('keys/na.key', text)]) {
      const setup = setupOf();
      prepare(setup);
      assert.throws(
        () => load(setup),
        (error: unknown) => error instanceof Error && !error.message.includes(text),
      );
    }
  }
});

const OTHER = newKey().publicKey;

const tierFlag = (...values: string[]) => flag('operatorKeyTier', values);
const keysJson = (value: object | string) =>
  variable('OPERATOR_PUBLIC_KEYS_JSON', typeof value === 'string' ? value : JSON.stringify(value));

const configFile = (operators: unknown) =>
  replaced('mesh-na.json', JSON.stringify({ network_name: 'alpha', operators }));
const TIERED = tierFlag('ops-2=standard');

refuses('an operator key that has', [
  ['no tier, given as flag', keyFlag(`ops-2=${KEY}`), /^Operator key ops-2 has no tier/],
  ['no tier, given as variable', keysJson({ 'ops-2': KEY }), /^Operator key ops-2 has no tier/],
  [
    'no tier, next to one that has',
    all(keyFlag(`ops-2=${KEY}`, `ops-3=${OTHER}`), TIERED),
    /^Operator key ops-3 has no tier/,
  ],
  [
    'no tier in the configuration file',
    configFile([{ key_id: 'a', public_key: KEY }]),
    /^operators in .*mesh-na\.json must be a list of objects with key_id, tier and public_key$/,
  ],
  ...['read', 'Privileged', 'STANDARD', 'admin', '', ' standard', 'standard,privileged'].map(
    (tier): Case => [
      `the unknown tier ${JSON.stringify(tier)}`,
      all(keyFlag(`ops-2=${KEY}`), tierFlag(`ops-2=${tier}`)),
      /^Operator key ops-2 has the unknown tier/,
    ],
  ),
  [
    'the tier read of newer clients, given as variable',
    all(keysJson({ 'ops-2': KEY }), tiersJson({ 'ops-2': 'read' })),
    /^Operator key ops-2 has the unknown tier "read"$/,
  ],
  [
    'an unknown tier in the configuration file',
    configFile([{ key_id: 'a', public_key: KEY, tier: 'read' }]),
    /^Operator key a has the unknown tier "read"$/,
  ],
  [
    'a tier but no key, given as flag',
    TIERED,
    /^Operator key ops-2 has a tier but is not configured$/,
  ],
  [
    'a tier but no key, given as variable',
    tiersJson({ 'ops-2': 'standard' }),
    /^Operator key ops-2 has a tier but is not configured$/,
  ],
  [
    'a tier and a key of another spelling',
    all(keyFlag(`OPS-2=${KEY}`), TIERED),
    /^Operator key ops-2 has a tier but is not configured$/,
  ],
]);

refuses('an operator key that is not base64 of 32 bytes:', [
  ...[
    ['no base64', 'not base64'],
    ['31 bytes', Buffer.alloc(31).toString('base64')],
    ['33 bytes', Buffer.alloc(33).toString('base64')],
    ['a signature', Buffer.alloc(64).toString('base64')],
    ['without padding', KEY.slice(0, -1)],
    ['in another spelling', `${KEY.slice(0, 42)}${KEY.charAt(42) === 'B' ? 'F' : 'B'}=`],
    ['nothing', ''],
  ].flatMap(([what, text]): Case[] => [
    [`${what}, as variable`, all(keysJson({ 'ops-2': text }), TIERED), /ops-2 is not base64 of 32/],
    [
      `${what}, in the configuration file`,
      configFile([{ key_id: 'a', public_key: text, tier: 'standard' }]),
      /^Operator key a is not base64 of 32 bytes$/,
    ],
  ]),
  [
    'neither that nor a file, as flag',
    all(keyFlag('ops-2=/nonexistent/ops-2.pub'), TIERED),
    /^The key file \/nonexistent\/ops-2\.pub cannot be read/,
  ],
  [
    'a file that holds no key, as flag',
    (setup) => {
      setup.write('ops-2.pub', '# nothing\n');
      all(keyFlag(`ops-2=${setup.path('ops-2.pub')}`), TIERED)(setup);
    },
    /ops-2\.pub does not hold the canonical base64 of 32 bytes$/,
  ],
]);

const SEED = Buffer.alloc(32, 3).toString('base64');
const PUBLIC = signerFromSeed(Buffer.alloc(32, 3)).publicKey;
refuses('a private key as the public one of an operator:', [
  [
    'its key file',
    (setup) => all(keyFlag(`ops-2=${setup.path('keys/na.key')}`), TIERED)(setup),
    /na\.key holds a private key.*na\.pub/,
  ],
  [
    'the text of its file, as variable',
    all(keysJson({ 'ops-2': `# operator private key\n${SEED}` }), TIERED),
    /ops-2 has a private key/,
  ],
  [
    'that of another operator, as flag',
    all(keyFlag(`ops-2=${SEED}`, `ops-3=${PUBLIC}`), tierFlag('ops-2=standard', 'ops-3=standard')),
    /ops-2 has a private key/,
  ],
  ...['na', 'root', 'operator-standard'].map(
    (name): Case => [
      `that of keys/${name}.key, as variable`,
      (setup) => all(keysJson({ 'ops-2': seedIn(setup, name).toString('base64') }), TIERED)(setup),
      /ops-2 has a private key/,
    ],
  ),
  [
    'that of another, in the configuration file',
    configFile([
      { key_id: 'a', public_key: SEED, tier: 'standard' },
      { key_id: 'b', public_key: PUBLIC, tier: 'standard' },
    ]),
    /key a has a private key/,
  ],
]);

refuses('a public key as the private one of the authority:', [
  [
    'its file',
    (setup) => flag('naPrivateKey', setup.path('keys/na.pub'))(setup),
    /na\.pub holds a public key/,
  ],
  [
    'its text',
    (setup) => variable('NA_PRIVATE_KEY', setup.genesis.network_authority.public_key)(setup),
    /Expected the authority’s private key but got its public key/,
  ],
]);

const TWO_KEYS = /^Operator key ops-2 has two different values for its public key$/;
const TWO_TIERS = /^Operator key ops-2 has two different values for its tier$/;
const twoTiers = tierFlag('ops-2=standard', 'ops-2=privileged');

refuses('operator settings that contradict each other:', [
  [
    'flag and variable about a key',
    all(keyFlag(`ops-2=${KEY}`), keysJson({ 'ops-2': OTHER }), TIERED),
    TWO_KEYS,
  ],
  [
    'flag and variable about a tier',
    all(keyFlag(`ops-2=${KEY}`), TIERED, tiersJson({ 'ops-2': 'privileged' })),
    TWO_TIERS,
  ],
  [
    'flag and configuration file about a key',
    keyFlag(`ops-standard=${KEY}`),
    /^Operator key ops-standard has two different values for its public key$/,
  ],
  [
    'variable and configuration file about a tier',
    tiersJson({ 'ops-standard': 'privileged' }),
    /^Operator key ops-standard has two different values for its tier$/,
  ],
  ['two flags about a key', all(keyFlag(`ops-2=${KEY}`, `ops-2=${OTHER}`), TIERED), TWO_KEYS],
  ['two flags about a tier', all(keyFlag(`ops-2=${KEY}`), twoTiers), TWO_TIERS],
  [
    'two entries of the configuration file',
    configFile([
      { key_id: 'a', public_key: KEY, tier: 'standard' },
      { key_id: 'a', public_key: KEY, tier: 'privileged' },
    ]),
    /^Operator key a has two different values for its tier$/,
  ],
  [
    'two members of one variable',
    all(keysJson({ 'ops-2': KEY }), tiersJson('{"ops-2":"standard","ops-2":"privileged"}')),
    /OPERATOR_KEY_TIERS_JSON|Operator key ops-2/,
  ],
]);

const NO_ID = /^--operator-public-key must have the form id=value$/;
const NO_TIER_ID = /^--operator-key-tier must have the form id=value$/;
const NO_KEYS = /^OPERATOR_PUBLIC_KEYS_JSON must be a JSON object/;
const NO_TIERS = /^OPERATOR_KEY_TIERS_JSON must be a JSON object/;

refuses('operator settings that are malformed:', [
  ['a key flag without =', keyFlag('ops-2'), NO_ID],
  ['a key flag without id', keyFlag(`=${KEY}`), NO_ID],
  ['a tier flag without =', tierFlag('standard'), NO_TIER_ID],
  [
    'keys that are no JSON',
    keysJson('ops-2'),
    /^OPERATOR_PUBLIC_KEYS_JSON must be a JSON object .* without duplicate names$/,
  ],
  ['keys that are a list', keysJson([KEY]), NO_KEYS],
  ['a key that is a number', keysJson({ a: 7 }), NO_KEYS],
  ['tiers that are no JSON', tiersJson('{'), NO_TIERS],
  ['a tier that is null', tiersJson({ a: null }), NO_TIERS],
  [
    'a configuration file that is no JSON',
    replaced('mesh-na.json', '{'),
    /mesh-na\.json is not valid JSON: /,
  ],
  [
    'a configuration file that is a list',
    replaced('mesh-na.json', '[]'),
    /must contain an object$/,
  ],
  ['operators that are no list', configFile({}), /^operators in .* must be a list of objects/],
  [
    'a configuration file that is a folder',
    asFolder('mesh-na.json'),
    /cannot be read \(EISDIR\); fix it/,
  ],
]);

const BUCKETS = [
  ...['ADMIN', 'VERIFY', 'POLICY_READ', 'TRUST_PATH', 'EXPLAIN', 'SEARCH', 'HISTORY', 'AGENTS'],
  ...['AGENT_DELETE', 'JOIN', 'JOIN_FAILURES', 'NODE_FAILURES', 'HEARTBEAT', 'RENEW'],
];
const NO_PORT = /^--port must be a whole number from 0 to 65535, not "/;

refuses('a value that does not fit:', [
  ...['x', '-1', '65536', '1.5', ' 80', '0x50', '1e3', '+80', '80 ', '８０'].flatMap(
    (port): Case[] => [[`--port ${port}`, flag('port', port), NO_PORT]],
  ),
  ...(
    [
      ['PORT', 'x', /^PORT must be .*, not "x"$/],
      [
        'MESH_LOG_LEVEL',
        'info',
        /^MESH_LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, CRIT/,
      ],
      ['MESH_LOG_LEVEL', 'TRACE', /^MESH_LOG_LEVEL must be/],
      [
        'MESH_LOG_FILE',
        '/nonexistent/na.log',
        /^MESH_LOG_FILE needs the folder \/nonexistent, which does not exist; create it, or name/,
      ],
      ['MESH_LOG_FILE', '/', /^MESH_LOG_FILE names \/, which is a folder; name a file$/],
      ['MESH_LOG_FORMAT', 'xml', /^MESH_LOG_FORMAT must be one of text, json, not "/],
      ['MESH_PROXY_HOPS', '-1', /^MESH_PROXY_HOPS must be/],
      ['MESH_PROXY_HOPS', 'all', /^MESH_PROXY_HOPS must be/],
      ['MESH_MAX_REQUEST_BYTES', '0', /^MESH_MAX_REQUEST_BYTES must be/],
      ['MESH_MAX_REQUEST_BYTES', '2MB', /^MESH_MAX_REQUEST_BYTES must be/],
      [
        'MESH_ADMIN_SIGNATURE_V1',
        'yes',
        /^MESH_ADMIN_SIGNATURE_V1 must be one of accept, refuse, not "/,
      ],
      ['MESH_FOREIGN_ISSUER', 'maybe', /^MESH_FOREIGN_ISSUER must be one of allow, refuse, not "/],
      ['MESH_CREATED_STATUS', '202', /^MESH_CREATED_STATUS must be one of 200, 201, not "/],
      ['MESH_ACTIVE_NODE_WINDOW_SECONDS', '0', /^MESH_ACTIVE_NODE_WINDOW_SECONDS must be/],
      ['MESH_CLOCK_TOLERANCE_SECONDS', '-300', /^MESH_CLOCK_TOLERANCE_SECONDS must be/],
      ['RENEWAL_GRACE_SECONDS', '15m', /^RENEWAL_GRACE_SECONDS must be/],
      [
        'MESH_PUBLIC_URL',
        'na.example',
        /^MESH_PUBLIC_URL must be an http or https URL, not "na\.example"$/,
      ],
      ['MESH_PUBLIC_URL', 'ftp://na.example', /^MESH_PUBLIC_URL must be/],
      ['MESH_LIVENESS_FLUSH_MS', '0', /^MESH_LIVENESS_FLUSH_MS must be/],
    ] as const
  ).map(([name, value, message]): Case => [`${name}=${value}`, variable(name, value), message]),
  ...['0/60', '30', '30/0', '-1/60', 'a/b', '30/60/1', 'OFF', ' 30/60', '1.5/60', '/'].map(
    (limit): Case => [
      `MESH_RATE_LIMIT_ADMIN=${limit}`,
      variable('MESH_RATE_LIMIT_ADMIN', limit),
      /^MESH_RATE_LIMIT_ADMIN must be off, or count\/seconds such as 30\/60, not "/,
    ],
  ),
  ...BUCKETS.map(
    (bucket): Case => [
      `MESH_RATE_LIMIT_${bucket}=never`,
      variable(`MESH_RATE_LIMIT_${bucket}`, 'never'),
      new RegExp(`^MESH_RATE_LIMIT_${bucket} must be off`),
    ],
  ),
]);

accepts(
  'sources are merged: the configuration file, both variables and both flags',
  all(
    keysJson({ 'ops-2': KEY, 'ops-3': OTHER }),
    tiersJson({ 'ops-2': 'privileged' }),
    (setup) => {
      setup.write('ops-4.pub', `# operator public key\n# key id: ops-4\n${OTHER}\n`);
      keyFlag(`ops-4=${setup.path('ops-4.pub')}`, `ops-2=${KEY}`)(setup);
    },
    tierFlag('ops-3=standard', 'ops-4=standard', 'ops-2=privileged'),
  ),
  ({ operators }) => {
    const tiers = Object.fromEntries(operators.map(({ keyId, tier }) => [keyId, tier]));
    assert.deepEqual(tiers, {
      'ops-privileged': 'privileged',
      'ops-standard': 'standard',
      'ops-2': 'privileged',
      'ops-3': 'standard',
      'ops-4': 'standard',
    });
    const keys = new Map(operators.map(({ keyId, publicKey }) => [keyId, publicKey]));
    assert.deepEqual(
      ['ops-2', 'ops-3', 'ops-4'].map((id) => keys.get(id)),
      [KEY, OTHER, OTHER],
    );
  },
);

accepts(
  'a flag wins over the environment, and an empty variable is none',
  all(
    flag('port', '1234'),
    variable('PORT', '4321'),
    variable('MESH_LOG_LEVEL', ''),
    variable('HOST', '::1'),
  ),
  ({ port, log, edge }) => assert.deepEqual([port, log.level, edge.host], [1234, 'INFO', '::1']),
);

accepts(
  'genesis and key can be given in the environment alone',
  (setup) => {
    setup.environment.GENESIS_JSON = JSON.stringify(setup.genesis);
    setup.environment.NA_PRIVATE_KEY = seedIn(setup, 'na').toString('base64');
    rmSync(setup.path('genesis.json'));
    rmSync(setup.path('keys'), { recursive: true });
  },
  ({ genesis, publicKey }) => assert.equal(publicKey, genesis.network_authority.public_key),
);

const NO_HEAD =
  'A rollback to an older copy of the state would not be detected: keep its head on another volume with --head-file';

accepts(
  'a head that is kept elsewhere needs no warning',
  flag('headFile', [join(tmpdir(), 'mesh-na-head.json')]),
  ({ warnings }) => assert.deepEqual(warnings, []),
);

accepts('an address of others without TLS warns of it', flag('host', '0.0.0.0'), ({ warnings }) =>
  assert.match(warnings.join(), /invite tokens travel in the clear to 0\.0\.0\.0/),
);
accepts('an address of this machine needs no TLS', flag('host', '127.0.0.7'), ({ warnings }) =>
  assert.deepEqual(warnings, [NO_HEAD]),
);

accepts(
  'an authority whose validity has passed starts with a warning',
  genesisWith(({ genesis }) => ({
    network_authority: { ...genesis.network_authority, valid_to: '2020-01-01T00:00:00Z' },
  })),
  ({ warnings }) => assert.match(warnings.join(), /authority key .* is past its validity period/),
);

const hooks = (...urls: string[]) => variable('MESH_WEBHOOKS', urls.join(' '));
const isPrivate = variable('MESH_WEBHOOK_PRIVATE', '1');

refuses('webhooks that', [
  ['are no URL', hooks('hooks.example'), /^MESH_WEBHOOKS is not a URL$/],
  ['are no URL, by the flag', flag('webhook', ['//x']), /^--webhook is not a URL$/],
  ['have no TLS', hooks('http://hooks.example/'), /^MESH_WEBHOOKS must be an https URL, or http/],
  ['are of another kind', all(isPrivate, hooks('ftp://h.example/')), /must be an https URL/],
  [
    'hold a password',
    hooks('https://a:b@hooks.example/'),
    /must not contain a user name or password$/,
  ],
  ['hold a user', hooks('https://a@hooks.example/'), /must not contain a user name or password$/],
  ['have a fragment', hooks('https://hooks.example/#a'), /must not have a fragment/],
  ['are very long', hooks(`https://hooks.example/${'a'.repeat(2048)}`), /is longer than 2048/],
  ['are the same', hooks('https://h.example', 'https://h.example/'), /names a webhook twice$/],
  [
    'are many',
    hooks(...Array.from({ length: 11 }, (_, index) => `https://h.example/${index}`)),
    /names more than 10 webhooks$/,
  ],
  [
    'are on this machine',
    hooks('https://h.example/', 'https://127.0.0.1/?secret'),
    /^MESH_WEBHOOKS names a private address, which only .* allows \(number 2\)$/,
  ],
  ['are on this machine, spelled otherwise', hooks('https://0x7f.1/'), /names a private address/],
  ['are in IPv6 on this machine', hooks('https://[::ffff:127.0.0.1]/'), /names a private address/],
  ['offer metadata', hooks('https://169.254.169.254/latest'), /names a private address/],
  [
    'begin at no index',
    all(hooks('https://h.example/'), variable('MESH_WEBHOOK_AFTER', '-1')),
    /^MESH_WEBHOOK_AFTER must be a whole number/,
  ],
  [
    'are private or not',
    variable('MESH_WEBHOOK_PRIVATE', 'yes'),
    /^MESH_WEBHOOK_PRIVATE must be one of 0, 1, not "yes"$/,
  ],
]);

accepts(
  'webhooks may be on this machine when that is said',
  all(isPrivate, flag('webhook', ['http://127.0.0.1:8080/in', 'https://h.example/?a=b'])),
  ({ webhooks }) => {
    assert.deepEqual(webhooks.urls.map(String), [
      'http://127.0.0.1:8080/in',
      'https://h.example/?a=b',
    ]);
  },
);

/** A value that each setting refuses, if not `-`; null if it accepts any text. */
const REFUSED: { readonly [Name in OptionName]?: string | null } = {
  config: '/nonexistent/mesh-na.json',
  dataDir: '/nonexistent',
  store: 'mysql://secret@db/mesh',
  genesis: '/nonexistent/genesis.json',
  naPrivateKey: '/nonexistent/na.key',
  keyId: null,
  rolePrefixes: null,
  backupTo: '/nonexistent',
  headFile: '/nonexistent/head.json',
  logFile: '/nonexistent/na.log',
};

/** How a refused setting is named, if not by its own name. */
const NAMED_OTHERWISE: { readonly [Name in OptionName]?: RegExp } = {
  config: /^The configuration file \/nonexistent\/mesh-na\.json cannot be read/,
  dataDir: /^The genesis file \/nonexistent\/genesis\.json cannot be read/,
  store: /PostgreSQL|postgresql:/,
  genesis: /^The genesis file \/nonexistent\/genesis\.json cannot be read/,
  genesisJson: /^The genesis block is not valid JSON; restore GENESIS_JSON/,
  naPrivateKey: /^The key file \/nonexistent\/na\.key cannot be read/,
};

suite('each setting that prevents the start is named as it was given', () => {
  const SETTINGS = Object.entries<OptionEntry>(OPTIONS) as [OptionName, OptionEntry][];
  const problemsOf = ({ flags, environment }: Setup) =>
    checkConfig(flags as Flags, environment, REAL_TIME.now()).problems;

  function assertNamed(problems: readonly string[], name: OptionName, label: string): void {
    const named = NAMED_OTHERWISE[name];
    const isNamed = (problem: string) =>
      named === undefined ? problem.startsWith(`${label} `) : named.test(problem);
    assert.ok(problems.some(isNamed), `${label}: ${problems.join('; ')}`);
    assert.ok(!problems.some((problem) => problem.includes('secret')), 'no secret is repeated');
    for (const problem of problems) assert.match(problem, /^\S[^\n\r]{10,300}[^\s.]$/);
  }

  test('by flag', () => {
    const setup = setupOf();
    for (const [name, { flag: asFlag, kind, repeatable = false }] of SETTINGS) {
      const text = REFUSED[name] === undefined ? '-' : REFUSED[name];
      // A switch has no value.
      if (asFlag === undefined || text === null || kind.read('1') === true) continue;
      const flags = { ...setup.flags, [name]: repeatable ? [text] : text };
      assertNamed(problemsOf({ ...setup, flags }), name, nameOf(name));
    }
  });

  test('by variable', () => {
    const setup = setupOf();
    for (const [name, { variable: asVariable }] of SETTINGS) {
      const text = REFUSED[name] === undefined ? '-' : REFUSED[name];
      if (asVariable === undefined || text === null) continue;
      const flags = name === 'dataDir' ? {} : setup.flags;
      assertNamed(
        problemsOf({ ...setup, flags, environment: { [asVariable]: text } }),
        name,
        asVariable,
      );
    }
  });

  test('by the configuration file', () => {
    const setup = setupOf();
    const file = setup.path('mesh-na.json');
    for (const [, { member }] of SETTINGS) {
      if (member === null) continue;
      // No setting is a list of numbers.
      const content = member
        .split('.')
        .reduceRight<unknown>((inner, part) => ({ [part]: inner }), [7]);
      setup.write('mesh-na.json', JSON.stringify(content));
      const problems = problemsOf({ ...setup, flags: { ...setup.flags } });
      const label = `${member} in ${file} `;
      assert.ok(problems[0]?.startsWith(label), `${label}: ${problems.join('; ')}`);
    }
  });

  test('the file has every setting except those of one start and those that belong elsewhere', () => {
    assert.deepEqual(
      SETTINGS.flatMap(([name, { member }]) => (member === null ? [name] : [])),
      [
        'config',
        'operatorPublicKey',
        'operatorPublicKeys',
        'operatorKeyTier',
        'operatorKeyTiers',
        'newHead',
      ],
    );
  });

  test('a member that is not a setting, with the most similar one, and all problems at once', () => {
    const setup = setupOf();
    setup.write(
      'mesh-na.json',
      JSON.stringify({ port: 'x', stor: 'y', tls_cert: 'c', tls: 3, log: { levle: 'INFO' } }),
    );
    const file = setup.path('mesh-na.json');
    assert.deepEqual(problemsOf(setup), [
      `stor in ${file} is not a setting; did you mean store?`,
      `tls_cert in ${file} is not a setting; did you mean tls.cert?`,
      `tls in ${file} must be an object of its settings`,
      `log.levle in ${file} is not a setting; did you mean log.level?`,
      `port in ${file} must be a whole number from 0 to 65535, not "x"`,
    ]);
    assert.throws(
      () => load(setup),
      /did you mean store\? \(serve --check names 4 more problems\)$/,
    );
  });

  test('a file with the private key in it that other users can read', () => {
    const setup = setupOf();
    setup.write(
      'mesh-na.json',
      JSON.stringify({ na_private_key: seedIn(setup, 'na').toString('base64') }),
    );
    chmodSync(setup.path('mesh-na.json'), 0o644);
    assert.match(problemsOf(setup).join(), /mesh-na\.json holds a private key .* run chmod 600 /);
    chmodSync(setup.path('mesh-na.json'), 0o600);
    assert.deepEqual(problemsOf(setup), []);
  });
});

suite('the configuration file', () => {
  accepts(
    'has all settings, below flags and variables',
    all(
      flag('port', '1'),
      variable('PORT', '2'),
      variable('MESH_THREADS', '3'),
      replaced(
        'mesh-na.json',
        JSON.stringify({
          $schema: './mesh-na.schema.json',
          port: 4,
          threads: 5,
          log: { level: 'ERROR' },
          backup: { to: '/tmp', every: '6h', keep: 3 },
          webhook: { urls: ['http://127.0.0.1:1/'], private: true },
          rate_limit: { admin: 'off', join: '7/8' },
          renewal_grace_seconds: 'off',
          created_status: 201,
          cors_origins: ['https://app.example'],
        }),
      ),
    ),
    (config) => {
      assert.deepEqual([config.port, config.threads, config.log.level], [1, 3, 'ERROR']);
      assert.deepEqual(config.backups, {
        folder: '/tmp',
        every: 21_600_000,
        keep: 3,
        recipients: [],
      });
      assert.deepEqual(config.webhooks.urls.map(String), ['http://127.0.0.1:1/']);
      const { ADMIN, JOIN, VERIFY } = config.edge.rateLimits;
      assert.deepEqual([ADMIN, JOIN], [null, { count: 7, windowSeconds: 8 }]);
      assert.deepEqual(VERIFY, { count: 60, windowSeconds: 60 });
      assert.deepEqual(
        [config.authority.settings.renewalGrace, config.edge.createdStatus],
        [null, 201],
      );
      assert.deepEqual(config.edge.corsOrigins, ['https://app.example']);
    },
  );

  accepts(
    'may be elsewhere and name the data folder, whose own file is then not read',
    (setup) => {
      const { dataDir } = setup.flags;
      setup.write('other.json', JSON.stringify({ data_dir: dataDir, port: 9 }));
      delete setup.flags.dataDir;
      setup.environment.MESH_CONFIG = setup.path('other.json');
    },
    ({ port, operators, warnings }) => {
      assert.deepEqual([port, operators], [9, []]);
      assert.match(warnings.join(), /mesh-na\.json is not read, because .*other\.json replaces it/);
    },
  );

  test('is described by a schema that agrees with the program', () => {
    const isValid = new Ajv({ allowUnionTypes: true }).compile(configFileSchema());
    const setup = setupOf();
    assert.ok(isValid(JSON.parse(readFileSync(setup.path('mesh-na.json'), 'utf8'))), 'of init');
    assert.ok(isValid({ tls: { cert: 'a', key: 'b' }, port: 0, rate_limit: { admin: 'off' } }));
    for (const wrong of [{ port: 65_536 }, { stor: 'x' }, { tls: { crt: 'a' } }, { log: 3 }]) {
      assert.ok(!isValid(wrong), JSON.stringify(wrong));
    }
  });
});
