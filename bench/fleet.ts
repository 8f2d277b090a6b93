/** Nodes that are enrolled in one authority, and send heartbeats in rounds. */
import { type FleetNode, heartbeatRequest, nodesInTurn, renewalRequest } from './load/requests.ts';
import { openSessions } from './load/sessions.ts';
import { bytesOf, joinAll, newTokens, SITE, sendAll } from './network.ts';
import { rateOf } from './report.ts';
import { type RoundResult, runRound, type Target, UNTIL_ALL_ARE_SENT } from './rounds.ts';
import type { AuthorityProcess } from './servers.ts';

export interface FleetPlan {
  readonly nodes: number;
  readonly connections: number;
  /** Requests per second of the open loop; by default, the loop is closed. */
  readonly rate?: number | undefined;
  /** Set if the heartbeats ask for the bulletin. */
  readonly bulletin?: true;
  /** Set if the heartbeats are sent in sessions. */
  readonly sessions?: true;
  /** The most joins at the same time. */
  readonly joining?: number;
}

export interface Fleet {
  /** Signs heartbeats and sends them for this time. */
  beat(seconds: number): Promise<RoundResult>;
  /** Signs heartbeats for this time. */
  sign(seconds: number): void;
  /** Sends the heartbeats that were signed last. */
  sendTo(target: Target, seconds: number): Promise<RoundResult>;
  /** Renews each node's certificate. */
  renew(): Promise<RoundResult>;
}

const FIRST_GUESS = 25_000;
/** A margin over the number of requests of the fastest round so far. */
const HEADROOM = 1.3;

export async function enrolledFleet(
  na: AuthorityProcess,
  { nodes: count, connections, bulletin, sessions, joining = 32, ...given }: FleetPlan,
): Promise<Fleet> {
  const rate = given.rate ?? null;
  const plan = { target: na, connections: joining, ...UNTIL_ALL_ARE_SENT };
  const tokens = await newTokens(plan, na.network, count);
  let { nodes } = await joinAll(plan, tokens);
  if (sessions) nodes = await inSessions(nodes, na, joining);
  const nextSender = nodesInTurn(nodes);
  const further = bulletin ? { bulletin } : {};
  let heartbeats: readonly Buffer[] = [];
  let fastest = 0;

  function sign(seconds: number): void {
    const length = Math.ceil(seconds * (rate ?? (fastest || FIRST_GUESS) * HEADROOM));
    heartbeats = Array.from({ length }, () => {
      const { node, signedAt } = nextSender();
      return bytesOf(heartbeatRequest(node, signedAt, further));
    });
  }
  async function sendTo(target: Target, seconds: number): Promise<RoundResult> {
    const round = { target, seconds, rate, connections };
    const result = await runRound(round, (index) => heartbeats[index]);
    fastest = Math.max(fastest, rateOf(result));
    return result;
  }
  return {
    beat(seconds) {
      sign(seconds);
      return sendTo(na, seconds);
    },
    sign,
    sendTo,
    async renew() {
      const renewals = nodes.map((node) => renewalRequest(node));
      const { result, answers } = await sendAll({ ...plan, connections }, renewals);
      nodes = nodes.map(({ key }, index) => ({ key, certId: String(answers[index]?.cert_id) }));
      return result;
    },
  };
}

async function inSessions(nodes: FleetNode[], target: Target, connections: number) {
  const sessions = await openSessions(nodes, { target, site: SITE }, connections);
  return nodes.flatMap((node, index) => {
    const session = sessions[index];
    return session === undefined ? [] : [{ ...node, session }];
  });
}
