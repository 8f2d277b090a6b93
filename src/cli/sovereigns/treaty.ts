/** `mesh-na treaty`: recognition of other sovereigns, also after they have replaced their authority keys. */

import type { Command } from 'commander';
import { keyFingerprint } from '../../base/crypto/digest.ts';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { fromNow } from '../../base/duration.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { readPublicKey } from '../../base/keys/read-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { CHAIN_TOOLS } from '../../client/followed-keys.ts';
import { pagesOf, type Sent } from '../../client/operations.ts';
import type { PublicClient } from '../../client/public-client.ts';
import {
  type FollowedChain,
  followChain,
  keysInForce,
  NO_CHAIN,
  receivedChain,
} from '../../protocol/records/authority-chain.ts';
import type { RecognitionTreaty } from '../../protocol/records/recognition.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { acceptedKeys, followForTreaty, rootKeyIn } from '../../protocol/records/treaty-chain.ts';
import type { TreatyRow } from '../../protocol/rows/recognition.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { listCommand, resolveId, routeCommand } from '../connection/route-command.ts';
import { publicClient, type ReadingBounds, readJsonUrl } from '../connection/server.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { deliver, type RecordOptions, shown } from '../kernel/deliver.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { notHolding, readJsonFile } from '../kernel/files.ts';
import { idArgument } from '../kernel/ids.ts';
import { printNote, printResult, printText } from '../kernel/output.ts';
import { column, idColumn, timeColumn } from '../kernel/table.ts';
import { assertConfirmed, printPart } from '../kernel/terminal.ts';
import { signerKeyOption, verifyCommand } from '../protocol/verification.ts';

const SCOPE = [
  option('--role <role>', 'role it may attest (repeatable)', { many: true }),
  option('--any-role', 'it may attest any role', { conflicts: 'role' }),
  option('--scope <file>', 'JSON with the scope, - for standard input; --role overrides it'),
] as const;

const YES = option('--yes', 'do so without asking; required when not on a terminal');

const FOLLOW = [
  option(
    '--partner <sovereign>',
    'instead of one treaty: every one in force that recognizes this sovereign',
    { conflicts: 'out' },
  ),
  option(
    '--keys <place>',
    "what /authority-keys of the subject answers: a file, - for standard input, or its URL, for which the system's CA certificates are trusted",
    { required: true },
  ),
  option(
    '--root-key <key>',
    'root key of the subject, or a file with its public key (default: the one that the treaty names)',
  ),
  YES,
] as const;

type FollowOptions = OptionsIn<typeof FOLLOW> & OperatorOptions & RecordOptions;

export function addTreatyCommands(treaty: Command): void {
  routeCommand(treaty, 'issue', 'issueTreaty', {
    about: 'sign a treaty that recognizes a sovereign (privileged)',
    values: {
      subject_sovereign_id: ['<subject-sovereign>', 'sovereign to recognize'],
      subject_public_keys: ['--key <key>', 'public key of the sovereign'],
      validity_hours: ['--validity-hours <n>', 'how long it is valid'],
      metadata: ['--metadata <json>', 'free-form metadata'],
      issuer_sovereign_id: ['--issuer <name>', "issuing sovereign (default: the authority's)"],
      endpoint: ['--endpoint <url>', 'address of its authority, from which to fetch'],
    },
    options: SCOPE,
    out: 'the signed treaty',
    examples: [
      'mesh-na treaty issue beta --key "$BETA_KEY" --role role:client --out alpha-beta.json',
    ],
    sent: async (given, options) => ({ ...given, scope: await scopeOf(options) }),
    record(issued) {
      const roles = issued.scope.allowed_roles.join(', ') || 'any';
      return shown(`Treaty ${issued.treaty_id} is issued`, [
        `${issued.issuer_sovereign_id} recognizes ${issued.subject_sovereign_id}. Roles: ${roles}. Expires: ${issued.expires_at}.`,
      ]);
    },
  });

  routeCommand(treaty, 'propose', 'issueTreaty', {
    about:
      'recognize the sovereign whose authority is at an address, after showing who it is (privileged)',
    values: {
      endpoint: ['<url>', 'address of its authority'],
      validity_hours: ['--validity-hours <n>', 'how long it is valid'],
    },
    options: [...SCOPE, YES],
    out: 'the signed treaty',
    examples: ['mesh-na treaty propose https://na.beta.example --role role:client'],
    async sent({ endpoint, ...given }, options) {
      const url = endpoint ?? '';
      const scope = await scopeOf(options);
      const { name, rootKey, keys } = await publishedAt(url);
      const lines = [
        `The authority at ${url} says that it is "${name}". Compare its root key with its operators, over another channel.`,
        '',
        `  root key       ${rootKey}`,
        `  fingerprint    ${keyFingerprint(rootKey)}`,
        ...keys.map((key) => `  signs with     ${key}`),
        `  roles          ${scope?.allowed_roles?.join(', ') || 'any'}`,
      ];
      if (!options.yes) await assertAccepted(lines, `Recognize "${name}"?`);
      const terms = { subject_sovereign_id: name, subject_public_keys: keys };
      return { ...given, ...terms, endpoint: url, scope, metadata: { root_public_key: rootKey } };
    },
    record: ({ treaty_id, subject_sovereign_id: subject, expires_at }) =>
      shown(`Treaty ${treaty_id} is issued`, [
        `"${subject}" is recognized until ${expires_at}. Its revocations are fetched by themselves.`,
      ]),
  });

  routeCommand(treaty, 'renew', 'renewTreaty', {
    about: 'replace a treaty by one that is valid for longer, with the same scope (privileged)',
    values: {
      treaty_id: 'treaty',
      validity_hours: ['--validity-hours <n>', 'how long the new one is valid'],
    },
    options: [
      option('--published', 'with the keys that its endpoint publishes, instead of the same ones'),
      YES,
    ],
    out: 'the new treaty',
    examples: ['mesh-na treaty renew 7d0f6e0c', 'mesh-na treaty renew 7d0f6e0c --published'],
    async sent(given, options) {
      if (!options.published) return given;
      const treaty_id = await resolveId(options, 'treaty', given.treaty_id);
      const row = await publicClient(options).readTreaty({ treaty_id });
      const keys = await keysForRenewal(row);
      const { subject_public_keys: before } = row.treaty;
      const lines = [
        `Treaty ${treaty_id} recognizes "${row.treaty.subject_sovereign_id}". Its successor names these keys:`,
        '',
        ...keyLines(before, keys),
      ];
      if (!options.yes) await assertAccepted(lines, 'Renew it?');
      return { ...given, subject_public_keys: keys };
    },
    record: ({ treaty_id, expires_at }) =>
      shown(`Treaty ${treaty_id} is issued`, [
        `It takes the place of the other until ${expires_at}.`,
      ]),
  });

  routeCommand(treaty, 'revoke', 'revokeTreaty', {
    about: 'revoke a treaty (privileged)',
    values: {
      treaty_id: 'treaty',
      reason: [
        '--reason <text>',
        'reason; renewed_by:<id> or replaced_by:<id> names the successor',
      ],
    },
    examples: [
      'mesh-na treaty revoke 7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "no longer needed"',
    ],
    text: (_, { treaty_id }) => [`Treaty ${treaty_id} is revoked.`],
  });

  routeCommand(treaty, 'endpoint', 'setTreatyEndpoint', {
    about: 'set the address from which the subject of a treaty is fetched (privileged)',
    values: {
      treaty_id: 'treaty',
      endpoint: [
        '<url>',
        'address of its authority, or none',
        (text: string) => (text === 'none' ? null : text),
      ],
    },
    examples: [
      'mesh-na treaty endpoint 7d0f6e0c https://na.beta.example',
      'mesh-na treaty endpoint 7d0f6e0c none',
    ],
    text: ({ treaty_id, endpoint }) => [
      endpoint === null
        ? `The subject of treaty ${treaty_id} is not fetched.`
        : `The subject of treaty ${treaty_id} is fetched from ${endpoint}.`,
    ],
  });

  define(treaty, 'follow', {
    about: 'replace a treaty after its subject has replaced its authority key (privileged)',
    asks: OPERATOR,
    args: [idArgument('treaty', { isOptional: true })],
    options: FOLLOW,
    out: 'the new treaty',
    examples: [
      'mesh-na treaty follow 7d0f6e0c --keys https://na.beta.example/authority-keys',
      'mesh-na treaty follow --partner beta --keys https://na.beta.example/authority-keys',
      'mesh-na treaty follow 7d0f6e0c --keys keys.json --root-key "$BETA_ROOT_KEY" --yes',
    ],
    run: runFollow,
  });

  listCommand(treaty, 'list', 'listTreaties', {
    about: 'list the treaties of the authority, oldest first',
    values: {
      issuer_sovereign_id: ['--issuer <name>', 'only treaties that this sovereign issued'],
      subject_sovereign_id: ['--subject <name>', 'only treaties that recognize this sovereign'],
      status: ['--status <status>', 'only those with this status'],
    },
    columns: [
      idColumn('TREATY', ({ treaty }) => treaty.treaty_id),
      column('ISSUER', ({ treaty }) => treaty.issuer_sovereign_id, 2),
      column('SUBJECT', ({ treaty }) => treaty.subject_sovereign_id),
      column('ROLES', ({ treaty }) => treaty.scope.allowed_roles.join(',') || 'any', 3),
      column('STATE', ({ lifecycle }) => lifecycle.state, 5),
      timeColumn('EXPIRES', ({ treaty }) => treaty.expires_at, 4),
      column('REASON', ({ lifecycle }) => lifecycle.revocation_reason, 1),
      timeColumn('FETCHED', ({ fetch }) => fetch?.fetched_at, 2),
      timeColumn('IMPORTED', ({ fetch }) => fetch?.imported_at, 1),
      column('PROBLEM', ({ fetch }) => fetch?.problem, 1),
    ],
    none: 'No treaties.',
    examples: ['mesh-na treaty list', 'mesh-na treaty list --subject beta --json'],
  });

  verifyCommand(treaty, 'verifyTreaty', {
    about: 'verify a treaty; exit code 4 if it is rejected',
    files: { treaty: ['<file>', 'the signed treaty, - for standard input'] },
    values: {
      issuer_public_keys: signerKeyOption('--issuer-key'),
      expected_issuer_sovereign_id: [
        '--expect-issuer <name>',
        'reject it unless this sovereign issued it',
      ],
      expected_subject_sovereign_id: [
        '--expect-subject <name>',
        'reject it unless it recognizes this sovereign',
      ],
    },
    examples: [
      'mesh-na treaty verify alpha-beta.json',
      'mesh-na treaty verify alpha-beta.json --offline --genesis genesis.json',
      'mesh-na treaty verify beta-alpha.json --issuer-key "$BETA_KEY" --expect-subject alpha',
    ],
    finding: ({ treaty_id, issuer_sovereign_id: issuer, subject_sovereign_id: subject }) => ({
      what: `treaty ${treaty_id}, ${issuer} recognizes ${subject}`,
    }),
  });
}

/** Who an authority says it is, with the keys that its root key vouches for. */
async function publishedAt(url: string) {
  const partner = publicClient({ url });
  const {
    sovereign_id: name,
    root_public_key: rootKey,
    ...sovereign
  } = await partner.readSovereign();
  const received = receivedChain(await partner.readAuthorityKeys()) ?? NO_CHAIN;
  const now = systemRuntime.now();
  const pin = { networkName: name, trusted: { rootKey } };
  const chain = followChain(pin, received, now, CHAIN_TOOLS);
  if (chain.refusal !== null) {
    const { reason, message } = chain.refusal;
    throw failure(EXIT.refused, reason, `The keys at ${url} are rejected: ${message}`);
  }
  const keys = acceptedKeys(chain.inForce, [], now);
  return { name, rootKey, keys: keys.length > 0 ? keys : [sovereign.network_authority.public_key] };
}

async function keysForRenewal({ treaty, endpoint }: TreatyRow): Promise<string[]> {
  const { treaty_id: id, subject_sovereign_id: subject, metadata } = treaty;
  if (endpoint === undefined) {
    throw usageFailure(`Treaty ${id} has no endpoint: set it with mesh-na treaty endpoint`);
  }
  const { name, rootKey, keys } = await publishedAt(endpoint);
  const known = rootKeyIn(metadata);
  if (name === subject && (known ?? rootKey) === rootKey) return keys;
  const what = name === subject ? `has the root key ${rootKey}` : `is "${name}"`;
  throw failure(
    EXIT.refused,
    'wrong_partner',
    `The authority at ${endpoint} ${what}. Nothing was changed`,
  );
}

type Scope = Sent<'issueTreaty'>['scope'];

/** The authority validates the members of the file. */
async function scopeOf({ role, anyRole, scope }: OptionsIn<typeof SCOPE>): Promise<Scope> {
  const members = scope === undefined ? {} : await readJsonFile(scope);
  const allowed_roles = anyRole ? [] : (role ?? members.allowed_roles);
  const isAny = allowed_roles === undefined || isEmpty(allowed_roles);
  if (isAny && !anyRole) {
    throw usageFailure('Give each --role that it may attest, or --any-role');
  }
  return { ...members, allowed_roles } as Scope;
}

/** On the wire, no role stands for any. */
function isEmpty(roles: unknown): boolean {
  return roles === null || (Array.isArray(roles) && roles.length === 0);
}

function treatyPages(client: PublicClient, filters: Sent<'listTreaties'>) {
  return pagesOf(
    (page) => client.listTreaties({ ...filters, ...page }),
    ({ recognition_treaties }) => recognition_treaties,
  );
}

/** The longest chain has about 400 kB. */
const CHAIN_BOUNDS: ReadingBounds = {
  longestMs: 30_000,
  mostBytes: 2 * 1024 * 1024,
  mostValues: 65_536,
};

async function runFollow(
  options: FollowOptions,
  [given]: readonly (string | undefined)[],
): Promise<void> {
  const { keys, partner } = options;
  if ((given === undefined) === (partner === undefined)) {
    throw usageFailure('Give either the id of a treaty, or --partner');
  }
  const rootKey = rootKeyOf(options);
  const offer = { document: await readChain(keys), keys, rootKey, now: systemRuntime.now() };
  const client = publicClient(options);
  if (given !== undefined) await followOne(client, given, offer, options);
  else await followAll(client, partner ?? '', offer, options);
}

async function followOne(
  client: PublicClient,
  given: string,
  offer: Offer,
  options: FollowOptions,
): Promise<void> {
  const { yes = false } = options;
  const row = await client.readTreaty({ treaty_id: await resolveId(options, 'treaty', given) });
  const changes = changesOf(row, offer);
  // Without changes, the authority says why there are none.
  if (changes !== null && !yes) await assertAccepted(changes, 'Replace it?');
  const treaty = await followed(row, offer, options);
  const made = replacementText(row, treaty);
  deliver(options, treaty, shown(made, yes && changes !== null ? ['', ...changes] : []));
  if (!options.json) await noteOthers(client, row.treaty, treaty);
}

/** Shows and asks for all of them first. One that cannot follow stops the command before anything is changed. */
async function followAll(
  client: PublicClient,
  partner: string,
  offer: Offer,
  options: FollowOptions,
): Promise<void> {
  const { yes = false, json = false } = options;
  const behind: TreatyRow[] = [];
  const shown: string[] = [];
  for await (const row of liveTreaties(client, partner)) {
    const changes = changesOf(row, offer);
    if (changes === null) continue;
    behind.push(row);
    shown.push(...changes, '');
  }
  if (!yes && behind.length > 0) await assertAccepted(shown, `Replace ${behind.length}?`);
  const successors: RecognitionTreaty[] = [];
  const done = { recognition_treaties: successors };
  for (const row of behind) {
    const treaty = await followed(row, offer, options).catch((error: unknown) => {
      printPart(options, done, `Replaced ${successors.length} of ${behind.length} treaties`);
      throw error;
    });
    successors.push(treaty);
    // At once, because a later one may fail.
    if (!json) printText([`${replacementText(row, treaty)}.`]);
  }
  if (json) printResult(options, done, []);
  else if (behind.length === 0) printText([`No treaty with "${partner}" has anything to follow.`]);
}

function followed(
  { treaty: { treaty_id } }: TreatyRow,
  { document, rootKey }: Offer,
  options: FollowOptions,
): Promise<RecognitionTreaty> {
  return operatorClient(options).followTreaty({
    treaty_id,
    authority_keys: document,
    root_public_key: rootKey ?? undefined,
  });
}

function replacementText({ treaty }: TreatyRow, successor: RecognitionTreaty): string {
  return `Treaty ${successor.treaty_id} replaces treaty ${treaty.treaty_id}`;
}

async function* liveTreaties(
  client: PublicClient,
  subject_sovereign_id: string,
): AsyncGenerator<TreatyRow> {
  for await (const rows of treatyPages(client, { subject_sovereign_id, status: 'active' })) {
    yield* rows.filter(({ lifecycle }) => lifecycle.state !== 'expired');
  }
}

/** Each treaty is followed on its own, so another one with the subject may still name a key that was removed. */
async function noteOthers(
  client: PublicClient,
  { subject_public_keys: before, subject_sovereign_id }: RecognitionTreaty,
  { subject_public_keys: after }: RecognitionTreaty,
): Promise<void> {
  const removed = before.filter((key) => !after.includes(key));
  if (removed.length === 0) return;
  for await (const { treaty } of liveTreaties(client, subject_sovereign_id)) {
    if (!treaty.subject_public_keys.some((key) => removed.includes(key))) continue;
    printNote(`Treaty ${treaty.treaty_id} still names a removed key: follow it, too.`);
  }
}

function rootKeyOf({ rootKey }: FollowOptions): string | null {
  if (rootKey === undefined) return null;
  if (isPublicKey(rootKey)) return rootKey;
  return onLocalFiles(() => readPublicKey(rootKey, readArgument)).toString('base64');
}

async function readChain(place: string): Promise<JsonObject> {
  const isUrl = /^https?:/.test(place);
  const value = isUrl
    ? await readJsonUrl(place, undefined, CHAIN_BOUNDS)
    : await readJsonFile(place);
  if (isJsonObject(value) && receivedChain(value) !== null) return value;
  throw notHolding(place, 'a chain of authority keys: give what /authority-keys answers');
}

interface Offer {
  readonly document: JsonObject;
  /** Where the document came from. */
  readonly keys: string;
  readonly rootKey: string | null;
  readonly now: number;
}

/** What following changes, as lines; null if nothing, as far as can be seen from here. */
function changesOf(row: TreatyRow, { document, keys, rootKey, now }: Offer): string[] | null {
  const { treaty, lifecycle, followed } = row;
  if (lifecycle.state !== 'active' && lifecycle.state !== 'expiring_soon') return null;
  const { subject_sovereign_id: subject, subject_public_keys: subjectKeys } = treaty;
  const named = rootKeyIn(treaty.metadata);
  // The statements that the treaty has followed are known only to the authority, which checks them.
  const pin = { subject, subjectKeys, rootKey: named, followed: [] };
  const chain = followForTreaty(
    pin,
    rootKey,
    receivedChain(document) ?? NO_CHAIN,
    now,
    CHAIN_TOOLS,
  );
  if (chain.refusal !== null) {
    const { reason, message } = chain.refusal;
    const what = `${keys} is rejected for treaty ${treaty.treaty_id}`;
    throw failure(EXIT.refused, reason, `${what}: ${message} Nothing was changed.`);
  }
  const accepted = acceptedKeys(chain.inForce, subjectKeys, now);
  const isSame =
    chain.inForce.length === (followed?.sequence ?? 0) && accepted.join() === subjectKeys.join();
  if (chain.inForce.length === 0 || isSame) return null;
  const states = new Map(keysInForce(chain.inForce, now).map((key) => [key.public_key, key]));
  return [
    `Treaty ${treaty.treaty_id} recognizes "${subject}". It is replaced by one with the same scope, until ${treaty.expires_at}:`,
    '',
    ...chainLines(chain, named ?? rootKey, now),
    ...keyLines(subjectKeys, accepted, (key) => {
      const { state, signs_until } = states.get(key) ?? {};
      if (!accepted.includes(key)) return `, ${state}`;
      return state === 'previous' ? `, until ${signs_until}` : '';
    }),
  ];
}

function chainLines(
  { inForce, rootKey }: FollowedChain,
  trusted: string | null,
  now: number,
): string[] {
  const last = inForce.at(-1);
  if (last === undefined) return [];
  const why = {
    planned: 'planned',
    compromise: 'the old key was stolen',
    roll_back: 'rolled back',
  };
  const at = `${last.activates_at} (${fromNow(instantOf(last.activates_at) - now)})`;
  const unknown = trusted === null ? '; new to the treaty: compare it with its operators' : '';
  return [
    `  statement      ${last.sequence} of the chain, in force since ${at}; ${why[last.kind]}`,
    `  root key       ${rootKey}${unknown}`,
  ];
}

function keyLines(
  before: readonly string[],
  after: readonly string[],
  noteOf: (key: string) => string = () => '',
): string[] {
  const removed = before.filter((key) => !after.includes(key));
  return [
    ...after.map(
      (key) => `  ${before.includes(key) ? 'keeps' : 'adds '}          ${key}${noteOf(key)}`,
    ),
    ...removed.map((key) => `  removes        ${key}${noteOf(key)}`),
  ];
}

function assertAccepted(changes: readonly string[], question: string): Promise<void> {
  return assertConfirmed([...changes, ''], {
    question,
    otherwise: 'A change of treaties needs confirmation: add --yes, or run this on a terminal',
    declined: 'Nothing was changed',
  });
}
