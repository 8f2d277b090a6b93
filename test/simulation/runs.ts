/** What a test plays: histories that must hold, or a planted defect that must be found. */
import { type Failure, type Kind, simulate } from './simulate.ts';

export interface Run {
  readonly name: string;
  /** What the simulation says about the defect; null if there is none, and every history must hold. */
  readonly finding: RegExp | null;
  find(): Promise<Failure | null>;
}

/** Tests always play the same histories, so that a failure is due to what was changed. */
const SEED = 1;

export function holds(name: string, histories: number, kind: Kind): Run {
  return { name, finding: null, find: () => simulate(kind, { histories, seed: SEED }) };
}

export function isFound(defect: string, finding: RegExp, histories: number, kind: Kind): Run {
  const find = () => simulate(kind, { histories, seed: SEED, shrinks: false });
  return { name: `${defect} is found`, finding, find };
}
