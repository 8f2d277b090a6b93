/** Reads a portable stream, and detects anything that was changed, cut off or added since it was written [backup-4]. */
import { createHash } from 'node:crypto';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseJson } from '../../base/json/parse.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { DamagedStream, rowIn, STREAM_TABLES, type StreamRows, type StreamTable } from './rows.ts';

/** A batch of rows from one table. */
export type RowBatch = {
  [Table in StreamTable]: { readonly table: Table; readonly rows: readonly StreamRows[Table][] };
}[StreamTable];

export interface StateStream {
  readonly manifest: Manifest;
  /** In table order; rejects if the rows do not match the signed manifest. */
  readonly batches: AsyncIterable<RowBatch>;
}

/** The longest rows contain a policy or the ids of an imported feed. */
const LONGEST_LINE = 256 * 1024 ** 2;
const BATCH_ROWS = 500;
const LINE_FEED = 0x0a;

export async function readStream(
  chunks: AsyncIterable<Uint8Array>,
  verify: VerifySignature,
): Promise<StateStream> {
  const lines = linesIn(chunks);
  const first = await lines.next();
  if (first.done === true) throw new DamagedStream('it is empty');
  const manifest = readManifest(manifestIn(first.value), verify);
  return { manifest, batches: batchesIn(lines, manifest) };
}

function manifestIn(line: Buffer): unknown {
  try {
    return parseJson(line.toString());
  } catch {
    throw new DamagedStream('it does not begin with the manifest of a state');
  }
}

async function* batchesIn(
  lines: AsyncGenerator<Buffer, void>,
  { tables }: Manifest,
): AsyncGenerator<RowBatch> {
  for (const table of STREAM_TABLES) yield* tableIn(lines, table, tables[table]);
  if ((await lines.next()).done !== true) throw new DamagedStream('more follows its last row');
}

async function* tableIn<Table extends StreamTable>(
  lines: AsyncGenerator<Buffer, void>,
  table: Table,
  { rows: total, sha256 }: { readonly rows: number; readonly sha256: string },
): AsyncGenerator<RowBatch> {
  const hash = createHash('sha256');
  let rows: StreamRows[Table][] = [];
  for (let count = 0; count < total; count += 1) {
    const line = await lines.next();
    if (line.done === true) throw new DamagedStream(`it ends within table ${table}`);
    hash.update(line.value).update('\n');
    rows.push(rowIn(table, line.value.toString()));
    if (rows.length < BATCH_ROWS) continue;
    yield { table, rows } as unknown as RowBatch;
    rows = [];
  }
  if (hash.digest('hex') !== sha256) {
    throw new DamagedStream(`the rows of table ${table} do not match their digest`);
  }
  if (rows.length > 0) yield { table, rows } as unknown as RowBatch;
}

/** The lines without their line feeds. The last line must also end with one. */
async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let begun: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
      yield begun.length === 0
        ? rest.subarray(0, end)
        : Buffer.concat([...begun, rest.subarray(0, end)]);
      begun = [];
      length = 0;
      rest = rest.subarray(end + 1);
    }
    if (rest.length === 0) continue;
    begun.push(rest);
    length += rest.length;
    if (length > LONGEST_LINE) throw new DamagedStream('one of its lines has no end');
  }
  if (begun.length > 0) throw new DamagedStream('it ends within a line');
}
