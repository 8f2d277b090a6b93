/**
 * The address of a PostgreSQL store, parsed from its URL and the usual variables. The displayed form never contains a
 * password.
 */
import type { ClientConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { readNamedFile } from '../../base/named-file.ts';

/** One of the servers that a URL lists. */
export interface ServerAddress {
  /** Host, port and database. */
  readonly shown: string;
  readonly config: ClientConfig;
}

export type StoreAddress = readonly ServerAddress[];

export type PgEnvironment = { readonly [name: string]: string | undefined };

const DEFAULT_PORT = 5432;
const URL_PARTS = /^postgres(?:ql)?:\/\/([^/?#]*@)?([^/?#@]*)(\/[^?#@]*)?(?:\?([^#]*))?$/;
/** In a user or password, these characters would begin another part of the URL. */
const UNENCODED =
  '. In its user and password, write %2F for /, %3F for ?, %23 for #, %25 for % and %40 for @, or set PGPASSWORD';
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];
/** Variables that the client does not read by itself, with the corresponding URL parameters. */
const SSL_VARIABLES = {
  PGSSLMODE: 'sslmode',
  PGSSLROOTCERT: 'sslrootcert',
  PGSSLCERT: 'sslcert',
  PGSSLKEY: 'sslkey',
} as const;

/** Throws a one-sentence error that does not repeat the URL. */
export function parseStoreAddress(text: string, environment: PgEnvironment): StoreAddress {
  const parts = URL_PARTS.exec(text);
  if (parts === null) {
    throw new Error(
      `The store must be named by a URL such as postgresql://user@host:5432/database${text.includes('@') ? UNENCODED : ''}`,
    );
  }
  const [, user = '', hosts = '', path = '', query = ''] = parts;
  const parameters = withSslVariables(new URLSearchParams(query), environment);
  return hosts
    .split(',')
    .map((host) =>
      serverAddress(`postgresql://${user}${host}${path}?${parameters}`, parameters, environment),
    );
}

function withSslVariables(given: URLSearchParams, environment: PgEnvironment): URLSearchParams {
  const parameters = new URLSearchParams(given);
  for (const [variable, name] of Object.entries(SSL_VARIABLES)) {
    const value = environment[variable];
    if (value && !parameters.has(name)) parameters.set(name, value);
  }
  const mode = parameters.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) {
    throw new Error(`sslmode of the store must be one of ${SSL_MODES.join(', ')}`);
  }
  if (mode === 'verify-ca' && !parameters.has('sslrootcert')) {
    throw new Error(
      'sslmode=verify-ca of the store needs sslrootcert, the file of the authority’s certificate',
    );
  }
  return parameters;
}

function serverAddress(
  url: string,
  parameters: URLSearchParams,
  environment: PgEnvironment,
): ServerAddress {
  const config = clientConfig(url, parameters);
  const host = config.host || environment.PGHOST || 'localhost';
  const port = config.port ?? Number(environment.PGPORT || DEFAULT_PORT);
  const user = config.user || environment.PGUSER || environment.USER || 'postgres';
  const database = config.database || environment.PGDATABASE || user;
  const password = config.password || environment.PGPASSWORD;
  const place = host.includes(':') ? `[${host}]` : host;
  return {
    shown: `${place}:${port}/${database}`,
    config: { ...config, host, port, user, database, ...(password ? { password } : {}) },
  };
}

function clientConfig(url: string, parameters: URLSearchParams): ClientConfig {
  try {
    // The library reads these files whole.
    for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
      const path = parameters.get(name);
      if (path) readNamedFile(path, MOST_BYTES.settings);
    }
    return toClientConfig(parse(url, { useLibpqCompat: true }));
  } catch (cause) {
    const { code, path } = cause as NodeJS.ErrnoException;
    const problem =
      path === undefined
        ? `it is not a valid URL${UNENCODED}`
        : `the file ${path} cannot be read (${code})`;
    throw new Error(`The URL of the store cannot be used: ${problem}`);
  }
}
