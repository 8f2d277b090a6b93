/** Shared by the `verify` commands: verification by the authority or, with `--offline`, by this program. */

import { type Command, Option } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { type Runtime, systemRuntime } from '../../base/runtime.ts';
import { createNetworkTrust, type NetworkTrustOptions } from '../../client/followed-keys.ts';
import { verifyText } from '../../client/keys.ts';
import { genesisProblem } from '../../client/network-trust.ts';
import type { Sent } from '../../client/operations.ts';
import type { PublicClient } from '../../client/public-client.ts';
import { portableSha256 } from '../../client/sha256.ts';
import type { AnswerOf } from '../../protocol/api/define.ts';
import type { Api } from '../../protocol/api/table.ts';
import type { FeedIssuer, Verification, Verifier } from '../../protocol/api/verification.ts';
import * as verifications from '../../protocol/api/verifications.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { keyOfFeed, readRevocationFeed } from '../../protocol/records/revocation-feed.ts';
import { REFUSALS, Refusal } from '../../protocol/refusals.ts';
import { CONFIG_HOME, chosenProfile, followKeys, profileName } from '../connection/profiles.ts';
import { type Inputs, inputsOf, methodOf } from '../connection/route-command.ts';
import { ANYONE, publicClient } from '../connection/server.ts';
import { define, type Form, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { readGenesisFile, readJsonFile } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import { asJson, type Finding, printVerdict } from '../kernel/output.ts';

/** A public command that can do without an authority. */
export const VERIFIER = {
  options: [
    option('--offline', 'verify locally without asking an authority'),
    option('--genesis <file>', 'with --offline: genesis of the authority whose key is the default'),
    option(
      '--authority-keys <file>',
      'with --offline: /authority-keys of that authority, to follow its key from the one that is known',
    ),
    option(
      '--profile <name>',
      'with --offline: profile of the authority whose key is the default',
      { parse: profileName },
    ),
    CONFIG_HOME,
    ...ANYONE.options,
  ],
} as const;

export type VerificationOptions = OptionsIn<typeof VERIFIER.options> & {
  /** Only for `attestation verify`. */
  readonly feed?: string;
};

/** Option for the keys that must have signed a record; `flag` is, for example, `--issuer-key`. */
export function signerKeyOption(flag: string, whose = 'it'): Option {
  const about = `key that must have signed ${whose} (repeatable; default: the authority's)`;
  return option(`${flag} <key>`, about, { parse: publicKey, many: true });
}

interface VerifyForm<
  Name extends keyof Verifications,
  File extends keyof Sent<Name>,
  Value extends keyof Sent<Name>,
> extends Inputs<File, Value>,
    Pick<Form<[], []>, 'about' | 'notes' | 'examples'> {
  /** A genuine record that is rejected without `--accept-denial`. */
  readonly denial?: string;
  /** Completes the members that were given. */
  readonly sent?: (
    given: Pick<Sent<Name>, File | Value>,
    options: VerificationOptions,
    args: readonly string[],
  ) => Promise<Sent<Name>>;
  readonly finding: (
    verdict: AnswerOf<Api[Name]>,
    sent: Sent<Name>,
    acceptsDenial: boolean,
  ) => Finding & { readonly what: string };
}

/** Defines a command that verifies records and prints the verdict. */
export function verifyCommand<
  Name extends keyof Verifications,
  File extends keyof Sent<Name> = never,
  Value extends keyof Sent<Name> = never,
>(group: Command, name: Name, form: VerifyForm<Name, File, Value>): void {
  const { denial, finding } = form;
  const inputs = inputsOf<Name, File, Value>(name, form);
  const accepting = new Option(
    '--accept-denial',
    `exit with code 0 for ${denial}, too, if it is genuine`,
  );
  define(group, 'verify', {
    ...form,
    asks: VERIFIER,
    args: inputs.args,
    options: [...inputs.options, ...(denial === undefined ? [] : [accepting])],
    async run(_, __, command) {
      const options = command.opts<VerificationOptions & { readonly acceptDenial?: boolean }>();
      const verifier = await verifierOf(options);
      const given = await inputs.read(command);
      const sent = (await form.sent?.(given, options, command.args)) ?? (given as Sent<Name>);
      const verdict = await methodOf(verifier, name)(sent as JsonObject);
      const { acceptDenial = false } = options;
      const { what, ...found } = finding(verdict as AnswerOf<Api[Name]>, sent, acceptDenial);
      printVerdict(options, asJson(verdict), what, found);
    },
  });
}

export async function verifierOf(options: VerificationOptions): Promise<Verifications> {
  const { offline, feed } = options;
  if (!offline) {
    assertOnline(options);
    return publicClient(options);
  }
  const anchor = await anchorOf(options);
  return offlineVerdicts({
    authorityKeys: () => anchorKeys(anchor),
    sovereignId: anchor.sovereignId,
    feed: feed === undefined ? null : await readJsonFile(feed, MOST_BYTES.list),
    runtime: systemRuntime,
  });
}

/** The parties whose keys are known by default. */
export async function partiesOf(options: VerificationOptions): Promise<KnownParties> {
  return options.offline ? anchorOf(options) : knownParties(publicClient(options));
}

/** The trusted authority. */
async function anchorOf({
  genesis: file,
  authorityKeys,
  profile,
  configHome,
}: VerificationOptions): Promise<Anchor> {
  const recognized = new Map();
  const genesis = file === undefined ? null : await genesisIn(file);
  const sovereignId = genesis?.network_name ?? null;
  const key =
    genesis?.network_authority.public_key ?? chosenProfile(configHome, profile)?.authority_key;
  if (key === undefined) return { sovereignId, authorityKeys: [], recognized };
  if (authorityKeys === undefined) return { sovereignId, authorityKeys: [key], recognized };
  const document = await readJsonFile(authorityKeys);
  // The known key vouches for the name, too.
  const networkName = sovereignId ?? String(document.network_name);
  const keys = followedKeys(document, {
    networkName,
    authorityKey: key,
    ...(genesis !== null && { rootKey: genesis.root_public_key }),
  });
  return { sovereignId, authorityKeys: keys, recognized };
}

/** All keys of the authority, except those that were compromised; the newest first, because a search tries at most 32. */
function followedKeys(
  document: JsonObject,
  pin: Pick<NetworkTrustOptions, 'networkName' | 'authorityKey' | 'rootKey'>,
): readonly string[] {
  const trust = createNetworkTrust({ ...pin, now: systemRuntime.now });
  followKeys(trust, document);
  const trusted = trust.keys().filter(({ state }) => state !== 'distrusted');
  return trusted.map(({ public_key }) => public_key).reverse();
}

async function genesisIn(file: string): Promise<GenesisBlock> {
  const genesis = await readGenesisFile(file);
  const pin = { rootKey: genesis.root_public_key, genesis: null };
  const problem = genesisProblem(genesis, pin, systemRuntime.now());
  if (problem === null) return genesis;
  throw failure(EXIT.refused, 'invalid_genesis', `The genesis is rejected: ${problem}`);
}

function anchorKeys({ authorityKeys }: Anchor): readonly string[] {
  if (authorityKeys.length > 0) return authorityKeys;
  const message = '--offline needs the key of the signer, --genesis or --profile';
  throw usageFailure(message);
}

function assertOnline({ genesis, authorityKeys, profile, feed }: VerificationOptions): void {
  const given = { genesis, 'authority-keys': authorityKeys, profile, feed };
  for (const [flag, value] of Object.entries(given)) {
    if (value !== undefined) throw usageFailure(`--${flag} needs --offline`);
  }
}

/** The authority and the sovereigns it recognizes, requested once. */
interface KnownParties {
  /** Null when unknown. */
  readonly sovereignId: string | null;
  /** Keys of the other sovereigns by name, from the active treaties of this one. */
  readonly recognized: ReadonlyMap<string, readonly string[]>;
}

interface Anchor extends KnownParties {
  /** Empty when unknown. */
  readonly authorityKeys: readonly string[];
}

async function knownParties(client: PublicClient): Promise<KnownParties> {
  const { sovereign_id } = await client.readSovereign();
  const { recognition_treaties } = await client.listTreaties({
    issuer_sovereign_id: sovereign_id,
    status: 'active',
  });
  const recognized = new Map<string, readonly string[]>();
  for (const { treaty, lifecycle } of recognition_treaties) {
    if (lifecycle.state !== 'active' && lifecycle.state !== 'expiring_soon') continue;
    const { subject_sovereign_id: subject, subject_public_keys: keys } = treaty;
    recognized.set(subject, [...(recognized.get(subject) ?? []), ...keys]);
  }
  return { sovereignId: sovereign_id, recognized };
}

/**
 * `flag` is the option that gives the keys of this party. Null for the authority itself, whose earlier keys count, too:
 * the verifier knows them.
 */
export function keysOf(
  { sovereignId, recognized }: KnownParties,
  party: string,
  flag: string,
): readonly string[] | null {
  if (party === sovereignId) return null;
  const keys = recognized.get(party);
  if (keys !== undefined) return keys;
  const message = `No key of "${party}" is known; give it with ${flag}`;
  throw failure(EXIT.refused, 'unknown_party', message);
}

export type Verifications = Pick<PublicClient, keyof typeof verifications>;

/** Checks that only an authority can make. */
type Unchecked = 'attestation_revocation' | 'treaty_revocation';

interface OfflineKnowledge {
  /** The default keys, one of which must have signed records; throws if none is known. */
  authorityKeys(): readonly string[];
  /** The name of that authority's sovereign; null if it is not known. */
  readonly sovereignId: string | null;
  /** The issuer's revocation feed, as received. */
  readonly feed: JsonObject | null;
  readonly runtime: Pick<Runtime, 'now' | 'uuid'>;
}

export function offlineVerdicts({
  authorityKeys,
  sovereignId,
  feed,
  runtime,
}: OfflineKnowledge): Verifications {
  const by: Verifier = {
    now: runtime.now(),
    uuid: runtime.uuid,
    verify: verifyText,
    sha256: portableSha256,
    isBounded: false,
    ownKeys: authorityKeys,
    ownName: sovereignId,
    ownPolicy() {
      throw usageFailure('--offline needs --policy or --treaty');
    },
    askRevocations: ({ attestation }, issuer) => ({
      attestation_revoked_here:
        attestation !== null && revokedBy(feed, issuer).includes(attestation.id),
      attestation_revoked_by_feed: false,
      treaty_revoked: false,
      treaty_keys: [],
    }),
  };
  const ofAttestation: readonly Unchecked[] = feed === null ? ['attestation_revocation'] : [];
  const unchecked: { readonly [name: string]: readonly Unchecked[] } = {
    verifyAttestation: ofAttestation,
    verifyAttestationWithTreaty: ['treaty_revocation', ...ofAttestation],
    verifyTreaty: ['treaty_revocation'],
  };
  const methods = Object.entries(verifications).map(([name, verification]) => {
    const method = async (request: JsonObject) => {
      const verdict = await verdictOf(verification, request, by);
      const missing = unchecked[name];
      return missing === undefined ? verdict : { ...verdict, unchecked: missing };
    };
    return [name, method];
  });
  return Object.fromEntries(methods);
}

/** Returns the verdict; a malformed record fails with the same code as from an authority. */
async function verdictOf(
  { judge }: Verification,
  request: JsonObject,
  by: Verifier,
): Promise<JsonObject> {
  try {
    return (await judge(request, by)).verdict as JsonObject;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code } = REFUSALS[error.refusal];
    throw failure(EXIT.refused, code, `A record does not have the expected form (${code})`);
  }
}

/** Ids on the feed of this issuer, which must be signed by one of its keys; none without a feed. */
function revokedBy(received: JsonObject | null, { name, keys }: FeedIssuer): readonly string[] {
  if (received === null) return [];
  const feed = readRevocationFeed(received);
  const refused = (reason: string) =>
    failure(EXIT.refused, reason, `The revocation feed is rejected: ${reason}`);
  if (feed === null) throw refused('malformed');
  if (feed.issuer_sovereign_id !== name) throw refused('wrong_issuer');
  if (keyOfFeed(feed, keys, verifyText) === null) throw refused('invalid_signature');
  return feed.revoked_attestation_ids;
}
