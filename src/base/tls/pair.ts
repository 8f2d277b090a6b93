/** A TLS certificate with its key, checked together before any connection uses them. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { MOST_BYTES } from '../byte-bounds.ts';
import { sha256Hex } from '../crypto/digest.ts';
import { isExposed } from '../keys/key-file.ts';
import { readNamedFile } from '../named-file.ts';

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface TlsPair extends TlsFiles {
  /** When the first certificate of the chain expires, in milliseconds since the epoch. */
  readonly notAfter: number;
  /** Changes with the content of either file. */
  readonly digest: string;
}

/** Throws a one-sentence error if clients could not be served with the pair at this time. */
export function readTlsPair({ certFile, keyFile }: TlsFiles, now: number): TlsPair {
  const certText = textOf('certificate', certFile);
  const keyText = textOf('key', keyFile);
  if (isExposed(keyFile)) {
    throw new Error(
      `The TLS key ${keyFile} can be opened by other users; run chmod 600 ${keyFile}`,
    );
  }
  const chain = chainOf(certText, certFile);
  if (!chain[0].checkPrivateKey(keyOf(keyText, keyFile))) {
    throw new Error(`The TLS key ${keyFile} does not belong to the certificate ${certFile}`);
  }
  const notBefore = Math.max(...chain.map(({ validFrom }) => Date.parse(validFrom)));
  const notAfter = Math.min(...chain.map(({ validTo }) => Date.parse(validTo)));
  if (notAfter <= now) {
    throw new Error(`The TLS certificate ${certFile} expired on ${dateOf(notAfter)}`);
  }
  if (notBefore > now) {
    throw new Error(`The TLS certificate ${certFile} is valid only from ${dateOf(notBefore)} on`);
  }
  return { certFile, keyFile, notAfter, digest: sha256Hex(Buffer.from(certText + keyText)) };
}

function textOf(what: string, path: string): string {
  try {
    return readNamedFile(path, MOST_BYTES.settings).toString('latin1');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(`The TLS ${what} ${path} cannot be read (${code})`);
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificate of the server comes first. */
function chainOf(text: string, path: string): readonly [X509Certificate, ...X509Certificate[]] {
  try {
    const [own, ...issuers] = (text.match(CERTIFICATE) ?? []).map(
      (pem) => new X509Certificate(pem),
    );
    if (own !== undefined) return [own, ...issuers];
  } catch {
    // A block that does not parse is not a certificate either.
  }
  throw new Error(`The TLS certificate ${path} holds no certificate in PEM form`);
}

function keyOf(text: string, path: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw new Error(`The TLS key ${path} holds no private key in PEM form without a passphrase`);
  }
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
