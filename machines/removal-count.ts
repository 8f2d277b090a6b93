/** The number of subjects of one kind that retention has removed. */
import { assign, setup } from 'xstate';

interface RemovalCount {
  readonly removed: number;
}

type RemovalCountEvent = { readonly type: 'remove'; readonly count: number };

export const removalCountMachine = setup({
  types: {} as { context: RemovalCount; events: RemovalCountEvent },
}).createMachine({
  id: 'removal-count',
  initial: 'counting',
  context: { removed: 0 },
  states: {
    counting: {
      on: {
        remove: {
          actions: assign(({ context, event }) => ({ removed: context.removed + event.count })),
        },
      },
    },
  },
});
