/** Kinds of steps: how often each is drawn, with what, and what it does. */
import fc from 'fast-check';
import { type CallInput, callAsOperator, type OperatorCallName } from './authority-calls.ts';
import type { Sent } from './decisions.ts';
import { asOperator } from './model/access.ts';
import { answered, type Made, type Moment, type Outcome, type Tier } from './model/state.ts';
import { type Flaw, OPERATORS, STRANGER, signAsOperator } from './requests.ts';
import type { World } from './world.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

export type Members = { readonly [member: string]: fc.Arbitrary<unknown> };
export type Drawn<All extends Members> = {
  readonly [Name in keyof All]: All[Name] extends fc.Arbitrary<infer Value> ? Value : never;
};

export interface Kind<All extends Members = Members> {
  readonly weight: number;
  readonly members: All;
  perform(step: Drawn<All>, world: World): unknown;
}

/** Numbers select existing items, so that a history keeps its meaning when earlier steps are omitted. */
export const small = fc.nat({ max: 7 });

/** Counted from the newest; the oldest if the list is shorter. */
export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[Math.max(0, list.length - 1 - index)];
}

export const anyOf = <Value>(...values: Value[]): fc.Arbitrary<Value> => fc.constantFrom(...values);

/** One of the values, by weights. */
export function weighted<Value>(
  ...choices: readonly (readonly [weight: number, ...values: Value[]])[]
): fc.Arbitrary<Value> {
  return fc.oneof(
    ...choices.map(([weight, ...values]) => ({ weight, arbitrary: anyOf(...values) })),
  );
}

const flaw = weighted<Flaw>(
  [14, 'none'],
  [3, 'ahead', 'old'],
  [2, 'forged', 'stale', 'from_the_future'],
);

const byOperator = {
  // 0 and 1 are privileged, 2 is standard, 3 is a stranger.
  operator: weighted([8, 0, 1], [1, 2, 3]),
  flaw,
  isWellFormed: weighted([15, true], [1, false]),
};

/** Milliseconds that a request waits between the edge and the authority. */
export const late = weighted([12, 0], [1, 30 * SECOND, 6 * MINUTE, 12 * MINUTE]);

export const node = fc.nat({ max: 2 });
export const byNode = { node, flaw, late };
export const isForged = weighted([9, false], [1, true]);

/** Requests are answered before the next step, unless they are held: then they overlap with it. */
const isHeld = weighted([3, false], [1, true]);

export function event<All extends Members>(
  weight: number,
  members: All,
  perform: Kind<All>['perform'],
): Kind<All> {
  return { weight, members, perform };
}

export function request<All extends Members>(
  weight: number,
  members: All,
  make: (step: Drawn<All>, world: World) => Sent | undefined,
): Kind<All & { readonly isHeld: fc.Arbitrary<boolean> }> {
  return event(weight, { ...members, isHeld }, async (step, world) => {
    const sent = make(step as Drawn<All>, world);
    if (sent === undefined) return;
    if (sent.isSigned) world.sent.push(sent);
    await world.send(sent, 'late' in step ? Number(step.late) : 0);
    if (!step.isHeld) await world.settle();
  });
}

/** What an operator asks, if the request is well formed. */
interface Asked<Name extends OperatorCallName> extends Pick<Sent, 'refused'> {
  readonly given: CallInput<Name>;
  decide(moment: Moment): Outcome | readonly Outcome[];
  learn?(value: never, made: Made): unknown;
}

/** A request that only an operator of this tier may make. */
function ofTier(tier: Tier) {
  return <All extends Members, Name extends OperatorCallName>(
    weight: number,
    name: Name,
    members: All,
    asked: (step: Drawn<All>, world: World) => Asked<Name>,
  ) =>
    request(weight, { ...byOperator, ...members }, (step, world) =>
      signedByOperator(name, tier, step as Drawn<typeof byOperator>, world, () =>
        asked(step as Drawn<All>, world),
      ),
    );
}

export const standard = ofTier('standard');
export const privileged = ofTier('privileged');

function signedByOperator<Name extends OperatorCallName>(
  name: Name,
  tier: Tier,
  { operator, flaw, isWellFormed }: Drawn<typeof byOperator>,
  world: World,
  ask: () => Asked<Name>,
): Sent {
  const { given, decide, learn, refused } = ask();
  const by = OPERATORS[operator] ?? STRANGER;
  const body = { given: JSON.stringify(given), isWellFormed };
  const signed = signAsOperator(by, `/admin/${name}`, body, world.stamp(), flaw);
  return {
    label: `${name} by ${by.keyId}`,
    isSigned: true,
    judge: (edgeNow) => (authority) =>
      callAsOperator(authority, name, signed.judge(edgeNow), given, isWellFormed),
    predict: (moment) => asOperator(moment, signed.proof, tier, isWellFormed, () => decide(moment)),
    learn: (value, made) => learn?.(value as never, made),
    ...(refused && { refused }),
  };
}

/** A query that only operators may make; its answer is compared with what was answered before. */
export function reading<Name extends 'openRoster' | 'readPolicyHistory'>(
  name: Name,
  given: CallInput<Name>,
  compare: (world: World, answer: unknown) => unknown,
): Kind<typeof byOperator & { readonly isHeld: fc.Arbitrary<boolean> }> {
  return event(1, { ...byOperator, isHeld }, async (step, world) => {
    await world.settle();
    const answers: unknown[] = [];
    const read = signedByOperator(name, 'standard', { ...step, isWellFormed: true }, world, () => ({
      given,
      decide: () => answered(),
      learn: (answer) => answers.push(answer),
    }));
    await world.send(read, 0);
    await world.settle();
    for (const answer of answers) await compare(world, answer);
  });
}
