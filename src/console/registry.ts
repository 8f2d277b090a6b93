/** The pages of the console, in the order of its navigation. */
import type { Page } from './page.ts';
import { INVITES } from './pages/invites.ts';
import { NODE } from './pages/node.ts';
import { NODES } from './pages/nodes.ts';
import { OPERATORS } from './pages/operators.ts';

export const PAGES: readonly Page[] = [NODES, NODE, INVITES, OPERATORS];

export const ACTIONS = new Map(
  PAGES.flatMap(({ actions = [] }) => actions).map((action) => [action.name, action]),
);
