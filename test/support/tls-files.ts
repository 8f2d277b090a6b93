/** TLS certificates for tests, created by OpenSSL. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/base/tls/pair.ts';

export interface MadePair extends TlsFiles {
  readonly name: string;
}

/** A self-signed certificate for 127.0.0.1, with the name as its subject. */
export function makeTlsPair(folder: string, name: string, days = 30): MadePair {
  const pair = filesOf(folder, name);
  openssl([
    ...[...NEW_KEY, '-x509', '-days', String(days)],
    ...['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1', ...outputs(pair)],
  ]);
  chmodSync(pair.keyFile, 0o600);
  return { name, ...pair };
}

const NEW_KEY = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

function filesOf(folder: string, name: string): TlsFiles {
  return { certFile: join(folder, `${name}.crt`), keyFile: join(folder, `${name}.pem`) };
}

function outputs({ certFile, keyFile }: TlsFiles): string[] {
  return ['-out', certFile, '-keyout', keyFile];
}

function openssl(args: readonly string[]): void {
  execFileSync('openssl', args, { stdio: 'ignore' });
}

/** A certificate that issues others. */
export function makeIssuer(folder: string, name: string): MadePair {
  const pair = filesOf(folder, name);
  openssl([...NEW_KEY, '-x509', '-days', '30', '-subj', `/CN=${name}`, ...outputs(pair)]);
  return { name, ...pair };
}

export interface IssuedNames {
  /** Such as `IP:127.0.0.1` or `DNS:localhost`. */
  readonly subject: string;
  /** The certificate ended a day ago. */
  readonly isExpired?: boolean;
}

/** A certificate signed by the issuer. */
export function issueTlsPair(
  folder: string,
  name: string,
  issuer: TlsFiles,
  { subject, isExpired = false }: IssuedNames,
): MadePair {
  const pair = filesOf(folder, name);
  const dayAt = (days: number) =>
    new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '');
  const [from, to] = isExpired ? [-9, -1] : [-1, 30];
  const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${subject}`];
  const request = { certFile: `${pair.certFile}.request`, keyFile: pair.keyFile };
  openssl([...NEW_KEY, ...names, ...outputs(request)]);
  const [index, config] = [join(folder, 'index'), join(folder, 'issuing')];
  writeFileSync(index, '');
  writeFileSync(config, issuing(index));
  openssl([
    ...['ca', '-batch', '-notext', '-md', 'sha256', '-config', config],
    ...['-startdate', dayAt(from), '-enddate', dayAt(to), '-outdir', folder],
    ...['-cert', issuer.certFile, '-keyfile', issuer.keyFile],
    ...['-in', request.certFile, '-out', pair.certFile],
  ]);
  return { name, ...pair };
}

function issuing(index: string): string {
  return `[ca]
default_ca = all
[all]
database = ${index}
policy = any
rand_serial = yes
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
`;
}

/** Replaces another pair, as a renewal does. */
export function putInPlace(pair: TlsFiles, place: TlsFiles): void {
  for (const file of ['certFile', 'keyFile'] as const) {
    copyFileSync(pair[file], `${place[file]}.new`);
    if (file === 'keyFile') chmodSync(`${place[file]}.new`, 0o600);
    renameSync(`${place[file]}.new`, place[file]);
  }
}
