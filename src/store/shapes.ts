/**
 * Stored snapshots contain only the values of their members. The names and order of the members form a shape; millions
 * of snapshots have a few dozen shapes, each of which is stored once. All snapshots of a shape are built the same way,
 * so they need little memory and can be read fast.
 */
import type { Snapshot } from './store.ts';

/** The names of the members, in order. */
export type Shape = readonly string[];

/** The number of the shape, the state value, then the members; if the number is null, the context itself. */
export type StoredSnapshot = readonly [shape: number | null, value: string, ...members: unknown[]];

export type Shapes = ReturnType<typeof createShapes>;

/**
 * Contexts have the members that their machine defines. The limit prevents names made from data from filling the
 * table.
 */
export const MAX_SHAPES = 1000;

export function createShapes(known: readonly Shape[], maxShapes = MAX_SHAPES) {
  const table = [...known];
  const numbers = new Map(table.map((shape, number) => [JSON.stringify(shape), number]));
  const templates = table.map(templateOf);
  /** Most snapshots have the same shape as the previous one with as many members. */
  const lastOfLength: number[] = [];

  function numberOf(shape: Shape): number | null {
    const likely = lastOfLength[shape.length];
    if (likely !== undefined && isSame(table[likely] ?? [], shape)) return likely;
    const number = lookUp(shape);
    if (number !== null) lastOfLength[shape.length] = number;
    return number;
  }

  function lookUp(shape: Shape): number | null {
    const key = JSON.stringify(shape);
    const number = numbers.get(key);
    if (number !== undefined) return number;
    if (table.length >= maxShapes) return null;
    numbers.set(key, table.length);
    templates.push(templateOf(shape));
    return table.push(shape) - 1;
  }

  return {
    /** All shapes so far, by number; the table is append-only. */
    table: table as readonly Shape[],
    /** Adds the shape of the snapshot to the table if it is new. */
    flatten({ value, context }: Snapshot): StoredSnapshot {
      const number = numberOf(Object.keys(context));
      return number === null ? [null, value, context] : [number, value, ...Object.values(context)];
    },
    /** Rebuilds the snapshot; `share` may replace each member by an equal one. */
    build(stored: StoredSnapshot, share: Share): Snapshot {
      const number = stored[0];
      const value = share(stored[1], 1);
      if (number === null) return { value, context: stored[2] as object };
      const shape = table[number];
      if (shape === undefined) throw new Error(`The store has no shape ${number}`);
      const context = { ...templates[number] };
      for (let i = 0; i < shape.length; i += 1) {
        context[shape[i] as string] = share(stored[i + 2], i + 2);
      }
      return { value, context };
    },
  };
}

type Template = { [member: string]: unknown };

/** Copies of one object share its hidden class, and parsing JSON allocates all members inside the object. */
function templateOf(shape: Shape): Template {
  return JSON.parse(`{${shape.map((name) => `${JSON.stringify(name)}:null`).join()}}`) as Template;
}

/** Long enough for roles and addresses, too short for keys and hashes, which rarely recur. */
const LONGEST = 40;
/** Unique texts must not use up the memory that sharing is meant to save. */
const AT_MOST = 10_000;

/**
 * Returns an equal value seen before, or the value itself. `place` is the number of the member that the
 * value comes from: its previous value is compared first, since most rows are alike.
 */
type Share = <T>(value: T, place: number) => T;

/** Interns short texts, and lists of them, that recur in most loaded rows. */
export function createSharing(atMost = AT_MOST): Share {
  const texts = new Map<string, string>();
  const lists = new Map<string, readonly unknown[]>();
  const last: unknown[] = [];

  function share(value: unknown, place: number): unknown {
    if (typeof value === 'string') {
      if (value.length > LONGEST) return value;
      const before = last[place];
      if (value === before) return before;
      const text = remember(texts, value, value, atMost);
      last[place] = text;
      return text;
    }
    return Array.isArray(value) ? shareList(value, place) : value;
  }

  function shareList(list: readonly unknown[], place: number): readonly unknown[] {
    const before = last[place];
    if (Array.isArray(before) && isSame(before, list)) return before;
    if (!list.every((item) => typeof item === 'string')) return list;
    const key = list.length === 1 ? String(list[0]) : list.join('\n');
    if (key.length > LONGEST) return list;
    const known = remember(lists, key, list, atMost);
    // Two lists may have the same key, because an item may contain the separator.
    if (!isSame(known, list)) return list;
    last[place] = known;
    return known;
  }

  return share as Share;
}

function remember<T>(known: Map<string, T>, key: string, value: T, atMost: number): T {
  const first = known.get(key);
  if (first !== undefined) return first;
  if (known.size < atMost) known.set(key, value);
  return value;
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
