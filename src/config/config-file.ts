/** The data folder's configuration: what `init` chose for the network; flags and environment override it. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { checkedJson } from './checked-json.ts';
import { FILES } from './data-folder.ts';

const ConfigFile = Type.Object({
  network_name: Type.Optional(Type.String()),
  operators: Type.Array(
    Type.Object({ key_id: Type.String(), tier: Type.String(), public_key: Type.String() }),
  ),
  admin_signature_v1: Type.Optional(Type.String()),
  signer: Type.Optional(Type.String()),
  store: Type.Optional(Type.String()),
  tls_cert: Type.Optional(Type.String()),
  tls_key: Type.Optional(Type.String()),
});

export type ConfigFile = Static<typeof ConfigFile>;

/** A folder without the file configures nothing. */
export function readConfigFile(dataDir: string): ConfigFile {
  const path = join(dataDir, FILES.config);
  if (!existsSync(path)) return { operators: [] };
  return checkedJson(ConfigFile, textOf(path), `The configuration file ${path}`);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new Error(`The configuration file ${path} cannot be read`);
  }
}
