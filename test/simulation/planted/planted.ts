/** Defects that tests plant around the authority: each must be found by the simulation. */
import type fc from 'fast-check';
import type { Failure } from '../drawn.ts';
import type { History } from '../instances/histories.ts';
import type { Defect as DefectOfInstances } from '../instances/play.ts';
import { simulate as simulateInstances } from '../instances/simulate.ts';
import type { Defect } from '../process.ts';
import { simulate } from '../simulate.ts';

export type Found = Pick<Failure<unknown>, 'after' | 'problem'> | null;

export interface Planted {
  readonly name: string;
  /** What the simulation says about it; null if there is no defect, and nothing may be found. */
  readonly finding: RegExp | null;
  find(): Promise<Found>;
}

/** Some name the expected message, because otherwise a side effect might reveal the defect, but only by luck. */
export type Defects = readonly (readonly [name: string, defect: Defect, finding?: RegExp])[];

/** Some name the histories in which they show, because others rarely produce them. */
export type DefectsOfInstances = readonly (readonly [
  name: string,
  defect: DefectOfInstances,
  finding?: RegExp,
  drawn?: fc.Arbitrary<History>,
])[];

/** Defects around one authority. */
export function inAuthority(
  defects: Defects,
  draw: { readonly histories: number; readonly successions: number },
): Planted[] {
  return defects.map(([name, defect, finding = /./]) => ({
    name,
    finding,
    find: () => simulate({ ...draw, seed: 1, clocks: 'right', shrinks: false }, defect),
  }));
}

/** Defects in the instances or their database. */
export function inInstances(defects: DefectsOfInstances, histories: number): Planted[] {
  return defects.map(([name, defect, finding = /./, drawn]) => ({
    name,
    finding,
    find: () => simulateInstances({ histories, seed: 1, shrinks: false }, defect, drawn),
  }));
}

/** Histories in which a defect would show, without the defect. */
export function inWorkingInstances(
  name: string,
  histories: number,
  drawn: fc.Arbitrary<History>,
): Planted {
  const find = () => simulateInstances({ histories, seed: 1 }, {}, drawn);
  return { name, finding: null, find };
}
