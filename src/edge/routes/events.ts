/** The entries of the audit log as a stream of events [events-1]. */
import Type from 'typebox';
import type { Input } from '../../protocol/api/input.ts';
import { mapped, refused } from '../../protocol/api/input.ts';
import { firstValue, type Query } from '../query.ts';
import { answerReply, EVENT_STREAM, refusalReply, streamReply } from '../reply.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import { filter } from './listing.ts';

/** For clients refused because there are too many readers. */
const RETRY_AFTER_SECONDS = 5;

interface Wanted {
  readonly after: number;
  readonly follows: boolean;
}

export const eventRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/events',
    call: 'openEvents',
    limit: 'none',
    isStream: true,
    query: Type.Object({
      after: filter(
        'The index of the event after which to begin; 0, the default, is before the first',
      ),
      follow: Type.Optional(
        Type.Enum(['0', '1'], {
          default: '1',
          example: '0',
          description: 'Whether to go on with what happens next, or to end with what has happened',
        }),
      ),
    }),
    summary: 'The entries of the audit log from any one on, and then each as it happens',
    description:
      'Server-sent events. Each has its index in the log, and the hash chain shows what is missing or was altered. `Last-Event-ID` takes the place of `after`.',
    answer: { contentType: EVENT_STREAM },
    refusals: ['invalid_after', 'invalid_follow', 'after_ahead', 'too_many_event_readers'],
    async handle(request, edge) {
      const operator = operatorOf(request);
      const wanted = wantedBy(request.query, request.lastEventId);
      const input = mapped(wanted, ({ after }) => ({ after }));
      const opened = await edge.call('openEvents', { operator, input });
      if (!opened.ok || !wanted.ok) return answerReply(opened);
      const { log_size: logSize } = JSON.parse(opened.json) as { log_size: number };
      const { after, follows } = wanted.value;
      const body = edge.eventReaders.admit(
        {
          keyId: operator.keyId,
          after,
          until: follows ? null : logSize,
        },
        logSize,
      );
      if (body === null) {
        return refusalReply(
          'too_many_event_readers',
          {},
          'Retry-After',
          String(RETRY_AFTER_SECONDS),
        );
      }
      return streamReply(body);
    },
  },
];

function wantedBy(query: Query, lastEventId: string): Input<Wanted> {
  const follow = firstValue(query, 'follow') ?? '1';
  if (follow !== '0' && follow !== '1') return refused('invalid_follow');
  const text = lastEventId === '' ? (firstValue(query, 'after') ?? '0') : lastEventId;
  const after = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(after)) return refused('invalid_after');
  return { ok: true, value: { after, follows: follow === '1' } };
}
