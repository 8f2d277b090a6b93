/** How far the audit log has been posted to one webhook [events-5]. */
import { assign, setup } from 'xstate';

interface Webhook {
  /** The index of the last event the webhook accepted, or of the event after which posting began. */
  readonly delivered: number;
}

type WebhookEvent =
  | { readonly type: 'begin'; readonly after: number }
  | { readonly type: 'deliver'; readonly index: number };

export const webhookMachine = setup({
  types: {} as { context: Webhook; events: WebhookEvent },
}).createMachine({
  id: 'webhook',
  initial: 'absent',
  context: { delivered: 0 },
  states: {
    absent: {
      on: {
        begin: { target: 'posting', actions: assign(({ event }) => ({ delivered: event.after })) },
      },
    },
    posting: {
      on: {
        deliver: { actions: assign(({ event }) => ({ delivered: event.index })) },
      },
    },
  },
});
