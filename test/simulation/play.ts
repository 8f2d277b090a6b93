/** Plays one history against the authority and the model, and compares the two after each step. */

import { verifyAuditChain } from '../../src/authority/audit/audit.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { GENESIS_HASH } from '../../src/store/store.ts';
import { call, DEFAULT_POLICY } from './authority-calls.ts';
import { type Known, nothingKnown } from './known.ts';
import { readPolicy } from './model/enrollment.ts';
import { answered } from './model/state.ts';
import {
  agentRemoval,
  agentRequest,
  heartbeatRequest,
  joinRequest,
  renewRequest,
} from './node-requests.ts';
import { OPERATOR_REQUESTS, pick, readAsOperator } from './operator-requests.ts';
import type { Defect } from './process.ts';
import type { Sent } from './sent.ts';
import { beatRequest } from './session-requests.ts';
import type { History, OperatorStep, Request, Step } from './steps.ts';
import { SUCCESSION_REQUESTS } from './succession-requests.ts';
import { keyOfAuthority } from './successions.ts';
import { compareAll, compareDocuments, comparePolicies, compareRoster } from './views.ts';
import { insist } from './violation.ts';
import { World } from './world.ts';

/** Totals over all histories so far. */
export const walked = { steps: 0, successions: 0, changesOfKeys: 0 };

/** Each step takes some time, so that later steps have later timestamps. */
const STEP = 20;

export async function play(
  { enrolled, steps }: History,
  defect: Defect = {},
  takesOver = false,
): Promise<void> {
  const world = await World.start(defect, takesOver);
  const known = nothingKnown();
  const sent: Sent[] = [];
  let looks = 0;
  for (const step of [...enrollment(enrolled), ...steps]) {
    await perform(step, world, known, sent);
    looks += 1;
    if (looks % 3 > 0) world.follow(looks % 2 === 0);
    world.runtime.advance(STEP);
    await compareDocuments(world);
    await world.lookAtKeys();
  }
  await world.settle();
  await compareAll(world);
  // At most an activation and the end of an overlap are due.
  for (let time = 0; time < 2; time += 1) {
    await world.keepKeys();
    await world.settle();
  }
  insist(!world.isKeyDue, () => 'A change of keys is due, and does not come');
  await compareAll(world);
  await world.lookAtKeys(true);
  await world.restart();
  await compareAll(world);
  const { inForce, terms } = world.shown.authority;
  walked.steps += steps.length;
  walked.successions += inForce.filter(({ kind }) => kind !== 'roll_back').length;
  walked.changesOfKeys += terms.length - 1;
  const verdict = await verifyAuditChain(world.disk.audit, GENESIS_HASH);
  insist(verdict.valid, () => `The audit chain is broken: ${JSON.stringify(verdict)}`);
}

function enrollment(nodes: number): readonly Step[] {
  const by = { operator: 0, flaw: 'none', isWellFormed: true, isHeld: false } as const;
  return Array.from({ length: nodes }, (_, node): readonly Step[] => [
    { do: 'invite', hours: 24, bound: -1, ...by },
    { do: 'join', node, invite: 0, hours: 24, flaw: 'none', late: 0, isHeld: false },
  ]).flat();
}

async function perform(step: Step, world: World, known: Known, sent: Sent[]): Promise<void> {
  switch (step.do) {
    case 'wait':
      return world.runtime.advance(step.ms);
    case 'setClock':
      return world.runtime.setWallClock(step.ms);
    case 'settle':
      return world.settle();
    case 'persist':
      return world.persist(step.count);
    case 'flushLiveness':
      return world.flushLiveness();
    case 'sweep':
      return world.sweep();
    case 'renewLists':
      return world.renewLists();
    case 'keepKeys':
      return world.keepKeys();
    case 'bringKey':
      return bringKey(world);
    case 'crash':
      await world.crash(step.persisted, step.again);
      return compareAll(world);
    case 'failFlush':
      await world.failFlush();
      return compareAll(world);
    case 'restart':
      await world.restart();
      return compareAll(world);
    default:
      return performRequest(step, world, known, sent);
  }
}

function bringKey({ shown, folder }: World): void {
  const { staged } = shown.authority;
  if (staged !== null) folder.put(keyOfAuthority(staged.statement.to));
}

async function performRequest(
  step: Request & { readonly isHeld: boolean },
  world: World,
  known: Known,
  sent: Sent[],
): Promise<void> {
  if (step.do === 'readRoster' || step.do === 'readPolicies') return readNow(step, world);
  const request = step.do === 'replay' ? earlier(step, sent) : requestOf(step, world, known);
  if (request === undefined) return;
  if (step.do !== 'replay' && request.isSigned) sent.push(request);
  await world.send(request, 'late' in step ? step.late : 0);
  if (!step.isHeld) await world.settle();
}

function earlier({ request }: Extract<Request, { do: 'replay' }>, sent: readonly Sent[]) {
  return pick(sent, request);
}

/** Compares what operators read with what was answered before. */
async function readNow(step: Reading, world: World): Promise<void> {
  await world.settle();
  const name = step.do === 'readRoster' ? 'openRoster' : 'readPolicyHistory';
  const readings: unknown[] = [];
  await world.send(
    readAsOperator(world, name, step, (reading) => readings.push(reading)),
    0,
  );
  await world.settle();
  for (const reading of readings) {
    if (step.do === 'readRoster') await compareRoster(world, reading);
    else comparePolicies(world, reading);
  }
}

type Reading = Extract<Request, { do: 'readRoster' | 'readPolicies' }>;

function requestOf(
  step: Exclude<Request, Reading | { do: 'replay' }>,
  world: World,
  known: Known,
): Sent | undefined {
  switch (step.do) {
    case 'join':
      return joinRequest(step, known, world);
    case 'heartbeat':
      return heartbeatRequest(step, known, world);
    case 'beat':
      return beatRequest(step, known, world);
    case 'renew':
      return renewRequest(step, known, world);
    case 'registerAgent':
      return agentRequest(step, known, world);
    case 'removeAgent':
      return agentRemoval(step, known, world);
    case 'readPolicy':
      return {
        label: 'the first reading of the policy',
        isSigned: false,
        judge: () => (authority) => call(authority, 'ensurePolicy', null),
        predict: (moment) => [readPolicy(moment, DEFAULT_POLICY)],
      };
    case 'readCrl':
      return {
        label: 'a reading of the revocation list',
        isSigned: false,
        judge: () => (authority) => call(authority, 'refreshCrl', null),
        predict: () => [answered()],
      };
    case 'readEmptyFeed':
      return {
        label: 'a reading of an empty feed',
        isSigned: false,
        judge: () => (authority) => call(authority, 'refreshForeignFeed', { issuer: 'nobody' }),
        predict: () => [answered()],
        learn: (feed) => world.documents.assertOneContent('the empty feed', feed as JsonObject),
      };
    default: {
      const make = { ...OPERATOR_REQUESTS, ...SUCCESSION_REQUESTS }[step.do] as (
        step: Request,
        known: Known,
        world: World,
      ) => (step: OperatorStep) => Sent;
      return make(step, known, world)(step);
    }
  }
}
