/** A fleet that is enrolled in one authority, and sends it heartbeats in rounds. */
import { rateOf } from './contest.ts';
import type { Load } from './load.ts';
import { assertAccepted, type RoundPlan, type RoundResult, type Target } from './round.ts';
import type { AuthorityProcess } from './servers.ts';

export interface FleetPlan extends Omit<RoundPlan, 'target' | 'seconds' | 'rate'> {
  readonly nodes: number;
  /** Requests per second of the open loop; by default, the loop is closed. */
  readonly rate?: number | null;
  /** Set if the heartbeats ask for the bulletin. */
  readonly bulletin?: true;
}

export interface EnrolledFleet {
  /** Signs heartbeats and sends them for this time. */
  beat(seconds: number, connections?: number): Promise<RoundResult>;
  /** Sends the heartbeats of the last round to a server that accepts them again. */
  repeatAt(target: Target, seconds: number): Promise<RoundResult>;
}

const JOINING = { connections: 32, seconds: 600, rate: null };
const FIRST_GUESS = 25_000;
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

/** Each fleet needs a load generator of its own. */
export async function enrolledFleet(
  load: Load,
  na: AuthorityProcess,
  { nodes, rate = null, bulletin, ...plan }: FleetPlan,
): Promise<EnrolledFleet> {
  const joining = { plan: { target: na, ...JOINING }, network: na.network, nodes };
  assertAccepted('joins', await load.ask('enroll', joining));
  let fastest = FIRST_GUESS;

  async function send(target: Target, seconds: number, connections = plan.connections) {
    const order = { ...plan, target, seconds, rate, connections };
    const result = await load.ask('heartbeats', order);
    fastest = Math.max(fastest, rateOf(result));
    return result;
  }
  return {
    async beat(seconds, connections) {
      const count = Math.ceil(seconds * (rate ?? fastest * HEADROOM));
      await load.ask('sign', { count, ...(bulletin && { bulletin }) });
      return send(na, seconds, connections);
    },
    repeatAt: send,
  };
}
