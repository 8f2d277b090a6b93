/** Every operation of the service, by its name. */
import * as agents from './agents.ts';
import * as agreements from './agreements.ts';
import * as attestations from './attestations.ts';
import * as authorityKeys from './authority-keys.ts';
import * as certificates from './certificates.ts';
import * as dataUsage from './data-usage.ts';
import * as decisions from './decisions.ts';
import type { Operation } from './define.ts';
import * as documents from './documents.ts';
import * as enrollment from './enrollment.ts';
import * as events from './events.ts';
import * as graph from './graph.ts';
import * as health from './health.ts';
import * as invites from './invites.ts';
import * as operatorKeys from './operator-keys.ts';
import * as pages from './pages.ts';
import * as policies from './policies.ts';
import * as recognition from './recognition.ts';
import * as treaties from './treaties.ts';
import * as verifications from './verifications.ts';

/** The exports of a subject that declare an operation. */
type Declared<Exports> = {
  readonly [Name in keyof Exports as Exports[Name] extends Operation ? Name : never]: Exports[Name];
};

function operationsIn<Exports extends object>(exports: Exports): Declared<Exports> {
  const entries = Object.entries(exports).filter(([, each]) => isOperation(each));
  return Object.fromEntries(entries) as Declared<Exports>;
}

function isOperation(exported: unknown): exported is Operation {
  return typeof exported === 'object' && exported !== null && 'kind' in exported;
}

export const API = {
  ...operationsIn(health),
  ...operationsIn(documents),
  ...operationsIn(enrollment),
  ...operationsIn(invites),
  ...operationsIn(certificates),
  ...operationsIn(operatorKeys),
  ...operationsIn(authorityKeys),
  ...operationsIn(policies),
  ...operationsIn(events),
  ...operationsIn(agents),
  ...operationsIn(attestations),
  ...operationsIn(treaties),
  ...operationsIn(recognition),
  ...operationsIn(agreements),
  ...operationsIn(decisions),
  ...operationsIn(dataUsage),
  ...operationsIn(verifications),
  ...operationsIn(graph),
  ...operationsIn(pages),
};

export type Api = typeof API;
export type OperationName = keyof Api;
