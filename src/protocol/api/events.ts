/** The entries of the audit log as a stream of events [events-1]. */
import { operatorQuery } from './define.ts';
import { choice, sequence } from './parameters.ts';

export const EVENT_STREAM = 'text/event-stream; charset=utf-8';

export const openEvents = operatorQuery('GET /events', {
  isStream: true,
  summary: 'The entries of the audit log from any one on, and then each as it happens',
  description:
    'Server-sent events. Each has its index in the log, and the hash chain shows what is missing or was altered. `Last-Event-ID` takes the place of `after`.',
  query: {
    follow: choice(
      ['0', '1'],
      'invalid_follow',
      'Whether to go on with what happens next, or to end with what has happened',
      { default: '1', example: '0' },
    ),
    after: sequence(
      'invalid_after',
      'The index of the event after which to begin; 0, the default, is before the first',
    ),
  },
  answer: { contentType: EVENT_STREAM },
  refusals: ['after_ahead', 'too_many_event_readers'],
});
