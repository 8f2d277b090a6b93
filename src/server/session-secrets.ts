/** Gives the edges the secret of heartbeat sessions, which the current key of the authority determines [core-3-4]. */
import type { Signer } from '../base/crypto/primitives.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import { type SessionSecret, sessionBoxKeys } from '../edge/auth/session.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import { SESSION_LABEL, sessionBoxText } from '../protocol/heartbeat-session.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { isSignerUnavailable } from '../protocol/refusals.ts';
import { derivedSecret, keysIn, networkDigest } from './derived-secret.ts';

export interface SessionSecretsOptions {
  readonly signer: Pick<AuthoritySigner, 'held'>;
  readonly genesis: GenesisBlock;
  readonly publisher: Pick<DocumentPublisher, 'follow'>;
  /** Called with the secret of the current key; null if it cannot be derived now. */
  use(secret: SessionSecret | null): void;
}

/** Returns a function that tries again if the secret of the current key could not be derived. */
export function followSessionSecret({
  signer,
  genesis,
  publisher,
  use,
}: SessionSecretsOptions): () => void {
  const network = networkDigest(genesis);
  let current: string | null = null;
  let derivedFor: string | null = null;

  function secretOfCurrent(): SessionSecret | null {
    const key = signer.held().find(({ publicKey }) => publicKey === current);
    return key === undefined ? null : sessionSecret(key, network);
  }

  function derive(): void {
    if (current === derivedFor) return;
    const secret = secretOfCurrent();
    derivedFor = secret === null ? null : current;
    use(secret);
  }

  publisher.follow(({ name, document }) => {
    if (name !== 'authority_keys') return;
    current = keysIn(document).find(({ state }) => state === 'current')?.public_key ?? null;
    derive();
  });
  return derive;
}

/** Null while the signer is unavailable. */
function sessionSecret(key: Signer, network: string): SessionSecret | null {
  try {
    const secret = derivedSecret(key, network, SESSION_LABEL);
    const { publicKey } = sessionBoxKeys(secret);
    return { secret, signature: key.sign(sessionBoxText(publicKey.toString('base64'))) };
  } catch (cause) {
    if (isSignerUnavailable(cause)) return null;
    throw cause;
  }
}
