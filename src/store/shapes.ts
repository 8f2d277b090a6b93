/**
 * Stored snapshots contain only the values of their members. The names and order of the members form a shape; millions
 * of snapshots have a few dozen shapes, each of which is stored once. All snapshots of a shape are built the same way,
 * so they need little memory and can be read fast.
 */
import type { Share } from './sharing.ts';
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
    if (likely !== undefined && isSame(table[likely], shape)) return likely;
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

function isSame(known: Shape | undefined, shape: Shape): boolean {
  return shape.every((name, index) => known?.[index] === name);
}

type Template = { [member: string]: unknown };

/** Copies of one object share its hidden class, and parsing JSON allocates all members inside the object. */
function templateOf(shape: Shape): Template {
  return JSON.parse(`{${shape.map((name) => `${JSON.stringify(name)}:null`).join()}}`) as Template;
}
