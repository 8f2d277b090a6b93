/**
 * Clients that behave as recommended: each repeats a request, byte for byte, until it knows the outcome. They perform
 * everything that an authority acknowledges, one operation after the other, and record what was acknowledged.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { fingerprintOf, inviteId } from '../../src/authority/invites.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import type { TestAuthority } from '../support/authority.ts';
import {
  newKey,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  send,
  signedByNode,
} from '../support/requests.ts';
import type { Deployment } from './deployment.ts';
import { type Ledger, staleSinceOf } from './ledger.ts';

export interface Load {
  /** Failed attempts by path and cause, with their number. */
  readonly failures: Map<string, number>;
  /** The longest time without an acknowledgment since the last call, in milliseconds. */
  takeLongestPause(): number;
  acknowledged(): number;
  /** Resolves when `count` more are acknowledged, with the elapsed milliseconds. */
  acknowledges(count: number): Promise<number>;
  /** Resolves when no requests are in flight; nothing is sent until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  stop(): Promise<void>;
}

const CLIENTS = 8;
/** How many of them change what the recognition graph shows; each new treaty makes its documents longer. */
const TREATY_CLIENTS = 2;
/** Between two steps of a client: tens of requests per second are enough. */
const THINK_MS = 40;
const RETRY_MS = 50;
/** Longer than instances hold requests; a balancer may forward a request to an instance that is suspended. */
const PATIENCE_MS = 12_000;
/** After this, a client would sign the request again; the authority accepts no signatures older than five minutes. */
const GIVE_UP_MS = 120_000;

/** How a request is repeated while its outcome is unknown. */
type Repeat = 'same bytes' | 'signed anew';

export function startLoad(deployment: Deployment, ledger: Ledger): Load {
  const { na, instances } = deployment;
  const targets = [...instances.map((instance) => instance.na), na];
  const failures = new Map<string, number>();
  let isOver = false;
  let gate: { readonly opened: Promise<void>; open(): void } | null = null;
  let idle = 0;
  let last = performance.now();
  let longest = 0;
  let count = 0;
  let turn = 0;
  interface Waiter {
    readonly count: number;
    readonly since: number;
    readonly resolve: (milliseconds: number) => void;
  }
  const waiters = new Set<Waiter>();

  function noteAcknowledged(): void {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    count += 1;
    for (const waiter of waiters) {
      if (count < waiter.count) continue;
      waiters.delete(waiter);
      waiter.resolve(now - waiter.since);
    }
  }

  function noteFailure(what: string): void {
    failures.set(what, (failures.get(what) ?? 0) + 1);
  }

  /** Sends the same bytes until an answer reveals the outcome. */
  async function ask(request: SignedRequest): Promise<Received> {
    const answer = await untilAnswered((isRepeated) => attempt(request, isRepeated));
    noteAcknowledged();
    return answer;
  }

  /**
   * A heartbeat is signed again each time it is sent. So is any node request that was refused as too old: if an active instance
   * ends without having stored the newest heartbeats, nothing signed before that is accepted.
   */
  async function askAsNode(sign: () => SignedRequest, repeat: Repeat): Promise<Received> {
    let request = sign();
    const answer = await untilAnswered(async (isRepeated) => {
      if (isRepeated && repeat === 'signed anew') request = sign();
      const given = await attempt(request, isRepeated && repeat === 'same bytes');
      if (given === null || outcome(given) !== '401 node_auth_failed') return given;
      noteFailure(`${request.path}: ${outcome(given)} (${given.body.error.message})`);
      request = sign();
      return null;
    });
    noteAcknowledged();
    return answer;
  }

  async function untilAnswered(
    attempted: (isRepeated: boolean) => Promise<Received | null>,
  ): Promise<Received> {
    const deadline = performance.now() + GIVE_UP_MS;
    for (let isRepeated = false; performance.now() < deadline; isRepeated = true) {
      const answer = await attempted(isRepeated);
      if (answer !== null) return answer;
      await delay(RETRY_MS);
    }
    throw new Error('A request was never answered');
  }

  /** Null if it must be repeated. */
  async function attempt(
    { method, path, init }: SignedRequest,
    isRepeated: boolean,
  ): Promise<Received | null> {
    const headers = isRepeated ? { ...init.headers, 'X-Mesh-Retry': '1' } : init.headers;
    try {
      const answer = await inTime((signal) => send(na, method, path, { ...init, headers, signal }));
      if (answer.status < 500) return answer;
      noteFailure(`${path.split('/').slice(0, 3).join('/')}: ${outcome(answer)}`);
    } catch (cause) {
      noteFailure(`${path.split('/').slice(0, 3).join('/')}: ${nameOf(cause)}`);
    }
    return null;
  }

  async function operated(path: string, body: JsonObject = {}): Promise<Received> {
    return ask(operatorRequest(na, path, body));
  }

  function expect(answer: Received, what: string): boolean {
    if (answer.status === 200) return true;
    ledger.violations.add(`${what} was refused: ${outcome(answer)}`);
    return false;
  }

  /** Cycles through the instances, addressed directly, and the balancer. */
  function next(): TestAuthority {
    turn += 1;
    return targets[turn % targets.length] as TestAuthority;
  }

  async function invited(): Promise<string | null> {
    const answer = await operated('/admin/invite');
    if (outcome(answer) === '409 already_done') {
      for (const one of answer.body.error.details.token_fingerprints) ledger.invites.add(one);
      return null;
    }
    if (!expect(answer, 'an invite')) return null;
    ledger.invites.add(fingerprintOf(inviteId(answer.body.token_id)));
    return answer.body.token_id;
  }

  async function liveAndEnd(): Promise<void> {
    const invite = await invited();
    if (invite === null) return;
    const key = newKey();
    const terms = { invite_token: invite };
    const joined = await ask(signedByNode(na, '/join', key, terms));
    if (!expect(joined, 'a join')) return;
    const certId: string = joined.body.cert_id;
    ledger.certificates.set(certId, key.publicKey);
    await think();
    const again = await ask(signedByNode(na, '/join', newKey(), terms));
    if (again.status === 200) ledger.violations.add('twice: an invite was used by two nodes');

    const beat = { cert_id: certId, status: 'healthy' };
    let sent = signedByNode(na, '/heartbeat', key, beat);
    const heard = await askAsNode(() => {
      sent = signedByNode(na, '/heartbeat', key, beat);
      return sent;
    }, 'signed anew');
    if (expect(heard, 'a heartbeat')) await replay(sent);
    await think();

    const renewed = await askAsNode(
      () => signedByNode(na, '/renew', key, { cert_id: certId }),
      'same bytes',
    );
    if (!expect(renewed, 'a renewal')) return;
    const newId: string = renewed.body.cert_id;
    ledger.certificates.set(newId, key.publicKey);
    await think();
    for (const id of [certId, newId]) {
      const revoked = await operated('/admin/revoke', { cert_id: id });
      if (!expect(revoked, 'a revocation')) return;
      for (const one of revoked.body.revoked_cert_ids ?? [id]) ledger.revoked.set(one, Date.now());
      await readEverywhere(`the revocation of ${id}`, { '/crl': ({ text }) => text.includes(id) });
    }
    const at = next();
    const refused = await quietly(() =>
      sendTo(at.url, signedByNode(at, '/heartbeat', key, { ...beat, cert_id: newId })),
    );
    if (refused?.status === 200) ledger.violations.add('stale: a revoked node was heard');
  }

  /** An acknowledged heartbeat is not accepted a second time, whichever instance receives it. */
  async function replay(sent: SignedRequest): Promise<void> {
    const headers = { ...sent.init.headers, 'X-Mesh-Retry': '1' };
    const request = { ...sent, init: { ...sent.init, headers } };
    const answer = await quietly(() => sendTo(next().url, request));
    if (answer?.status === 200) ledger.violations.add('twice: a heartbeat was replayed');
  }

  async function attest(): Promise<void> {
    const terms = { subject_id: 'agent-7', roles: ['role:client'] };
    const issued = await operated('/admin/attestations', terms);
    if (!expect(issued, 'an attestation')) return;
    const id: string = issued.body.attestation_id;
    ledger.attestations.set(id, false);
    await think();
    const path = `/admin/attestations/${encodeURIComponent(id)}/revoke`;
    if (!expect(await operated(path), 'the revocation of an attestation')) return;
    ledger.attestations.set(id, true);
    await readEverywhere(`the revocation of attestation ${id}`, {
      '/sovereign-revocation-feed': ({ body }) => body.revoked_attestation_ids.includes(id),
      [`/attestations/${encodeURIComponent(id)}`]: ({ body }) => body.status === 'revoked',
    });
  }

  async function recognize(): Promise<void> {
    const terms = { subject_sovereign_id: 'beta', subject_public_keys: [newKey().publicKey] };
    const issued = await operated('/admin/recognition-treaties', terms);
    if (!expect(issued, 'a treaty')) return;
    const id: string = issued.body.treaty_id;
    const path = `/recognition-treaties/${encodeURIComponent(id)}`;
    await readEverywhere(
      `treaty ${id}`,
      treatyIn(id, path, (state) => state !== undefined),
    );
    const revoked = await operated(`/admin${path}/revoke`);
    if (!expect(revoked, 'the revocation of a treaty')) return;
    await readEverywhere(
      `the revocation of treaty ${id}`,
      treatyIn(id, path, (state) => state === 'revoked'),
    );
  }

  async function publishPolicy(): Promise<void> {
    const published = await operated('/admin/policy');
    if (!expect(published, 'a policy')) return;
    const at: string = published.body.issued_at;
    await readEverywhere('a policy', { '/policy': ({ body }) => body.issued_at >= at });
  }

  /**
   * Each instance shows what was just acknowledged in each of these documents, unless the answer itself says that it
   * may lack it.
   */
  async function readEverywhere(
    change: string,
    documents: Readonly<Record<string, (answer: Received) => boolean>>,
  ): Promise<void> {
    const acknowledgedAt = Date.now();
    const reads = instances.flatMap(({ na: at }, index) =>
      Object.entries(documents).map(async ([path, shows]) => {
        const answer = await quietly(() => inTime((signal) => send(at, 'GET', path, { signal })));
        if (answer?.status !== 200) return;
        ledger.documents += 1;
        const staleSince = staleSinceOf(answer);
        const isDue = staleSince === null || acknowledgedAt < staleSince;
        if (isDue && !shows(answer)) {
          ledger.violations.add(`stale: ${path} of instance ${index + 1} lacks ${change}`);
        }
      }),
    );
    await Promise.all(reads);
  }

  async function switchKeyOff(): Promise<void> {
    const key = newKey();
    const keyId = `ops-${key.publicKey.slice(0, 12).replace(/[^A-Za-z0-9]/g, 'x')}`;
    const given = { key_id: keyId, public_key: key.publicKey, tier: 'standard' };
    if (!expect(await operated('/admin/operator-keys', given), 'an operator key')) return;
    await think();
    const off = await operated(`/admin/operator-keys/${keyId}/revoke`);
    if (!expect(off, 'switching an operator key off')) return;
    ledger.keysOff.add(keyId);
    const at = next();
    const call = { operator: { keyId, key }, method: 'GET' };
    const listed = await quietly(() =>
      sendTo(at.url, operatorRequest(at, '/admin/invites?limit=1', {}, call)),
    );
    if (listed?.status === 200) ledger.violations.add('stale: an operator key is still taken');
  }

  /** No instance serves a list that lacks what was acknowledged before the request. */
  async function readList(): Promise<void> {
    const at = next();
    const judge = ledger.expectList(at === na ? null : at.url);
    const answer = await quietly(() => inTime((signal) => send(at, 'GET', '/crl', { signal })));
    if (answer?.status === 200) {
      judge({ text: answer.text, staleSince: staleSinceOf(answer) });
    }
  }

  async function think(): Promise<void> {
    await delay(THINK_MS);
  }

  async function client(steps: readonly (() => Promise<void>)[]): Promise<void> {
    for (let step = 0; !isOver; step += 1) {
      if (gate !== null) {
        idle += 1;
        await gate.opened;
        idle -= 1;
        continue;
      }
      await steps[step % steps.length]?.();
      await think();
    }
  }

  const clients = [
    ...Array.from({ length: CLIENTS - TREATY_CLIENTS - 1 }, () =>
      client([liveAndEnd, attest, switchKeyOff]),
    ),
    ...Array.from({ length: TREATY_CLIENTS }, () => client([recognize, recognize, publishPolicy])),
    client([readList]),
  ];
  const failed = Promise.all(clients);
  failed.catch(() => undefined);

  function resume(): void {
    last = performance.now();
    gate?.open();
    gate = null;
  }

  return {
    failures,
    takeLongestPause() {
      const taken = Math.max(longest, performance.now() - last);
      longest = 0;
      return taken;
    },
    acknowledged: () => count,
    acknowledges(more) {
      const reached = new Promise<number>((resolve) => {
        waiters.add({ count: count + more, since: performance.now(), resolve });
      });
      return Promise.race([reached, failed.then(() => 0)]);
    },
    async pause() {
      let open: () => void = () => undefined;
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      gate = { opened, open };
      while (idle < clients.length) await Promise.race([delay(10), failed]);
    },
    resume,
    async stop() {
      isOver = true;
      resume();
      await failed;
    },
  };
}

/** Checks the state of a treaty in each public document that shows it; undefined if it is not there. */
function treatyIn(id: string, path: string, holds: (state: string | undefined) => boolean) {
  interface Shown {
    readonly treaty_id: string;
    readonly lifecycle_state: string;
  }
  const inRows = (rows: readonly Shown[]) =>
    holds(rows.find((row) => row.treaty_id === id)?.lifecycle_state);
  const inEdges = ({ body }: Received) => inRows(body.recognition_edges);
  return {
    '/recognition-graph': inEdges,
    '/connectome.json': inEdges,
    '/atlas.json': inEdges,
    '/dashboard.json': ({ body }: Received) => inRows(body.treaties),
    [path]: ({ body }: Received) => holds(body.lifecycle?.state),
  };
}

function sendTo(url: string, { method, path, init }: SignedRequest): Promise<Received> {
  return inTime((signal) => send({ url }, method, path, { ...init, signal }));
}

function inTime<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return work(AbortSignal.timeout(PATIENCE_MS));
}

/** Null if the request fails, because the instance may be down. */
async function quietly<T>(work: () => Promise<T>): Promise<T | null> {
  return work().catch(() => null);
}

function nameOf(cause: unknown): string {
  const { name, cause: inner } = cause as { name?: string; cause?: { code?: string } };
  return inner?.code ?? name ?? String(cause);
}
