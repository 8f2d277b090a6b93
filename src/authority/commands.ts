/**
 * Maps every command and query to the handler of the same name. `protocol/contract/calls.ts` defines who may
 * call each of them.
 */
import { CALLS } from '../protocol/contract/calls.ts';
import type { Handlers } from './engine/admission.ts';
import * as adoption from './enrollment/adoption.ts';
import * as agents from './enrollment/agents.ts';
import * as certificateList from './enrollment/certificate-list.ts';
import * as certificates from './enrollment/certificates.ts';
import * as contactCounts from './enrollment/contact-counts.ts';
import * as invites from './enrollment/invites.ts';
import * as nodeDescriptions from './enrollment/node-descriptions.ts';
import * as operatorKeys from './enrollment/operator-keys.ts';
import * as policies from './enrollment/policies.ts';
import * as revocations from './enrollment/revocations.ts';
import * as roster from './enrollment/roster.ts';
import * as agreements from './protocol/agreements.ts';
import * as records from './protocol/records.ts';
import * as dashboard from './publication/dashboard.ts';
import * as events from './publication/events.ts';
import * as graph from './publication/graph.ts';
import * as health from './publication/health.ts';
import * as horizon from './publication/horizon.ts';
import * as signedLists from './publication/signed-lists.ts';
import * as attestations from './recognition/attestations.ts';
import * as feedImport from './recognition/feed-import.ts';
import * as recognitionPolicy from './recognition/recognition-policy.ts';
import * as treaties from './recognition/treaties.ts';
import * as treatyFollowing from './recognition/treaty-following.ts';
import * as trustCycle from './recognition/trust-cycle.ts';
import * as trustQuestions from './recognition/trust-questions.ts';
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
  ...signedLists,
  ...attestations,
  ...feedImport,
  ...recognitionPolicy,
  ...treaties,
  ...treatyFollowing,
  ...trustCycle,
  ...trustQuestions,
  ...staging,
  ...successionChanges,
};

export const HANDLERS = Object.fromEntries(
  Object.entries(EXPORTED).filter(([name]) => Object.hasOwn(CALLS, name)),
) as Handlers;
