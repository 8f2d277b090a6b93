/** How a profile follows its authority from one key to the next [authority-keys-7]. */
import { messageOf } from '../../base/error-message.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { verifyText } from '../../client/keys.ts';
import { portableSha256 } from '../../client/sha256.ts';
import { followChain } from '../../protocol/records/authority-chain.ts';
import { printNotice } from '../kernel/output.ts';
import { successionText } from './followed-keys.ts';
import { type Profile, saveProfile } from './profiles.ts';
import { publicClient, type Reach } from './server.ts';

export interface ProfilePlace {
  readonly configHome?: string;
  readonly name: string;
}

/** Returns the profile with the current key, and saves what is new. A chain that is refused changes nothing. */
export async function followProfile(
  place: ProfilePlace,
  profile: Profile,
  reach: Reach,
): Promise<Profile> {
  // If the authority does not answer, the command itself says so.
  const document = await publicClient(reach)
    .authorityKeys()
    .catch(() => null);
  const { authority_key: authorityKey, root_key: rootKey, followed: known = [] } = profile;
  const networkName = (known[0] ?? document?.successions[0])?.network_name;
  if (document === null || networkName === undefined) return profile;
  const trusted = rootKey === undefined ? { authorityKey } : { rootKey };
  const tools = { verify: verifyText, sha256: portableSha256 };
  const pin = { networkName, trusted, known };
  const verdict = followChain(pin, document, systemRuntime.now(), tools);
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

function refused({ name }: ProfilePlace, profile: Profile, problem: string): Profile {
  printNotice(
    `Profile "${name}" keeps the authority key ${profile.authority_key}, because the keys from the authority are rejected: ${problem}`,
  );
  return profile;
}
