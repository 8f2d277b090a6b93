/** The link between two instances: who may open it, and when a change may be acknowledged. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlainly } from 'node:net';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { createRateLimits } from '../src/edge/limits/rate-limit.ts';
import { type Call, type CallInput, UNAVAILABLE } from '../src/protocol/contract/calls.ts';
import { documentText, publishedDocument } from '../src/protocol/contract/documents.ts';
import {
  createDocumentCache,
  createDocumentPublisher,
} from '../src/protocol/contract/publications.ts';
import { createCallRouter } from '../src/server/link/call-router.ts';
import type { Outcome, Writer } from '../src/server/link/client.ts';
import type { FrameListener } from '../src/server/link/frames.ts';
import { createFollowerLag } from '../src/server/link/host.ts';
import { linkSecret } from '../src/server/link/keys.ts';
import { createPace } from '../src/server/link/pace.ts';
import { LINK_CIPHERS } from '../src/server/link/tls-wires.ts';
import type { Connecting, Wire } from '../src/server/link/wires.ts';
import { createOutbox, readAnswers } from '../src/server/threads/answers.ts';
import type { Answers } from '../src/server/threads/messages.ts';
import {
  HEARTBEAT_ROW,
  packHeartbeat,
  unpackHeartbeat,
} from '../src/server/threads/packed-heartbeat.ts';
import {
  createTestClient,
  keptLog,
  LINK_SECRET,
  LINK_SIGNER,
  NO_LIMITS,
  openTestHost,
  startServing,
  WIRES,
} from './support/link.ts';

const { elapsed } = systemRuntime;

test('the link key belongs to one authority and one network', () => {
  assert.deepEqual(linkSecret(LINK_SIGNER, 'a'), LINK_SECRET);
  assert.equal(LINK_SECRET.length, 32);
  assert.notDeepEqual(linkSecret(LINK_SIGNER, 'b'), LINK_SECRET);
  assert.notDeepEqual(linkSecret(signerFromSeed(Buffer.alloc(32, 8)), 'a'), LINK_SECRET);
});

test('a message waits for others of the same turn, and is sent at once otherwise', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  let sent = 0;
  const schedule = createPace(
    () => now,
    () => {
      sent += 1;
    },
  );
  async function sentInTurn(...apart: readonly number[]): Promise<number> {
    for (const each of apart) schedule(each);
    await new Promise(setImmediate);
    return sent;
  }
  function sentAfter(milliseconds: number): number {
    now += milliseconds;
    t.mock.timers.tick(milliseconds);
    return sent;
  }
  assert.equal(await sentInTurn(1, 1), 1);
  assert.equal(await sentInTurn(1), 1);
  assert.equal(sentAfter(1), 2);
  now += 1;
  assert.equal(await sentInTurn(1), 3);

  assert.equal(await sentInTurn(4, 4), 3);
  assert.equal(sentAfter(3), 3);
  assert.equal(sentAfter(1), 4);
  assert.equal(await sentInTurn(4, 1, 4), 4);
  assert.equal(sentAfter(1), 5, 'what can wait goes with what cannot');
  assert.equal(sentAfter(10), 5);
  assert.equal(await sentInTurn(4, 1), 6);
});

test('a follower that keeps up is at 0 however much is written, and one that does not is at least as far behind as it was', () => {
  let now = 1000;
  const lag = createFollowerLag(() => now);
  function reports(revisions: readonly (number | null)[]): number | null {
    for (const each of revisions) {
      now += 100;
      lag.report(each);
    }
    return lag.revisions();
  }
  assert.equal(lag.revisions(), null);
  assert.equal(reports([null, null, 70]), 70, 'a state was read just now');
  const shown = new Set(Array.from({ length: 40 }, (_, at) => reports([at % 4 === 0 ? 0 : 900])));
  assert.deepEqual([...shown], [70, 0], 'it changes once a second at most, and then not any more');
  assert.equal(reports(Array.from({ length: 20 }, (_, at) => 40 + at)), 50);
  assert.equal(reports([0]), 50, 'within the second');
  assert.equal(reports(Array(10).fill(0)), 0);
  assert.equal(reports([null]), null, 'it keeps no state any more, which is known at once');
});

test('an unreachable instance is tried at growing intervals, another one at once, and so is one that was lost after its welcome', () => {
  let now = 1000;
  const tries: { readonly link: string; readonly outcome: Connecting }[] = [];
  const { logger } = keptLog();
  const client = createTestClient({
    publisher: createDocumentPublisher(),
    logger,
    elapsed: () => now,
    wires: {
      ...WIRES,
      connect(link, outcome) {
        tries.push({ link, outcome });
        return { end: () => undefined };
      },
    },
  });
  /** The number of connection attempts within this many seconds, with ten calls of `follow` per second. */
  function triesIn(seconds: number, writer: Writer): number {
    const before = tries.length;
    for (let looks = 0; looks < 10 * seconds; looks += 1) {
      const made = tries.length;
      client.follow(writer);
      if (tries.length > made) tries.at(-1)?.outcome.ended();
      now += 100;
    }
    return tries.length - before;
  }
  const first = { epoch: 1, link: 'a:1' };
  const second = { epoch: 2, link: 'b:1' };
  assert.equal(triesIn(2, first), 5, 'after 0, 100, 300, 700 and 1,500 ms');
  assert.equal(triesIn(10, first), 10);
  client.follow(second);
  assert.equal(tries.at(-1)?.link, 'b:1');
  let listener: FrameListener<unknown> | null = null;
  const frames = {
    send: () => undefined,
    waiting: () => 0,
    onceDrained: () => undefined,
    end: () => undefined,
  };
  tries.at(-1)?.outcome.opened({
    open(_silence, given) {
      listener = given as FrameListener<unknown>;
      return frames;
    },
    end: () => undefined,
  });
  assert.ok(listener !== null);
  const { take, closed } = listener as FrameListener<unknown>;
  take({ type: 'welcome', epoch: 2 });
  closed(null);
  assert.equal(triesIn(1, second), 4, 'at once, and then after 100, 300 and 700 ms');
  client.close();
});

test('a follower gets documents before the answers that depend on them, and a stranger gets nothing', async () => {
  const ours = createDocumentPublisher();
  const theirs = createDocumentPublisher();
  const { logger } = keptLog();
  const host = await openTestHost({ publisher: ours, logger });
  const call: Call = (name) => {
    if (name === 'refreshCrl') ours.publish('crl', publishedDocument('"new"'));
    return { ok: true, json: `"${name}"` };
  };
  let begin: () => void = () => undefined;
  const linked = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const client = createTestClient({ publisher: theirs, logger, linked: () => begin() });
  // It connects before this instance becomes the writer, and is not refused.
  client.follow({ epoch: 3, link: host.address });
  const port = Number(host.address.split(':')[1]);
  for (const psk of [Buffer.alloc(32), Buffer.alloc(0)]) {
    const stranger = connect({
      ...LINK_CIPHERS,
      port,
      host: '127.0.0.1',
      pskCallback: () => ({ psk, identity: LINK_SIGNER.publicKey }),
      checkServerIdentity: () => undefined,
    });
    const [cause] = await once(stranger, 'error');
    assert.match(String(cause), /alert|disconnected|psk|PSK/);
  }
  startServing(host, 3, call);
  await linked;
  const outcome = await new Promise<Outcome>((ended) => {
    assert.ok(client.send('refreshCrl', null, ended));
  });
  assert.deepEqual(host.followers(), [{ instance: 'first', lag: null, nextKey: null }]);
  assert.deepEqual(outcome, { kind: 'answered', answer: { ok: true, json: '"refreshCrl"' } });
  assert.ok(theirs.isCurrent('crl', 0));
  const other = createTestClient({
    program: '2',
    name: 'pid 2',
    instance: 'second',
    publisher: createDocumentPublisher(),
    logger,
    linked: () => assert.fail('another version is turned away'),
  });
  other.follow({ epoch: 3, link: host.address });

  const lost = new Promise<Outcome>((ended) => {
    assert.ok(client.send('join', null, ended));
    host.close();
  });
  assert.equal((await lost).kind, 'lost');
  client.close();
  other.close();
});

test('what was made for a question arrives before its answer, even if it is outdated by then', async () => {
  const { logger } = keptLog();
  const publisher = createDocumentPublisher();
  const host = await openTestHost({ publisher, logger });
  publisher.publish('recognition_graph', publishedDocument('"older than the question"'));
  startServing(host, 1, () => {
    publisher.publish('recognition_graph', publishedDocument('"as of the question"'));
    publisher.withdraw('recognition_graph');
    return { ok: true, json: 'null' };
  });
  const followers = createDocumentPublisher();
  const edge = createDocumentCache(followers.versions);
  followers.follow(edge.take);
  const client = createTestClient({ publisher: followers, logger });
  client.follow({ epoch: 1, link: host.address });
  await until(() => edge.latest('recognition_graph') !== undefined);
  await new Promise<Outcome>((ended) => {
    assert.ok(client.send('refreshGraph', null, ended));
  });
  const newest = edge.latest('recognition_graph');
  assert.equal(newest && documentText(newest), '"as of the question"');
  assert.equal(edge.get('recognition_graph'), undefined, 'the next question needs another one');
  client.close();
  host.close();
});

test('strangers who keep connections open do not keep followers waiting, and only a limited number of theirs stay', async () => {
  const wires: Wire[] = [];
  const listening = await WIRES.listen({ host: '127.0.0.1', port: 0 }, (wire) => wires.push(wire));
  const port = Number(listening.address.split(':')[1]);
  const strangers = Array.from({ length: 70 }, () => connectPlainly(port, '127.0.0.1'));
  let left = strangers.length;
  const fewAreLeft = new Promise<void>((resolve) => {
    for (const stranger of strangers) {
      stranger.on('error', () => undefined);
      stranger.once('close', () => {
        left -= 1;
        if (left <= 32) resolve();
      });
    }
  });
  await Promise.all(strangers.map((stranger) => once(stranger, 'connect')));
  const outcome = await new Promise<string>((ended) => {
    WIRES.connect(listening.address, {
      opened: (wire) => {
        wires.push(wire);
        ended('linked');
      },
      ended: () => ended('turned away'),
    });
  });
  assert.equal(outcome, 'linked');
  await fewAreLeft;
  assert.ok(left > 0, 'they are dropped for others alone');
  for (const wire of wires) wire.end();
  for (const stranger of strangers) stranger.destroy();
  listening.close();
});

test('the heartbeats of a thread are forwarded, and each is answered once, even if the writer changes', async () => {
  const { logger } = keptLog();
  const publisher = createDocumentPublisher();
  const host = await openTestHost({ publisher, logger });
  const asked: string[] = [];
  startServing(host, 1, (_name, given) => {
    const { cert_id: certId } = given as CallInput<'heartbeat'>;
    asked.push(certId);
    if (certId === 'broken') throw new Error('a bug');
    if (certId === 'stopping') return { ok: false, refusal: 'shutting_down', details: {} };
    if (certId === 'refused')
      return { ok: false, refusal: 'certificate_revoked', details: { why: certId } };
    if (certId === 'unanswered') return new Promise(() => undefined);
    return { ok: true, json: JSON.stringify(certId) };
  });
  const client = createTestClient({
    publisher: createDocumentPublisher(),
    logger,
    linked: () => callRouter.resume(),
  });
  const callRouter = createCallRouter({ client, holdMs: 60_000, rateLimits: NO_LIMITS, elapsed });
  const answers = new Map<unknown, unknown>();
  const outbox = createOutbox({ post: (given) => void noteAnswers(answers, given) });

  assert.ok(
    callRouter.relay(heartbeats(['early']), outbox),
    'it is held while nobody can be asked',
  );
  client.follow({ epoch: 1, link: host.address });
  await until(() => answers.has('early'));
  const others = ['good', 'refused', 'broken', 'stopping', 'unanswered'];
  assert.ok(callRouter.relay(heartbeats(others), outbox));
  await until(() => asked.includes('unanswered') && answers.has('broken'));
  assert.deepEqual(asked, ['early', ...others]);
  assert.deepEqual(Object.fromEntries(answers), {
    early: '"early"',
    good: '"good"',
    refused: ['certificate_revoked', { why: 'refused' }],
    broken: 'failed',
  });

  host.close();
  await until(() => answers.has('unanswered'));
  assert.deepEqual(answers.get('unanswered'), ['outcome_unknown', { outcome: 'unknown' }]);
  assert.ok(!answers.has('stopping'), 'nothing was done, and it waits for the next writer');
  let isHeld = false;
  callRouter.lead({
    call(name, given) {
      const { cert_id: certId } = given as CallInput<'heartbeat'>;
      return Promise.resolve({ ok: true, json: JSON.stringify([name, certId]) });
    },
    limits: createRateLimits(NO_LIMITS),
    isHeld: () => isHeld,
  });
  assert.deepEqual(await callRouter.call('checkReadiness', null), UNAVAILABLE);
  const waiting = callRouter.call('heartbeat', unpackHeartbeat(heartbeats(['waiting']), 0));
  assert.ok(!answers.has('stopping'), 'the lease has run out, and a renewal may be on its way');
  isHeld = true;
  assert.deepEqual(await waiting, { ok: true, json: '["heartbeat","waiting"]' });
  await until(() => answers.has('stopping'));
  assert.equal(answers.get('stopping'), '["heartbeat","stopping"]');
  assert.ok(!callRouter.relay(heartbeats(['late']), outbox), 'this instance writes');
  client.close();
});

/** Heartbeats as a thread sends them; the id of each call is that of its certificate. */
function heartbeats(certIds: readonly string[]): unknown[] {
  const rows: unknown[] = [];
  const node = { ...NODE, sending: null };
  for (const certId of certIds) {
    packHeartbeat(rows, 0, {
      cert_id: certId,
      status: 'ok',
      bulletin: false,
      authority_keys_digest: null,
      node,
    });
    rows[rows.length - HEARTBEAT_ROW] = certId;
  }
  return rows;
}

const NODE = {
  publicKey: 'k',
  signedAt: 1,
  nonce: 'n',
  verdict: 'valid',
  remoteAddr: '::1',
} as const;

function noteAnswers(noted: Map<unknown, unknown>, answers: Answers): void {
  function note(id: unknown, answer: unknown): void {
    assert.ok(!noted.has(id), `${id} is answered twice`);
    noted.set(id, answer);
  }
  readAnswers(answers, {
    answered: (id, answer) => note(id, answer.ok ? answer.json : [answer.refusal, answer.details]),
    failed: (id) => note(id, 'failed'),
  });
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = elapsed() + 10_000;
  while (!holds()) {
    assert.ok(elapsed() < deadline, 'in time');
    await setTimeout(2);
  }
}
