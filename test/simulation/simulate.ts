/** Histories of one authority with the given kind of clocks. */
import { type Draw as AnyDraw, type Failure, firstFailure } from './drawn.ts';
import { play } from './play.ts';
import type { Defect } from './process.ts';
import { type Clocks, history as drawn, type History } from './steps.ts';

const MAX_STEPS = 60;

export interface Draw extends AnyDraw {
  readonly clocks: Clocks;
  /** A multiplier for how often the authority's key is replaced. */
  readonly successions?: number;
  /** Whether each start continues with a followed state instead of reading it. */
  readonly takesOver?: boolean;
}

export interface Finding extends Failure<History> {
  readonly clocks: Clocks;
  readonly takesOver: boolean;
  readonly successions: number;
}

/** Returns null if every history passes. */
export async function simulate(draw: Draw, defect?: Defect): Promise<Finding | null> {
  const { clocks, takesOver = false, successions = 1 } = draw;
  const failure = await firstFailure(drawn(MAX_STEPS, { clocks, successions }), draw, (history) =>
    play(history, defect, takesOver),
  );
  return failure && { ...failure, clocks, takesOver, successions };
}

export function describe(finding: Finding) {
  const { seed, path, clocks, takesOver, successions, after, problem, history } = finding;
  const often = successions === 1 ? '' : ` --successions ${successions}`;
  const kind = `--clocks ${clocks}${often}${takesOver ? ' --take-overs' : ''}`;
  return [
    `After ${after} histories that hold: ${problem}`,
    `The shortest history that was found, with ${history?.enrolled ?? 0} nodes enrolled:`,
    ...(history?.steps ?? []).map((step) => `  ${JSON.stringify(step)}`),
    `Again: npx tsx test/simulation/main.ts ${kind} --seed ${seed} --path ${path}`,
  ].join('\n');
}
