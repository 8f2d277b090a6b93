/** The path of live pages; `edge/viewers.ts` handles the upgrade to a WebSocket. */
import Type from 'typebox';
import { LIVE_FORMS, LIVE_PATH } from '../live-pages.ts';
import { refusalReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';

export const liveRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: LIVE_PATH,
    access: 'public',
    limit: 'none',
    query: Type.Object({
      topic: Type.Enum(['dashboard', 'connectome'], { description: 'The page' }),
      form: Type.Optional(
        Type.Enum([...LIVE_FORMS], {
          default: 'whole',
          description: 'Whether to send the whole content, or what changed',
        }),
      ),
    }),
    summary: 'WebSocket that sends the newest content of a live page whenever it changes',
    description: 'For pages of this site only. What is sent to it is ignored.',
    answer: Type.Object({ topic: Type.String(), html: Type.String() }),
    exampleNeeds: { what: 'an upgrade to a WebSocket', otherwise: 'upgrade_required' },
    refusals: ['upgrade_required', 'unknown_live_topic', 'foreign_origin', 'shutting_down'],
    handle: () => refusalReply('upgrade_required', {}, 'Upgrade', 'websocket'),
  },
];
