/**
 * Salvages what can be read from a damaged state, as lines of JSON [backup-10]: a head, the rows that match their
 * checksums, and a line for each loss. No authority starts from it.
 */
import { decodeEntries } from './audit-log.ts';
import type { Loss, RemainingRow } from './lmdb/remains.ts';
import { DamagedState, decodeRow } from './rows.ts';
import { createShapes, type Shape, type Shapes, type StoredSnapshot } from './shapes.ts';
import type { StoredSubject } from './store.ts';
import { lineOf } from './stream/rows.ts';
import { decodeDigests, decodeHistory, decodeStoredAnswers, livenessReader } from './table-rows.ts';
import type { Totals } from './totals.ts';

export const SALVAGE_FORMAT = 'mesh-na-salvage';

export interface Salvaged {
  /** Lines by table. */
  readonly rows: { [table: string]: number };
  /** One sentence per loss. */
  readonly lost: string[];
}

/** Yields the pieces of the file; `salvaged` is complete after the last one. */
export function* salvageLines(
  remains: Iterable<RemainingRow | Loss>,
  salvaged: Salvaged,
): Generator<string> {
  const { rows, lost } = salvaged;
  const meta = new Map<string, unknown>();
  let reader: RowReader | null = null;
  for (const found of remains) {
    if ('lost' in found) lost.push(found.lost);
    else if (found.table === 'meta') readMeta(found, meta, lost);
    else {
      if (reader === null) {
        yield `${headLine(meta)}\n`;
        reader = rowReader(meta, lost);
      }
      const lines = reader.linesOf(found);
      rows[found.table] = (rows[found.table] ?? 0) + lines.length;
      for (const line of lines) yield `{"table":"${found.table}","row":${line}}\n`;
    }
  }
  if (reader === null) yield `${headLine(meta)}\n`;
  else reader.finish();
  for (const sentence of lost) yield `${JSON.stringify({ lost: sentence })}\n`;
}

/** The key of the row without a checksum, which determines how the others are read. */
const SCHEMA = 'schema';

function readMeta(
  { key, row, version }: RemainingRow,
  meta: Map<string, unknown>,
  lost: string[],
): void {
  try {
    const value = key === SCHEMA ? row[0] : decodeRow('meta', key, row, version);
    meta.set(String(key), value);
  } catch (cause) {
    lost.push(sentenceOf(cause, 'meta'));
  }
}

function headLine(meta: ReadonlyMap<string, unknown>): string {
  const totals = meta.get('totals') as Totals | undefined;
  return JSON.stringify({
    format: SALVAGE_FORMAT,
    format_version: 1,
    schema_version: meta.get(SCHEMA) ?? null,
    network: meta.get('network') ?? null,
    epoch: meta.get('epoch') ?? null,
    revision: totals?.revision ?? null,
    audit_length: totals?.auditEntries ?? null,
    forgotten_times: meta.get('forgotten_times') ?? [],
    unstored_times: meta.get('unstored_times') ?? [],
  });
}

interface RowReader {
  /** The lines for a row; none if the row is lost. */
  linesOf(found: RemainingRow): readonly string[];
  /** Call after the last row. */
  finish(): void;
}

function rowReader(meta: ReadonlyMap<string, unknown>, lost: string[]): RowReader {
  const known = meta.get('shapes') as readonly Shape[] | undefined;
  const shapes = known === undefined ? null : createShapes(known);
  const readLiveness = livenessReader();
  let lastEntry = 0;

  function auditLines(found: RemainingRow): string[] {
    const entries = decodeEntries(found);
    const last = found.key as number;
    noteGap(last - entries.length);
    lastEntry = last;
    return entries.map((entry) => lineOf('audit', entry));
  }

  function noteGap(before: number): void {
    if (before > lastEntry) lost.push(`table audit: entries ${lastEntry + 1} to ${before}`);
  }

  function linesIn(found: RemainingRow): string[] {
    const [bucket, revision] = [found.key].flat();
    switch (found.table) {
      case 'subjects':
        return [subjectLine(shapes, found)];
      case 'nonces':
        return [JSON.stringify({ bucket, revision, digests: decodeDigests(found) })];
      case 'answers':
        return [JSON.stringify({ bucket, revision, answers: decodeStoredAnswers(found) })];
      case 'audit':
        return auditLines(found);
      case 'liveness':
        return [lineOf('liveness', readLiveness(found))];
      case 'history':
        return [lineOf('history', decodeHistory(found))];
      case 'meta':
        return [];
    }
  }

  return {
    linesOf(found) {
      try {
        return linesIn(found);
      } catch (cause) {
        lost.push(sentenceOf(cause, found.table));
        return [];
      }
    },
    finish() {
      const totals = meta.get('totals') as Totals | undefined;
      if (totals !== undefined) noteGap(totals.auditEntries);
    },
  };
}

/** Without the table of shapes, the values of a subject's members are known, but not their names. */
function subjectLine(shapes: Shapes | null, { key, version, row }: RemainingRow): string {
  const stored = decodeRow('subjects', key, row, version) as StoredSnapshot;
  const [kind, id] = key as [string, string];
  if (shapes === null) return JSON.stringify({ kind, id, version, stored });
  const snapshot = shapes.build(stored, (value) => value);
  return lineOf('subjects', { kind, id, version, snapshot } as StoredSubject);
}

function sentenceOf(cause: unknown, table: string): string {
  if (cause instanceof DamagedState) return cause.what;
  const problem = cause instanceof Error ? cause.message : String(cause);
  return `table ${table}: a row cannot be read (${problem})`;
}
