/** TLS certificates for tests, made by OpenSSL. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/tls/pair.ts';

export interface MadePair extends TlsFiles {
  readonly name: string;
}

/** A certificate for 127.0.0.1 that is its own issuer; its subject is the name. */
export function makeTlsPair(folder: string, name: string, days = 30): MadePair {
  const [certFile, keyFile] = [join(folder, `${name}.crt`), join(folder, `${name}.pem`)];
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-days', String(days), '-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'],
      ...['-out', certFile, '-keyout', keyFile],
    ],
    { stdio: 'ignore' },
  );
  chmodSync(keyFile, 0o600);
  return { name, certFile, keyFile };
}

/** Puts the pair in the place of another, as a renewal does. */
export function putInPlace(pair: TlsFiles, place: TlsFiles): void {
  for (const file of ['certFile', 'keyFile'] as const) {
    copyFileSync(pair[file], `${place[file]}.new`);
    if (file === 'keyFile') chmodSync(`${place[file]}.new`, 0o600);
    renameSync(`${place[file]}.new`, place[file]);
  }
}
