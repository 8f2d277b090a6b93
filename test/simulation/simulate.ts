/** Histories of one authority, under clocks of a kind. */
import { type Draw as AnyDraw, type Failure, firstFailure } from './drawn.ts';
import { play } from './play.ts';
import { type Clocks, history as drawn, type History } from './steps.ts';
import type { Defect } from './world.ts';

const MAX_STEPS = 60;

export interface Draw extends AnyDraw {
  readonly clocks: Clocks;
  /** Whether each start goes on with a state that was followed, instead of reading it. */
  readonly takesOver?: boolean;
}

export interface Finding extends Failure<History> {
  readonly clocks: Clocks;
  readonly takesOver: boolean;
}

/** Null when every history holds. */
export async function simulate(draw: Draw, defect?: Defect): Promise<Finding | null> {
  const { clocks, takesOver = false } = draw;
  const failure = await firstFailure(drawn(MAX_STEPS, clocks), draw, (history) =>
    play(history, defect, takesOver),
  );
  return failure && { ...failure, clocks, takesOver };
}

export function describe({ seed, path, clocks, takesOver, after, problem, history }: Finding) {
  const kind = `--clocks ${clocks}${takesOver ? ' --take-overs' : ''}`;
  return [
    `After ${after} histories that hold: ${problem}`,
    `The shortest history that was found, with ${history?.enrolled ?? 0} nodes enrolled:`,
    ...(history?.steps ?? []).map((step) => `  ${JSON.stringify(step)}`),
    `Again: npm run simulate -- ${kind} --seed ${seed} --path ${path}`,
  ].join('\n');
}
