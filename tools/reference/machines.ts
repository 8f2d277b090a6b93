/** `docs/machines.md`: the state machine of each subject as a table, and as a drawing if there is something to draw. */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { MACHINES } from '../../src/authority/subjects/kinds.ts';
import { code, page, table } from './markdown.ts';

const INTRODUCTION = `What a trust subject is, each machine says in [\`machines/\`](../machines): which events it accepts in which state, and why
it refuses others. An event that a state does not name is a bug, and never reaches a machine. Conditions are tried from top to bottom, so
that the first one that holds decides. A state from which an arrow leads to the end is final. Refusals are the names of
[errors.md](errors.md) or of its reasons; those in brackets are for the audit log, and the answer may say less. Subjects of more than three
states are drawn, too, and those that refuse nothing share the last table.`;

/** What a state does on an event if no condition before holds. */
interface Branch {
  readonly event: string;
  readonly guard: string;
  readonly target: string | null;
  readonly effects: readonly string[];
}

const COLUMNS = ['In state', 'On', 'If', 'Becomes', 'And says'];

export function machinesPage(): string {
  const machines = Object.entries<AnyStateMachine>(MACHINES);
  const simple = machines.filter(([, machine]) => isSimple(machine));
  const sections = machines.filter((each) => !simple.includes(each)).map(section);
  const others = simple.flatMap(([kind, machine]) =>
    rowsOf(machine, statesOf(machine)).map((row) => [code(kind), ...cellsOf(row)]),
  );
  return page(
    'State machines',
    INTRODUCTION,
    ...sections,
    '## Subjects that refuse nothing',
    table(['Subject', ...COLUMNS], others),
  );
}

function section([kind, machine]: [string, AnyStateMachine]): string {
  const states = statesOf(machine);
  const drawn = states.length > 3 ? [`\`\`\`mermaid\n${drawing(machine, states)}\n\`\`\``] : [];
  const rows = rowsOf(machine, states).map(cellsOf);
  return [`## ${kind}`, ...drawn, table(COLUMNS, rows)].join('\n\n');
}

function statesOf(machine: AnyStateMachine): string[] {
  return Object.keys(machine.states);
}

/** Machines of one or two states that refuse nothing share a table. */
function isSimple(machine: AnyStateMachine): boolean {
  const states = statesOf(machine);
  const says = states
    .flatMap((state) => branchesOf(machine, state))
    .flatMap((each) => each.effects);
  return states.length <= 2 && !says.some((effect) => effect.startsWith('refused'));
}

function drawing(machine: AnyStateMachine, states: readonly string[]): string {
  const moves = new Map<string, Set<string>>();
  for (const state of states) {
    for (const { event, target } of branchesOf(machine, state)) {
      const arrow = `  ${state} --> ${target}`;
      if (target !== null) moves.set(arrow, (moves.get(arrow) ?? new Set()).add(event));
    }
  }
  const final = states.filter((state) => machine.states[state]?.tags.includes('terminal'));
  return [
    'stateDiagram-v2',
    `  [*] --> ${machine.config.initial}`,
    ...[...moves].map(([arrow, events]) => `${arrow}: ${[...events].join(', ')}`),
    ...final.map((state) => `  ${state} --> [*]`),
  ].join('\n');
}

interface Row {
  readonly states: string[];
  readonly events: string[];
  readonly guard: string;
  readonly becomes: string;
  readonly says: string;
}

function cellsOf({ states, events, guard, becomes, says }: Row): string[] {
  return [states.map(code).join(', '), events.map(code).join(', '), guard, becomes, says];
}

/** States that answer alike share their rows, and so do events that are answered alike. */
function rowsOf(machine: AnyStateMachine, states: readonly string[]): Row[] {
  const rows = new Map<string, Row>();
  for (const state of states) {
    for (const { event, guard, target, effects } of branchesOf(machine, state)) {
      const becomes = target === null || target === state ? '' : code(target);
      const says = effects.join(', ');
      const answer = [event, guard, becomes, says].join();
      const alike = rows.get(answer);
      if (alike !== undefined) alike.states.push(state);
      else rows.set(answer, { states: [state], events: [event], guard, becomes, says });
    }
  }
  return [...rows.values()].reduce(withRow, []);
}

/** Adds the row, or its event to a row before that says the same, unless that would try its condition too early. */
function withRow(rows: Row[], row: Row): Row[] {
  const isSame = (other: Row) =>
    [...other.states, other.guard, other.becomes, other.says].join() ===
    [...row.states, row.guard, row.becomes, row.says].join();
  const at = rows.findIndex(isSame);
  const isTried = rows.slice(at).some(({ events }) => row.events.some((on) => events.includes(on)));
  if (at < 0 || isTried) rows.push(row);
  else rows[at]?.events.push(...row.events);
  return rows;
}

/** What the state answers, and what the machine answers in every state that does not answer by itself. */
function branchesOf(machine: AnyStateMachine, state: string): Branch[] {
  const own = machine.states[state]?.transitions ?? new Map();
  const shared = [...machine.root.transitions].filter(([event]) => !own.has(event));
  return [...own, ...shared].flatMap(([event, transitions]) =>
    transitions.map(({ guard, target, actions }: AnyTransitionDefinition) => ({
      event,
      guard: typeof guard === 'string' ? code(guard) : '',
      target: target?.[0]?.key ?? null,
      effects: actions.flatMap((action) => effectOf(machine, event, action)),
    })),
  );
}

/** What an action emits: a refusal with the reason for the audit log, or what happened. */
function effectOf(machine: AnyStateMachine, type: string, action: unknown): string[] {
  const made = typeof action === 'string' ? machine.implementations.actions[action] : action;
  const { event: emitted } = made as { readonly event?: Emitted | ((on: object) => Emitted) };
  if (emitted === undefined) return [];
  const isMade = typeof emitted === 'function';
  const effect = isMade ? emitted({ context: {}, event: { type } }) : emitted;
  if (effect.type !== 'refused') return [code(effect.type)];
  const reason = isMade ? ' with its reason' : effect.reason && ` (${effect.reason})`;
  return [`refused: ${code(effect.refusal ?? '')}${reason ?? ''}`];
}

interface Emitted {
  readonly type: string;
  readonly refusal?: string;
  readonly reason?: string;
}
