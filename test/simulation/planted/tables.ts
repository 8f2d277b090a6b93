import { PLANTED_IN_SESSIONS_OF_INSTANCES } from './instance-sessions.ts';
import { PLANTED_IN_INSTANCES } from './instances.ts';
import { PLANTED_IN_KEYS } from './keys.ts';
import type { Planted } from './planted.ts';
import { PLANTED_IN_SESSIONS } from './sessions.ts';
import { PLANTED_IN_STORES } from './stores.ts';

/** By where the defects are. */
export const PLANTED: ReadonlyMap<string, readonly Planted[]> = new Map([
  ['what is stored and judged', PLANTED_IN_STORES],
  ['keys of the authority', PLANTED_IN_KEYS],
  ['heartbeat sessions', PLANTED_IN_SESSIONS],
  ['instances', PLANTED_IN_INSTANCES],
  ['heartbeat sessions of instances', PLANTED_IN_SESSIONS_OF_INSTANCES],
]);
