/** The pages of the console, in the order and the groups of its navigation. */
import type { Page, PageAction, PageGroup } from './page.ts';
import { ATTESTATIONS } from './pages/attestations.ts';
import { AUDIT } from './pages/audit.ts';
import { CONTACTS } from './pages/contacts.ts';
import { FEEDS } from './pages/feeds.ts';
import { HEALTH } from './pages/health.ts';
import { HORIZON } from './pages/horizon.ts';
import { INVITES } from './pages/invites.ts';
import { NODE } from './pages/node.ts';
import { NODES } from './pages/nodes.ts';
import { OPERATORS } from './pages/operators.ts';
import { OVERVIEW } from './pages/overview.ts';
import { POLICY } from './pages/policy.ts';
import { SUCCESSION } from './pages/succession.ts';
import { TREATIES } from './pages/treaties.ts';

export const GROUPS: readonly PageGroup[] = [
  { name: 'State', pages: [OVERVIEW, HEALTH, HORIZON] },
  { name: 'Fleet', pages: [NODES, NODE, CONTACTS, INVITES] },
  { name: 'Partners', pages: [TREATIES, ATTESTATIONS, FEEDS] },
  { name: 'Authority', pages: [POLICY, OPERATORS, SUCCESSION] },
  { name: 'Log', pages: [AUDIT] },
];

export const PAGES: readonly Page[] = GROUPS.flatMap(({ pages }) => pages);

export const ACTIONS: ReadonlyMap<string, PageAction> = new Map(
  PAGES.flatMap(({ path, actions = [] }) =>
    actions.map((action) => [action.name, { ...action, page: path }]),
  ),
);
