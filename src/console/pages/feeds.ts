/** *Feeds*: the revocation feeds of other sovereigns that were imported here, and how fresh they are. */

import { html, NO_HTML } from '../../pages/ui/html.ts';
import { badge, emptyState, section, TO_IMPORT } from '../../pages/ui/parts.ts';
import { table } from '../../pages/ui/table.ts';
import { nameInCell, timeText } from '../../pages/ui/values.ts';
import { importFeed } from '../../protocol/api/recognition.ts';
import { actionForm } from '../forms.ts';
import { definePage, isOffered } from '../page.ts';
import { routeAction } from '../route-action.ts';

const IMPORT = routeAction(importFeed, {
  name: 'import-feed',
  title: 'Import a revocation feed',
  label: 'Import',
  fields: {
    expected_issuer_sovereign_id: {
      label: 'Expected issuer',
      hint: 'A feed of another sovereign is refused. Empty for any that a treaty recognizes.',
    },
    feed: {
      label: 'Signed feed',
      hint: 'What the other sovereign serves at /sovereign-revocation-feed.',
    },
  },
  command: 'feed import feed.json --expect-issuer {expected_issuer_sovereign_id}',
  audited: ['sovereign_revocation_feed_imported', 'sovereign_revocation_feed_rejected'],
  explain: ({ feed }) => ({
    sentence: `Import the feed ${nameInCell(String(feed.sequence ?? ''))} of ${nameInCell(String(feed.issuer_sovereign_id ?? 'its issuer'))}.`,
    effects: [
      'The authority verifies the signature with the keys of its treaties, and refuses a feed that is older than the last one.',
      'Attestations that it revokes are no longer accepted.',
    ],
  }),
});

const TONES = { none: 'neutral', fresh: 'ok', watch: 'warn', stale: 'danger' } as const;

export const FEEDS = definePage({
  path: '/feeds',
  title: 'Feeds',
  async show(context) {
    const { revocation_feeds: rows } = await context.publicClient.readDashboard();
    const listing =
      rows.length === 0
        ? emptyState('No feed was imported. Import one below, or run', TO_IMPORT)
        : table({
            id: 'feeds',
            caption: 'The newest of each sovereign',
            keyOf: ({ issuer_sovereign_id: id }) => id,
            rows,
            columns: [
              {
                head: 'Sovereign',
                isHead: true,
                kind: 'name first',
                cell: ({ issuer_sovereign_id: id }) => nameInCell(id),
              },
              { head: 'Sequence', kind: 'number', cell: ({ sequence }) => String(sequence) },
              { head: 'Imported', cell: ({ imported_at }) => timeText(imported_at) },
              {
                head: 'Freshness',
                cell: ({ freshness }) => badge({ tone: TONES[freshness], word: freshness }),
              },
            ],
          });
    return {
      body: html`<div class="listing">${listing}</div>
${isOffered(IMPORT, context) ? section('import', 'Import a feed', actionForm(IMPORT, new URLSearchParams())) : NO_HTML}`,
    };
  },
  actions: [IMPORT],
});
