/** Every operation of the service, by its name. */
import * as agents from './agents.ts';
import * as agreements from './agreements.ts';
import * as attestations from './attestations.ts';
import * as authorityKeys from './authority-keys.ts';
import * as boundary from './boundary.ts';
import * as certificates from './certificates.ts';
import * as consensus from './consensus.ts';
import * as dataUsage from './data-usage.ts';
import * as disclosure from './disclosure.ts';
import * as evidence from './evidence.ts';
import * as horizon from './horizon.ts';
import * as invites from './invites.ts';
import { describeNode } from './node-descriptions.ts';
import * as operatorKeys from './operator-keys.ts';
import * as policies from './policies.ts';
import * as recognition from './recognition.ts';
import * as treaties from './treaties.ts';

export const API = {
  ...horizon,
  ...invites,
  describeNode,
  ...certificates,
  ...operatorKeys,
  ...authorityKeys,
  ...attestations,
  ...treaties,
  ...recognition,
  ...policies,
  ...agents,
  ...agreements,
  ...boundary,
  ...evidence,
  ...disclosure,
  ...consensus,
  ...dataUsage,
};

export type Api = typeof API;
export type OperationName = keyof Api;
