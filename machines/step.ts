/**
 * The only module that runs XState. A subject at rest is its state value and context; it is restored for one event and
 * stored again. Calling `machine.transition` with one shared, inert actor scope costs a tenth of the public
 * `transition()`, which builds an actor system each time. That scope is not a documented API; if an xstate upgrade
 * breaks it, the state-table tests fail first.
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

let emitted: Emitted[] = [];

const inertScope = {
  self: {},
  id: '',
  sessionId: '',
  logger: () => undefined,
  defer: () => undefined,
  stopChild: () => undefined,
  emit: () => undefined,
  system: { _sendInspectionEvent: () => undefined },
  actionExecutor: (action: { params: unknown }) => {
    emitted.push((action.params as { event: Emitted }).event);
  },
} as unknown as AnyActorScope;

const templates = new WeakMap<AnyStateMachine, Map<string, AnyMachineSnapshot>>();

/** Sends one event to a subject at rest; `undefined` represents a subject that does not exist yet. */
export function step(
  machine: AnyStateMachine,
  resting: Resting | undefined,
  event: AnyEventObject,
): Step {
  emitted = [];
  const before = wake(machine, resting);
  const after = machine.transition(before, event, inertScope) as AnyMachineSnapshot;
  const changed = after.value !== before.value || after.context !== before.context;
  if (!changed && emitted.length === 0) {
    throw new Error(`${machine.id} in state ${before.value} does not accept ${event.type}`);
  }
  return { next: { value: String(after.value), context: after.context }, emitted, changed };
}

function wake(machine: AnyStateMachine, resting: Resting | undefined): AnyMachineSnapshot {
  if (resting === undefined) return template(machine, String(machine.config.initial));
  return { ...template(machine, resting.value), context: resting.context } as AnyMachineSnapshot;
}

/** Resolving a state value is the costly part of a restore, so each value is resolved once. */
function template(machine: AnyStateMachine, value: string): AnyMachineSnapshot {
  const known = templates.get(machine) ?? new Map<string, AnyMachineSnapshot>();
  templates.set(machine, known);
  const resolved =
    known.get(value) ?? machine.resolveState({ value, context: machine.config.context ?? {} });
  known.set(value, resolved);
  return resolved;
}
