/**
 * What the operators of a network call a node, and what the node calls itself [core-4-21]. It belongs to the node key,
 * and no decision depends on it.
 */
import { assertEvent, assign, emit, setup } from 'xstate';
import { type Refused, refused } from './refused.ts';

export interface NodeDescription {
  readonly name: string | null;
  /** Each label as `key=value`, sorted. */
  readonly labels: readonly string[];
  /** The host name that the node reported when it joined. */
  readonly hostname: string | null;
}

type NodeDescriptionEvent =
  /** Null members leave what is known. */
  | {
      readonly type: 'join';
      readonly name: string | null;
      readonly labels: readonly string[] | null;
      readonly hostname: string | null;
    }
  | {
      readonly type: 'change';
      /** Whether a certificate of the node key is stored. */
      readonly isKnown: boolean;
      /** Null leaves the name; an empty one removes it. */
      readonly name: string | null;
      /** The labels to set, each as `key=value`. */
      readonly set: readonly string[];
      /** The keys of the labels to remove. */
      readonly removed: readonly string[];
    };

type NodeDescriptionRefusal = 'node_not_found' | 'too_many_labels';

const MAX_LABELS = 16;

export const nodeDescriptionMachine = setup({
  types: {} as {
    context: NodeDescription;
    events: NodeDescriptionEvent;
    emitted: Refused<NodeDescriptionRefusal> | { readonly type: 'described' | 'unchanged' };
  },
  guards: {
    unknown: ({ event }) => {
      assertEvent(event, 'change');
      return !event.isKnown;
    },
    tooManyLabels: ({ context, event }) => after(context, event).labels.length > MAX_LABELS,
    sameAsBefore: ({ context, event }) =>
      JSON.stringify(after(context, event)) === JSON.stringify(context),
  },
  actions: { describe: assign(({ context, event }) => after(context, event)) },
}).createMachine({
  id: 'node-description',
  initial: 'absent',
  context: { name: null, labels: [], hostname: null },
  on: {
    join: [
      { guard: 'sameAsBefore', actions: emit({ type: 'unchanged' }) },
      {
        target: '.described',
        actions: ['describe', emit({ type: 'described' })],
      },
    ],
    change: [
      { guard: 'unknown', actions: emit(refused('node_not_found')) },
      { guard: 'tooManyLabels', actions: emit(refused('too_many_labels')) },
      { guard: 'sameAsBefore', actions: emit({ type: 'unchanged' }) },
      {
        target: '.described',
        actions: ['describe', emit({ type: 'described' })],
      },
    ],
  },
  states: { absent: {}, described: {} },
});

function after(before: NodeDescription, event: NodeDescriptionEvent): NodeDescription {
  const name = (event.name ?? before.name) || null;
  if (event.type === 'join') {
    const { labels, hostname } = event;
    return { name, labels: labels ?? before.labels, hostname: hostname ?? before.hostname };
  }
  const replaced = new Set([...event.removed, ...event.set.map(keyOf)]);
  const kept = before.labels.filter((label) => !replaced.has(keyOf(label)));
  return { name, labels: [...kept, ...event.set].sort(), hostname: before.hostname };
}

function keyOf(label: string): string {
  return label.slice(0, label.indexOf('='));
}
