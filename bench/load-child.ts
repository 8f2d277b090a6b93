/** Entry of the load generator's process: executes one order at a time. */
import {
  type FleetNode,
  heartbeatSigner,
  inviteSigner,
  joinRequest,
  MAX_INVITES,
  type Network,
  newKeys,
  renewalRequest,
  SITE,
} from './fleet.ts';
import { openSessions } from './load/sessions.ts';
import type { Reply, Work } from './load.ts';
import { assertAccepted, type RoundPlan, type RoundResult, runRound } from './round.ts';

type Doing = {
  readonly [Name in keyof Work]: (order: Work[Name]['order']) => Promise<Work[Name]['answer']>;
};

let enrolled: readonly FleetNode[] = [];
let signHeartbeats = heartbeatSigner([]);
let heartbeats: readonly Buffer[] = [];

const doing: Doing = {
  async enroll({ plan, network, nodes }) {
    const { result, fleet } = await joinFleet(plan, await tokensByCount(plan, network, nodes));
    enrolled = fleet;
    signHeartbeats = heartbeatSigner(fleet);
    return result;
  },
  async renew({ plan }) {
    const requests = enrolled.map((node) => renewalRequest(node));
    const { result, answers } = await sendAll(plan, requests);
    enrolled = enrolled.map(({ key }, index) => ({ key, certId: certIdIn(answers[index]) }));
    signHeartbeats = heartbeatSigner(enrolled);
    return result;
  },
  async sign({ count, ...further }) {
    heartbeats = signHeartbeats(count, further);
    return null;
  },
  async sessions({ target, connections }) {
    const signed = enrolled.map(({ key, certId }) => ({ key, certId }));
    const sessions = await openSessions(signed, { target, site: SITE }, connections);
    enrolled = signed.map((node, index) => {
      const session = sessions[index];
      return session === undefined ? node : { ...node, session };
    });
    signHeartbeats = heartbeatSigner(enrolled);
    return null;
  },
  heartbeats: (plan) => runRound(plan, (index) => heartbeats[index]),
  async repeat({ plan, request, answer }) {
    const bytes = Buffer.from(request, 'base64');
    const expected = answer === undefined ? null : Buffer.from(answer);
    let other: string | null = null;
    const result = await runRound(
      plan,
      () => bytes,
      (_, body) => {
        if (expected?.equals(body) === false) other ??= body.toString();
      },
    );
    if (other !== null) throw new Error(`An answer was not the expected one: ${other}`);
    return result;
  },
  async pairs({ plan, network, count }) {
    const sign = inviteSigner(network);
    const { result, answers } = await sendAll(
      plan,
      Array.from({ length: count }, () => sign({})),
    );
    assertAccepted('invites', result);
    const tokens = answers.map((answer) => (JSON.parse(answer) as { token_id: string }).token_id);
    return { invites: result, joins: (await joinFleet(plan, tokens)).result };
  },
  async joins({ plan, network, count }) {
    return (await joinFleet(plan, await tokensByCount(plan, network, count))).result;
  },
};

async function tokensByCount(plan: RoundPlan, network: Network, count: number): Promise<string[]> {
  const sign = inviteSigner(network);
  const requests: Buffer[] = [];
  for (let left = count; left > 0; left -= MAX_INVITES) {
    requests.push(sign({ count: Math.min(left, MAX_INVITES) }));
  }
  const { result, answers } = await sendAll(plan, requests);
  assertAccepted('invites by count', result);
  return answers.flatMap((answer) => {
    const { tokens } = JSON.parse(answer) as { tokens: readonly { token_id: string }[] };
    return tokens.map(({ token_id }) => token_id);
  });
}

async function joinFleet(
  plan: RoundPlan,
  tokens: readonly string[],
): Promise<{ result: RoundResult; fleet: FleetNode[] }> {
  const keys = newKeys(tokens.length);
  const requests = keys.map((key, index) => joinRequest(key, tokens[index] ?? ''));
  const { result, answers } = await sendAll(plan, requests);
  assertAccepted('joins', result);
  const fleet = keys.map((key, index) => {
    return { key, certId: certIdIn(answers[index]) };
  });
  return { result, fleet };
}

function certIdIn(answer = '{}'): string {
  return (JSON.parse(answer) as { cert_id: string }).cert_id;
}

/** A round of exactly these requests; keeps the answers in the order of the requests. */
async function sendAll(
  plan: RoundPlan,
  requests: readonly Buffer[],
): Promise<{ result: RoundResult; answers: string[] }> {
  const answers: string[] = [];
  const result = await runRound(
    plan,
    (index) => requests[index],
    (index, body) => {
      answers[index] = body.toString();
    },
  );
  return { result, answers };
}

async function replyTo(name: keyof Work, order: unknown): Promise<Reply> {
  try {
    const work = doing[name] as (order: unknown) => Promise<unknown>;
    return { ok: true, answer: await work(order) };
  } catch (cause) {
    return { ok: false, problem: cause instanceof Error ? cause.message : String(cause) };
  }
}

process.on('message', ({ name, order }: { name: keyof Work; order: unknown }) => {
  void replyTo(name, order).then((reply) => process.send?.(reply));
});
process.once('disconnect', () => process.exit());
