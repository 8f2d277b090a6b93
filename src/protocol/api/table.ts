/** Every operation of the service, by its name. */
import * as agents from './agents.ts';
import * as attestations from './attestations.ts';
import * as authorityKeys from './authority-keys.ts';
import * as certificates from './certificates.ts';
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
};

export type Api = typeof API;
export type OperationName = keyof Api;
