/** The entries of the audit log as a stream of events [events-1]. */

import type { EdgeParts } from '../operations/operations.ts';
import { answerReply, refusalReply, streamReply } from '../reply.ts';
import { operatorOf } from '../request/route.ts';

/** For clients refused because there are too many readers. */
const RETRY_AFTER_SECONDS = 5;

export const eventParts = {
  openEvents: {
    complete(opened, { after, follow }, request, edge) {
      if (!opened.ok) return answerReply(opened);
      const { log_size: logSize } = JSON.parse(opened.json) as { log_size: number };
      const { keyId } = operatorOf(request);
      const until = follow === '0' ? logSize : null;
      const body = edge.eventReaders.admit({ keyId, after: after ?? 0, until }, logSize);
      if (body !== null) return streamReply(body);
      const seconds = String(RETRY_AFTER_SECONDS);
      return refusalReply('too_many_event_readers', {}, 'Retry-After', seconds);
    },
  },
} satisfies EdgeParts;
