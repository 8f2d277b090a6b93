/** What to do about each error of an authority, and about other errors: one sentence in the imperative. */

import type { AuthorityError } from '../../client/authority-error.ts';
import { REFUSALS } from '../../protocol/refusals.ts';

const LINK = /\[([^\]]+)\]\(([^)]+)\)/g;

/** Returns what to do about an error, as plain text; null for an unknown code. */
export function cureOf({ status, wireCode, message }: AuthorityError): string | null {
  const known = Object.values(REFUSALS).filter(
    (refusal) => refusal.status === status && refusal.code === wireCode,
  );
  const refusal = known.find((each) => each.message === message) ?? known[0];
  return refusal?.cure.replace(LINK, '$1: docs/$2').replaceAll('`', '') ?? null;
}

const NOT_TRUSTED =
  'Trust the issuer of its certificate with --ca, or install a certificate that is valid for this name.';

const SILENCE: { readonly [code: string]: string } = {
  ENOTFOUND: 'The host is unknown: correct the name in the address, or fix the resolver.',
  EAI_AGAIN: 'The resolver does not answer: check the network of this machine.',
  ECONNREFUSED: 'Nothing listens there: start the authority, or correct the host and port.',
  ECONNRESET:
    'The server closed the connection: try https:// if it uses TLS; otherwise, check its log.',
  EPROTO: 'The server does not use TLS: use http://, or enable TLS there.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The server does not use TLS: use http://, or enable TLS there.',
  EHOSTUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ENETUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ETIMEDOUT: 'The host does not answer: check firewalls, or correct the address.',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: NOT_TRUSTED,
  CERT_HAS_EXPIRED: 'Renew the certificate of the server, or correct the clock of this machine.',
};

/** Returns what to do when no answer arrived, or an answer that is not from an authority. */
export function cureOfSilence({ code, cause }: AuthorityError): string | null {
  if (code === 'unreadable_answer') {
    return 'Another server answers there: correct the address, or check the proxy in front of the authority.';
  }
  if (code === 'timeout')
    return 'Try again; if the problem persists, check the log of the authority.';
  const reason = cause instanceof Error ? cause.cause : undefined;
  const known = reason instanceof Error && 'code' in reason ? SILENCE[String(reason.code)] : null;
  return known ?? null;
}

const SYSTEM: { readonly [code: string]: string } = {
  ENOENT: 'The file or folder does not exist: correct the path.',
  EACCES: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EPERM: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EISDIR: 'This is a folder: give the path of a file.',
  ENOTDIR: 'A part of the path is a file: correct the path.',
  EEXIST: 'It already exists: choose another name.',
  ENOSPC: 'The disk is full: free up space.',
  EROFS: 'The file system is read-only: choose another place.',
};

export function cureOfSystemError(code: string): string | null {
  return SYSTEM[code] ?? null;
}
