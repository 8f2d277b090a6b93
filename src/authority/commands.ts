/**
 * Maps every command and query to the handler of the same name. `protocol/contract/calls.ts` defines who may
 * call each of them.
 */
import { CALLS } from '../protocol/contract/calls.ts';
import * as agents from './agents.ts';
import * as certificateList from './certificates/certificate-list.ts';
import * as certificates from './certificates/certificates.ts';
import * as contactCounts from './certificates/contact-counts.ts';
import * as revocations from './certificates/revocations.ts';
import * as roster from './certificates/roster.ts';
import * as dashboard from './dashboard/dashboard.ts';
import * as health from './dashboard/health.ts';
import * as horizon from './dashboard/horizon.ts';
import type { Handlers } from './engine/admission.ts';
import * as events from './events.ts';
import * as invites from './invites.ts';
import * as bulletin from './lists/bulletin.ts';
import * as crl from './lists/crl.ts';
import * as feeds from './lists/feed.ts';
import * as nodeDescriptions from './node-descriptions.ts';
import * as operatorKeys from './operator-keys.ts';
import * as policies from './policies.ts';
import * as agreements from './recognition/agreements.ts';
import * as attestations from './recognition/attestations.ts';
import * as graph from './recognition/graph.ts';
import * as feedImport from './recognition/imported-feeds.ts';
import * as treaties from './recognition/treaties.ts';
import * as treatyFollowing from './recognition/treaty-following.ts';
import * as trustCycle from './recognition/trust-cycle.ts';
import * as trustExplanation from './recognition/trust-explanation.ts';
import * as records from './recognition/trust-records.ts';
import * as adoption from './succession/adoption.ts';
import * as successionChanges from './succession/changes.ts';
import * as staging from './succession/staging.ts';

/** Everything the area modules export: the call handlers, along with helpers that are filtered out below. */
const EXPORTED: Handlers = {
  ...adoption,
  ...agents,
  ...certificateList,
  ...certificates,
  ...contactCounts,
  ...invites,
  ...nodeDescriptions,
  ...operatorKeys,
  ...policies,
  ...revocations,
  ...roster,
  ...agreements,
  ...records,
  ...dashboard,
  ...events,
  ...graph,
  ...health,
  ...horizon,
  ...bulletin,
  ...crl,
  ...feeds,
  ...attestations,
  ...feedImport,
  ...treaties,
  ...treatyFollowing,
  ...trustCycle,
  ...trustExplanation,
  ...staging,
  ...successionChanges,
};

export const HANDLERS = Object.fromEntries(
  Object.entries(EXPORTED).filter(([name]) => Object.hasOwn(CALLS, name)),
) as Handlers;
