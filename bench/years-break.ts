/**
 * Stores an interrupted run over simulated years next to its state, because a fleet of 100,000 takes more hours than
 * anyone has at a stretch.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { Parse } from 'typebox/value';

const Bytes = Type.Integer();

const Measure = Type.Object({
  week: Type.Integer(),
  certificates: Type.Integer(),
  residentBytes: Bytes,
  heapBytes: Bytes,
  tables: Type.Object({ subjects: Bytes, liveness: Bytes, nonces: Bytes, audit: Bytes }),
  /** In CPU time, so that other load on the machine does not count. */
  startSeconds: Type.Number(),
});

const Break = Type.Object({
  /** The last completed week. */
  week: Type.Integer(),
  clock: Type.Object({ now: Type.Number(), elapsed: Type.Number() }),
  fleet: Type.Array(Type.Object({ publicKey: Type.String(), certId: Type.String() })),
  measures: Type.Array(Measure),
});

export type Measure = Static<typeof Measure>;
export type Break = Static<typeof Break>;

const NAME = 'years.json';

/** Takes the run to continue out of the folder; null if the folder is empty. Creates the folder if it is missing. */
export function takeBreak(folder: string): Break | null {
  const path = join(folder, NAME);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) {
    if (readdirSync(folder).length === 0) return null;
    throw new Error(`${folder} holds a run that was not ended in order, and cannot be continued`);
  }
  const found = Parse(Break, JSON.parse(readFileSync(path, 'utf8')));
  rmSync(path);
  return found;
}

/** Call after the store was closed. */
export function keepBreak(folder: string, run: Break): void {
  writeFileSync(join(folder, NAME), JSON.stringify(run));
}
