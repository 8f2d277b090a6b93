/** Histories of three instances. */
import { type Draw, type Failure, firstFailure } from '../drawn.ts';
import { type History, histories } from './histories.ts';
import { type Defect, play } from './play.ts';

/** Returns null if every history passes. */
export function simulate(
  draw: Draw,
  defect?: Defect,
  drawn = histories,
): Promise<Failure<History> | null> {
  return firstFailure(drawn, draw, (history) => play(history, defect));
}

export function describe({ seed, path, after, problem, history }: Failure<History>): string {
  return [
    `After ${after} histories that hold: ${problem}`,
    JSON.stringify(history),
    `Again: npm run simulate -- --instances --seed ${seed} --path ${path}`,
  ].join('\n');
}
