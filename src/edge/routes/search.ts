/** The search over everything public. */
import Type from 'typebox';
import { searchEntries, searchPage } from '../../pages/search.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { htmlReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry } from '../route.ts';
import { cachedBySource } from './cached-by-source.ts';
import { filter } from './listing.ts';
import { withGraph } from './published-content.ts';

export const searchRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/search',
    query: Type.Object({ q: filter('Words that must all be in a name, a path or a description') }),
    summary: 'Sovereigns, treaties, pages, routes and commands by parts of their names, as a page',
    refusals: ['service_not_ready'],
    handle: (request, edge) =>
      withGraph(request, edge, (graph) =>
        htmlReply(
          searchPage(firstValue(request.query, 'q') ?? '', entriesOf(edge), graph),
          request,
        ),
      ),
  },
];

const entriesOf = cachedBySource(({ routes, settings }: Edge) =>
  searchEntries(routes, settings.commands),
);
