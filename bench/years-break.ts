/**
 * A run over simulated years that was interrupted, at rest beside its store: a fleet of 100,000 takes hours,
 * which nobody has in one piece.
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
  /** CPU time, so that other load on the machine does not count. */
  startSeconds: Type.Number(),
});

const Break = Type.Object({
  /** The last week that is complete. */
  week: Type.Integer(),
  clock: Type.Object({ now: Type.Number(), elapsed: Type.Number() }),
  fleet: Type.Array(Type.Object({ publicKey: Type.String(), certId: Type.String() })),
  measures: Type.Array(Measure),
});

export type Measure = Static<typeof Measure>;
export type Break = Static<typeof Break>;

const NAME = 'years.json';

/** The run to continue, which is then no longer at rest; null in an empty folder, which is made if missing. */
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

/** Call when the store is closed. */
export function keepBreak(folder: string, run: Break): void {
  writeFileSync(join(folder, NAME), JSON.stringify(run));
}
