/** Encodes units, so that a unit that cannot be encoded is refused before any part of it is stored. */
import { auditLine } from './audit-log.ts';
import { encodeRow, type Totals } from './rows.ts';
import type { Shapes } from './shapes.ts';
import type { KeptAnswer, SubjectKey, SubjectRemoval, Unit } from './store.ts';
import { encodeAnswers, encodeNonces } from './table-rows.ts';

/** Stands in for a version if the subject is not in the store. */
export const NOT_STORED = 0;

const NONCE_BUCKET_MS = 60_000;
/** LMDB allows keys of 1,978 bytes, PostgreSQL about 2,700. */
const MAX_KEY_BYTES = 1900;

export interface EncodedUnit {
  readonly subjects: readonly EncodedSubject[];
  readonly removals: readonly SubjectRemoval[];
  readonly nonces: Unit['nonces'];
  readonly answers: readonly KeptAnswer[];
  readonly audit: readonly string[];
  /** The change in the number of subjects. */
  readonly growth: number;
}

export interface EncodedSubject {
  readonly kind: string;
  readonly id: string;
  readonly version: number;
  readonly replaces: number;
  readonly row: Buffer;
}

export function encodeUnit(unit: Unit, shapes: Shapes): EncodedUnit {
  const { subjects, removals, nonces, answers = [], audit } = unit;
  if (removals.length > 0) assertEachOnce([...subjects, ...removals]);
  for (const { kind, id } of subjects) assertKeyLength(kind + id);
  const created = subjects.filter(({ replaces }) => replaces === NOT_STORED);
  return {
    subjects: subjects.map(({ kind, id, version, replaces, snapshot }) => {
      const row = encodeRow('subjects', [kind, id], shapes.flatten(snapshot), version);
      return { kind, id, version, replaces, row };
    }),
    removals,
    nonces,
    answers,
    audit: audit.map(auditLine),
    growth: created.length - removals.length,
  };
}

/** The totals after these units are stored, with their nonces in this many rows. */
export function totalsAfter(
  totals: Totals,
  units: readonly EncodedUnit[],
  nonceRows: number,
): Totals {
  return {
    revision: totals.revision + units.length,
    subjects: units.reduce((sum, { growth }) => sum + growth, totals.subjects),
    nonceRows: totals.nonceRows + nonceRows,
    auditEntries: units.reduce((sum, { audit }) => sum + audit.length, totals.auditEntries),
  };
}

/** Encodes one row for the nonces that may be forgotten in the same minute, and one for the answers kept with them. */
export function nonceRows(units: readonly EncodedUnit[], revision: number) {
  const digests = byMinute(units.flatMap(({ nonces }) => nonces));
  const answers = byMinute(units.flatMap((unit) => unit.answers));
  return Array.from(digests, ([bucket, nonces]) => {
    const key: [number, number] = [bucket, revision];
    const kept = answers.get(bucket);
    return {
      key,
      row: encodeNonces(
        key,
        nonces.map(({ digest }) => digest),
      ),
      answers:
        kept === undefined
          ? null
          : encodeAnswers(
              key,
              kept.map(({ digest, request, answer }) => [digest, request, answer]),
            ),
    };
  });
}

function byMinute<Item extends { readonly forgetAt: number }>(items: readonly Item[]) {
  const minutes = new Map<number, Item[]>();
  for (const item of items) {
    const bucket = nonceBucket(item.forgetAt);
    const minute = minutes.get(bucket);
    if (minute === undefined) minutes.set(bucket, [item]);
    else minute.push(item);
  }
  return minutes;
}

export function assertKeyLength(key: string): void {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw new Error('The id of a subject is too long');
}

function assertEachOnce(subjects: readonly SubjectKey[]): void {
  if (new Set(subjects.map(addressOf)).size < subjects.length) {
    throw new Error('A unit names a subject twice');
  }
}

/** Rounds up to the instant when nonces that may be forgotten at `instant` are actually forgotten. */
export function nonceBucket(instant: number): number {
  return Math.ceil(instant / NONCE_BUCKET_MS) * NONCE_BUCKET_MS;
}

/** Kinds contain no spaces, so two subjects never have the same address. */
export function addressOf({ kind, id }: SubjectKey): string {
  return `${kind} ${id}`;
}
