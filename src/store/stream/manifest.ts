/** The manifest of a portable stream: its description of itself, signed by the authority [backup-2]. */
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { RecordSigner, VerifySignature } from '../../base/crypto/primitives.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson } from '../../base/json/write.ts';
import {
  type GenesisBlock,
  isSignedByRoot,
  readGenesisBlock,
} from '../../protocol/records/genesis.ts';
import { Datetime, Signatures } from '../../protocol/records/record.ts';
import { isSignedByAny, signRecord } from '../../protocol/records/signed-record.ts';
import { NetworkIdentity } from '../network-identity.ts';
import type { TimeRange } from '../store.ts';
import type { StateFacts } from './ports.ts';
import { DamagedStream, STREAM_TABLES, type StreamTable } from './rows.ts';

const FORMAT = 'mesh-na-state';
export const FORMAT_VERSION = 1;

const Count = Type.Integer({ minimum: 0 });
const Range = Type.Tuple([Type.Integer(), Type.Integer()]);
const TableSummary = Type.Object({ rows: Count, sha256: Type.String() });

export const Manifest = Type.Object({
  format: Type.Literal(FORMAT),
  format_version: Type.Literal(FORMAT_VERSION),
  created_at: Datetime,
  network: NetworkIdentity,
  genesis: Type.Unsafe<JsonObject>(Type.Object({})),
  genesis_sha256: Type.String(),
  database: Type.Object({ backend: Type.String(), schema_version: Count }),
  epoch: Count,
  revision: Count,
  is_closed: Type.Boolean(),
  audit_length: Count,
  audit_head: Type.String(),
  crl_sequence: Type.Integer({ minimum: -1 }),
  feed_sequence: Type.Integer({ minimum: -1 }),
  forgotten_times: Type.Array(Range),
  unstored_times: Type.Array(Range),
  tables: Type.Object({
    subjects: TableSummary,
    nonces: TableSummary,
    audit: TableSummary,
    liveness: TableSummary,
    history: TableSummary,
  }),
  signatures: Signatures,
});

export type Manifest = Static<typeof Manifest>;

export type TableSummaries = { readonly [Table in StreamTable]: Static<typeof TableSummary> };

export interface ManifestParts {
  readonly createdAt: string;
  readonly genesis: GenesisBlock;
  readonly database: { readonly backend: string; readonly schemaVersion: number };
  readonly facts: StateFacts;
  readonly tables: TableSummaries;
  /** Sequence numbers of the certificate revocation list and of our own feed; -1 before the first one. */
  readonly crlSequence: number;
  readonly feedSequence: number;
}

export function signedManifest(parts: ManifestParts, signer: RecordSigner): Manifest {
  const { facts, genesis, database } = parts;
  const record = {
    format: FORMAT,
    format_version: FORMAT_VERSION,
    created_at: parts.createdAt,
    network: facts.network,
    genesis,
    genesis_sha256: sha256Hex(canonicalJson(genesis)),
    database: { backend: database.backend, schema_version: database.schemaVersion },
    epoch: facts.epoch,
    revision: facts.revision,
    is_closed: facts.isClosed,
    audit_length: facts.auditLength,
    audit_head: facts.auditHead,
    crl_sequence: parts.crlSequence,
    feed_sequence: parts.feedSequence,
    forgotten_times: facts.forgottenTimes.map(widened),
    unstored_times: facts.unstoredTimes.map(widened),
    tables: parts.tables,
  } satisfies Omit<Manifest, 'signatures'>;
  const { signatures, ...rest } = signRecord(record, signer);
  return { ...rest, signatures: [...signatures] };
}

/** Refusing up to a millisecond more is harmless, and every program writes integers the same way. */
function widened([after, until]: TimeRange): [number, number] {
  return [Math.floor(after), Math.ceil(until)];
}

/** Checks the structure, the genesis block and the signature; throws `DamagedStream` if one of them is invalid. */
export function readManifest(value: unknown, verify: VerifySignature): Manifest {
  if (!Value.Check(Manifest, value)) throw new DamagedStream(unreadable(value));
  const manifest = value as Manifest;
  const { network } = manifest;
  const genesis = genesisOf(manifest);
  if (sha256Hex(canonicalJson(manifest.genesis)) !== manifest.genesis_sha256) {
    throw new DamagedStream('its genesis block does not match its digest');
  }
  if (!isSignedByRoot(genesis, verify) || genesis.root_public_key !== network.root_public_key) {
    throw new DamagedStream('its genesis block is not signed by the root key that it names');
  }
  if (genesis.network_name !== network.network_name) {
    throw new DamagedStream('its genesis block is that of another network');
  }
  if (!isSignedByAny(manifest, [genesis.network_authority.public_key], verify)) {
    throw new DamagedStream('its manifest is not signed by the authority that it names');
  }
  return manifest;
}

export function genesisOf({ genesis }: Manifest): GenesisBlock {
  const block = readGenesisBlock(genesis);
  if (block === null) throw new DamagedStream('its genesis block does not have the expected form');
  return block;
}

function unreadable(value: unknown): string {
  const { format, format_version: version } = (value ?? {}) as {
    format?: unknown;
    format_version?: unknown;
  };
  if (format !== FORMAT) return 'it does not begin with the manifest of a state';
  if (version !== FORMAT_VERSION) return `it has format version ${String(version)}`;
  return 'its manifest does not have the expected form';
}

export function factsOf(manifest: Manifest): StateFacts {
  return {
    network: manifest.network,
    epoch: manifest.epoch,
    revision: manifest.revision,
    auditLength: manifest.audit_length,
    auditHead: manifest.audit_head,
    isClosed: manifest.is_closed,
    forgottenTimes: manifest.forgotten_times,
    unstoredTimes: manifest.unstored_times,
  };
}

/** The tables in which two states differ. */
export function differingTables(a: TableSummaries, b: TableSummaries): StreamTable[] {
  return STREAM_TABLES.filter(
    (table) => a[table].rows !== b[table].rows || a[table].sha256 !== b[table].sha256,
  );
}
