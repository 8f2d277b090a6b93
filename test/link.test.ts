/** The link between two instances: who may open it, and when a change may be acknowledged. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { connect } from 'node:tls';
import type { Call } from '../src/contract/calls.ts';
import { publishedDocument } from '../src/contract/documents.ts';
import { createDocumentPublisher } from '../src/contract/publications.ts';
import { createStandingMemory, extendStanding, standingIn } from '../src/contract/standing.ts';
import { signerFromSeed } from '../src/crypto/ed25519.ts';
import type { Outcome } from '../src/link/client.ts';
import { createFollowerLag } from '../src/link/follower-lag.ts';
import { createGrants } from '../src/link/grants.ts';
import { linkKey } from '../src/link/key.ts';
import { createPace } from '../src/link/pace.ts';
import { LINK_CIPHERS } from '../src/link/security.ts';
import {
  createTestClient,
  keptLog,
  LINK_KEY,
  LINK_SIGNER,
  lend,
  openTestHost,
} from './support/link.ts';

test('the key of the link is that of one authority and one network', () => {
  assert.deepEqual(linkKey(LINK_SIGNER, 'a'), LINK_KEY);
  assert.equal(LINK_KEY.length, 32);
  assert.notDeepEqual(linkKey(LINK_SIGNER, 'b'), LINK_KEY);
  assert.notDeepEqual(linkKey(signerFromSeed(Buffer.alloc(32, 8)), 'a'), LINK_KEY);
});

test('a change is acknowledged when every follower has applied it, or may not answer any more', async () => {
  let now = 1000;
  const grants = createGrants(() => now);
  const [quick, slow] = [grants.create(), grants.create()];
  assert.equal(grants.awaitAll(5), null, 'nobody may answer from copies yet');
  grants.extend(quick, now + 400);
  grants.extend(slow, now + 400);
  let isAcknowledged = false;
  const waiting = grants.awaitAll(5)?.then(() => {
    isAcknowledged = true;
  });
  grants.applied(quick, 5);
  grants.applied(slow, 4);
  await Promise.resolve();
  assert.ok(!isAcknowledged);
  now += 400;
  grants.applied(quick, 5);
  await waiting;
  grants.extend(slow, now + 400);
  const again = grants.awaitAll(6);
  grants.end(slow);
  await again;
});

test('the right to answer from copies ends in time, also where the numbers of its memory run over', () => {
  for (const start of [1, 2 ** 31 - 200, 2 ** 32 - 200, 2 ** 33 + 5.5]) {
    let now = start;
    const memory = createStandingMemory();
    const standing = standingIn(memory, () => now);
    assert.ok(!standing.isCurrent());
    extendStanding(memory, start + 400);
    now = start + 398;
    assert.ok(standing.isCurrent(), `${start}`);
    now = start + 400;
    assert.ok(!standing.isCurrent(), `${start}`);
  }
});

test('what is to be sent right after a message waits for what else comes, and is sent at once otherwise', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  let sent = 0;
  const later = createPace(() => now);
  async function sendInTurn(): Promise<number> {
    later(() => {
      sent += 1;
    });
    await new Promise(setImmediate);
    return sent;
  }
  assert.equal(await sendInTurn(), 1);
  now += 0.5;
  assert.equal(await sendInTurn(), 1);
  t.mock.timers.tick(1);
  assert.equal(sent, 2);
  now += 1;
  assert.equal(await sendInTurn(), 3);
});

test('a follower that keeps up is at 0 however much is written, and one that does not is as far behind as it was at least', () => {
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

test('a follower gets documents before the answers that rest on them, and a stranger gets nothing', async () => {
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
  // It comes before this instance writes, and is not turned away.
  client.follow({ epoch: 3, link: host.address });
  const port = Number(host.address.split(':')[1]);
  for (const psk of [Buffer.alloc(32), Buffer.alloc(0)]) {
    const stranger = connect({
      ...LINK_CIPHERS,
      port,
      host: '127.0.0.1',
      pskCallback: () => ({ psk, identity: 'mesh-na' }),
      checkServerIdentity: () => undefined,
    });
    const [cause] = await once(stranger, 'error');
    assert.match(String(cause), /alert|disconnected|psk|PSK/);
  }
  lend(host, 3, call);
  await linked;
  const outcome = await new Promise<Outcome>((ended) => {
    assert.ok(client.send('refreshCrl', null, ended));
  });
  assert.deepEqual(host.followers(), [{ instance: 'first', lag: null }]);
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
