/** The texts of heartbeat sessions, which both sides build [core-3-4]. */

export const SESSION_HEADER = 'X-Mesh-Session';

const VERSION = 'v1';

/** A session as both sides identify it. */
export interface SessionName {
  readonly nodePublicKey: string;
  readonly certId: string;
  /** A timestamp, verbatim. */
  readonly expiresAt: string;
}

/** The text that the session key is derived from. */
export function sessionText({ nodePublicKey, certId, expiresAt }: SessionName): string {
  return `${nodePublicKey}\n${expiresAt}\n${certId}`;
}

/** The text in front of the body, together with which it is authenticated. */
export function beatText(instant: string): string {
  return `POST\n/heartbeat\n${instant}\n`;
}

/** The label of the text from whose signature the secrets of all sessions are derived. */
export const SESSION_LABEL = 'mesh-na session 1';

/** The label of the seed of the X25519 key, and of the text that the authority's key signs about it. */
export const SESSION_BOX_LABEL = 'mesh-na session box 1';

export function sessionBoxText(publicKey: string): string {
  return `${SESSION_BOX_LABEL}\n${publicKey}`;
}

export interface BeatProof {
  /** A timestamp, verbatim. */
  readonly expiresAt: string;
  /** A timestamp, verbatim. */
  readonly instant: string;
  /** Base64. */
  readonly mac: string;
}

export function sessionHeader({ expiresAt, instant, mac }: BeatProof): string {
  return `${VERSION} ${expiresAt} ${instant} ${mac}`;
}

/** Base64 of 32 bytes. */
const MAC_LENGTH = 44;
const MAX_HEADER_LENGTH = 160;

/** Null if the header does not have the form. */
export function readSessionHeader(header: string): BeatProof | null {
  if (header.length > MAX_HEADER_LENGTH) return null;
  const [version, expiresAt, instant, mac, ...more] = header.split(' ');
  if (version !== VERSION || expiresAt === undefined || instant === undefined) return null;
  return mac?.length === MAC_LENGTH && more.length === 0 ? { expiresAt, instant, mac } : null;
}
