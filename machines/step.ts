/**
 * The only module that runs XState. A subject at rest is what XState calls the persisted snapshot of an actor: its
 * state value and context. It is restored for one event and stored again. `machine.transition` with an inert actor
 * scope takes 3.7 µs. The public `transition()` takes 20 µs, because it builds an actor system each time; a living
 * actor takes 3.2 µs, and would have to live for each of a million nodes. The scope is not a documented API; if an
 * xstate upgrade breaks it, the state-table tests fail first.
 */
import type {
  AnyActorScope,
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  ContextFrom,
  EmittedFrom,
  EventFrom,
} from 'xstate';

/** A subject at rest. */
export interface Resting {
  readonly value: string;
  readonly context: object;
}

export interface Emitted {
  readonly type: string;
}

export interface Step {
  readonly next: Resting;
  readonly emitted: readonly Emitted[];
  /** False when the event changed neither state nor context. */
  readonly changed: boolean;
}

export type ContextOf<Machine extends AnyStateMachine> = ContextFrom<Machine>;

export type EventOf<Machine extends AnyStateMachine> = EventFrom<Machine>;

export type EmittedOf<Machine extends AnyStateMachine> = EmittedFrom<Machine>;

/** Runs one machine. */
interface Host {
  /** Resolving a state value is the costly part of a restore, so each value is resolved once. */
  readonly templates: Map<string, AnyMachineSnapshot>;
  /** An actor without effects. Making one for each step would cost more than the step. */
  readonly scope: AnyActorScope;
  /** What the machine has emitted since this was last emptied. */
  emitted: Emitted[];
}

const hosts = new WeakMap<AnyStateMachine, Host>();

/** Sends one event to a subject at rest; `undefined` represents a subject that does not exist yet. */
export function step(
  machine: AnyStateMachine,
  resting: Resting | undefined,
  event: AnyEventObject,
): Step {
  const host = hosts.get(machine) ?? hostOf(machine);
  const before = wake(machine, resting, host);
  host.emitted = [];
  const after = machine.transition(before, event, host.scope) as AnyMachineSnapshot;
  const { emitted } = host;
  const changed = after.value !== before.value || after.context !== before.context;
  if (!changed && emitted.length === 0) {
    throw new Error(`${machine.id} in state ${before.value} does not accept ${event.type}`);
  }
  return { next: { value: String(after.value), context: after.context }, emitted, changed };
}

function hostOf(machine: AnyStateMachine): Host {
  const scope = {
    self: {},
    id: '',
    sessionId: '',
    logger: () => undefined,
    defer: () => undefined,
    stopChild: () => undefined,
    emit: () => undefined,
    system: { _sendInspectionEvent: () => undefined },
    // What is emitted arrives as an action.
    actionExecutor({ params }: { params: unknown }) {
      host.emitted.push((params as { event: Emitted }).event);
    },
  };
  const host: Host = {
    templates: new Map(),
    scope: scope as unknown as AnyActorScope,
    emitted: [],
  };
  hosts.set(machine, host);
  return host;
}

function wake(machine: AnyStateMachine, resting: Resting | undefined, { templates }: Host) {
  const value = resting?.value ?? String(machine.config.initial);
  const context = machine.config.context ?? {};
  const template = templates.get(value) ?? machine.resolveState({ value, context });
  templates.set(value, template);
  return resting === undefined
    ? template
    : ({ ...template, context: resting.context } as AnyMachineSnapshot);
}
