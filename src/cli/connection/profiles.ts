/** Profiles of remote authorities, in the user's configuration folder, and how they follow from one key to the next [authority-keys-7]. */

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import Type, { type Static } from 'typebox';
import { Value } from 'typebox/value';
import { messageOf } from '../../base/error-message.ts';
import { jsonText } from '../../base/json/write.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { AuthorityError } from '../../client/authority-error.ts';
import { CHAIN_TOOLS, type FollowVerdict, type NetworkTrust } from '../../client/followed-keys.ts';
import type { Received } from '../../client/received.ts';
import { followChain } from '../../protocol/records/authority-chain.ts';
import { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { readSaved, replaceFile } from '../kernel/files.ts';
import { printNotice } from '../kernel/output.ts';
import { publicClient, type Reach } from './server.ts';

export const DEFAULT_PROFILE = 'default';

const Profile = Type.Object({
  url: Type.String(),
  /** Base64 public key of the authority: the audience of signed requests. */
  authority_key: Type.String(),
  /** Vouches for later keys of the authority, if it is known. */
  root_key: Type.Optional(Type.String()),
  /** The statements by which the authority came to its key, as verified before. */
  followed: Type.Optional(Type.Array(AuthoritySuccession)),
  key_id: Type.String(),
  key_file: Type.String(),
  ca_file: Type.Optional(Type.String()),
});

export type Profile = Static<typeof Profile>;

export function profileOption(fallback?: string) {
  const about = 'use the authority that mesh-na connect saved under this name';
  const made = option('--profile <name>', about, { env: 'MESH_PROFILE', parse: profileName });
  if (fallback !== undefined) made.default(fallback);
  return made;
}

export function profileName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 letters, digits, dots, hyphens or underscores.',
  );
}

/** An option, because the environment is read only through options. */
export const CONFIG_HOME = option('--config-home <folder>', "the user's configuration folder", {
  env: 'XDG_CONFIG_HOME',
}).hideHelp();

/** Null when the profile does not exist. Throws when the file is not a profile. */
export function readProfile(configHome: string | undefined, name: string): Profile | null {
  const read = (value: unknown) => (Value.Check(Profile, value) ? value : null);
  return readSaved(profilePath(configHome, name), read, 'a profile');
}

/** The profile of this name, which must exist, or the default one if that exists. */
export function chosenProfile(
  configHome: string | undefined,
  name: string | undefined,
): Profile | null {
  const profile = onLocalFiles(() => readProfile(configHome, name ?? DEFAULT_PROFILE));
  if (profile !== null || name === undefined) return profile;
  const message = `There is no profile "${name}"; create one with mesh-na connect`;
  throw failure(EXIT.unusable, 'local_files', message);
}

export function saveProfile(
  configHome: string | undefined,
  name: string,
  profile: Profile,
): string {
  const path = profilePath(configHome, name);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, `${jsonText(profile)}\n`);
  return path;
}

/** All profiles with their names, in order. */
export function readProfiles(configHome: string | undefined): (readonly [string, Profile])[] {
  const folder = profilesFolder(configHome);
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const names = files.flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? []);
  return names.sort().flatMap((name) => {
    const profile = readProfile(configHome, name);
    return profile === null ? [] : [[name, profile] as const];
  });
}

/** Returns the path of its file. */
export function removeProfile(configHome: string | undefined, name: string): string {
  const path = profilePath(configHome, name);
  rmSync(path);
  return path;
}

function profilePath(configHome: string | undefined, name: string): string {
  return join(profilesFolder(configHome), `${name}.json`);
}

function profilesFolder(configHome: string | undefined): string {
  // The XDG Base Directory Specification says to treat an empty variable as unset.
  return join(configHome || join(homeFolder(), '.config'), 'mesh-na', 'profiles');
}

function homeFolder(): string {
  try {
    return homedir();
  } catch {
    const message = 'This user has no home folder: set HOME, or XDG_CONFIG_HOME';
    throw failure(EXIT.unusable, 'local_files', message);
  }
}

/** Follows a document of authority keys; with a genesis, which must be verified, it decides what is in force. */
export function followKeys(
  trust: NetworkTrust,
  document: Received,
  genesis?: GenesisBlock,
): FollowVerdict {
  const verdict = trust.follow(document, genesis);
  if (verdict.refusal === null) return verdict;
  const message = `The authority keys are rejected: ${verdict.refusal.message}`;
  throw failure(EXIT.refused, 'invalid_authority_keys', message);
}

/** A statement in one line. */
export function successionText(statement: AuthoritySuccession, isInForce: boolean): string {
  const { kind, to_key, activates_at, overlap_until, distrusted_from } = statement;
  if (!isInForce) return `The authority's key will be replaced by ${to_key} on ${activates_at}`;
  if (kind === 'roll_back')
    return `The authority's key is ${to_key} again: its change was rolled back`;
  const replaced = `The authority's key was replaced by ${to_key} on ${activates_at}`;
  return kind === 'planned'
    ? `${replaced}, as planned; both keys sign until ${overlap_until}`
    : `${replaced}, because it was compromised; what only the old key signed from ${distrusted_from} on is void`;
}

interface ProfilePlace {
  readonly configHome?: string;
  readonly name: string;
}

/** Returns the profile with the current key, and saves what is new. A chain that is refused changes nothing. */
export async function followProfile(
  place: ProfilePlace,
  profile: Profile,
  reach: Reach,
): Promise<Profile> {
  const document = await publicClient(reach).authorityKeys().catch(unlessSilent);
  const { authority_key: authorityKey, root_key: rootKey, followed: known = [] } = profile;
  const networkName = (known[0] ?? document?.successions[0])?.network_name;
  if (document === null || networkName === undefined) return profile;
  const trusted = rootKey === undefined ? { authorityKey } : { rootKey };
  const pin = { networkName, trusted, known };
  const verdict = followChain(pin, document, systemRuntime.now(), CHAIN_TOOLS);
  if (verdict.refusal !== null) {
    const { reason, message } = verdict.refusal;
    const cure = reason === 'root_key_needed' ? ' Run mesh-na connect again with --root-key.' : '';
    return refused(place, profile, `${message}${cure}`);
  }
  // A root key may have signed the statements of several networks.
  if (verdict.keys.every(({ public_key }) => public_key !== authorityKey)) {
    return refused(place, profile, `They do not contain its key ${authorityKey}.`);
  }
  const { inForce, currentKey } = verdict;
  const news = inForce.slice(known.length).at(-1);
  if (news === undefined || currentKey === null) return profile;
  printNotice(successionText(news, true));
  const followed = {
    ...profile,
    authority_key: currentKey,
    root_key: news.root_public_key,
    followed: [...inForce],
  };
  try {
    saveProfile(place.configHome, place.name, followed);
  } catch (error) {
    printNotice(`Profile "${place.name}" cannot be saved: ${messageOf(error)}`);
  }
  return followed;
}

/** A command goes on without this answer, unless there is none: it would wait for its own in vain, too. */
function unlessSilent(error: unknown): null {
  if (error instanceof AuthorityError && error.status === 0) throw error;
  return null;
}

function refused({ name }: ProfilePlace, profile: Profile, problem: string): Profile {
  printNotice(
    `Profile "${name}" keeps the authority key ${profile.authority_key}, because the keys from the authority are rejected: ${problem}`,
  );
  return profile;
}

/** The operators of every new network. */
export const FIRST_OPERATORS = [
  { key_id: 'ops-privileged', tier: 'privileged', name: 'operator-privileged' },
  { key_id: 'ops-standard', tier: 'standard', name: 'operator-standard' },
] as const;
