/** Profiles of remote authorities, in the user's configuration folder. */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import Type, { type Static } from 'typebox';
import { Value } from 'typebox/value';
import { jsonText } from '../../base/json/write.ts';
import { AuthoritySuccession } from '../../protocol/records/authority-succession.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { readSaved, replaceFile } from '../kernel/saved-file.ts';

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

export function profileOption(): Option {
  return new Option(
    '--profile <name>',
    'use the authority that mesh-na connect saved under this name',
  )
    .env('MESH_PROFILE')
    .argParser(profileName);
}

export function profileName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 letters, digits, dots, hyphens or underscores.',
  );
}

/** An option, because the environment is read only through options. */
export function configHomeOption(): Option {
  return new Option('--config-home <folder>', "the user's configuration folder")
    .env('XDG_CONFIG_HOME')
    .hideHelp();
}

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

function profilePath(configHome: string | undefined, name: string): string {
  // The XDG Base Directory Specification says to treat an empty variable as unset.
  const home = configHome || join(homedir(), '.config');
  return join(home, 'mesh-na', 'profiles', `${name}.json`);
}
