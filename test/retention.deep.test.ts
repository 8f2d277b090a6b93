/** The data that a fleet leaves behind over the years, and thousands of certificates in one process. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECOND } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { renewWeekly, YEAR_WEEKS } from './support/renewing-fleet.ts';
import { openSimulatedNetwork, type SimulatedNode } from './support/simulated-network.ts';

test('a fleet that renews weekly for five years takes no more room than its living nodes', () =>
  renewWeekly(5 * YEAR_WEEKS));

// Thousands of certificates in one process, more than fit in the first blocks of its tables.

/** The size of a block, and a number of certificates that also fills part of the next one. */
const BLOCK = 4096;
const MANY = BLOCK + 104;
const AT_ONCE = 400;

test('certificates are renewed and revoked at every block boundary, and all answer after a restart', async () => {
  await using folder = networkFolder('alpha');
  const clock = { now: 1_800_000_000_000, elapsed: 0 };
  const network = await openSimulatedNetwork(folder.path, clock);
  const tokens: string[] = [];
  while (tokens.length < MANY) tokens.push(...(await network.invite(1000)));
  const nextNode = () => network.join(tokens.pop() ?? '');
  const valid: SimulatedNode[] = [];
  const revoked: SimulatedNode[] = [];
  const issued = () => valid.length + revoked.length;

  while (issued() < BLOCK - 6) {
    const count = Math.min(AT_ONCE, BLOCK - 6 - issued());
    valid.push(...(await Promise.all(Array.from({ length: count }, nextNode))));
  }
  // A renewal, a revocation and a join happen at each count around the block boundary.
  while (issued() < BLOCK + 6) {
    const [first] = valid.splice(0, 1);
    if (first === undefined) throw new Error('There is no certificate');
    await network.revoke(first);
    revoked.push(first);
    await network.revoke(first);
    const known = valid[issued() % 7];
    if (known === undefined) throw new Error('There is no certificate');
    valid.push(issued() % 2 === 0 ? await network.renew(known) : await nextNode());
  }
  valid.push(...(await Promise.all(Array.from({ length: 20 }, nextNode))));
  const answersOf = async (one: typeof network) => {
    one.advance(SECOND);
    for (let start = 0; start < valid.length; start += AT_ONCE) {
      await Promise.all(valid.slice(start, start + AT_ONCE).map(one.beat));
    }
    for (const node of revoked) await assert.rejects(one.beat(node), /certificate_revoked/);
    const { issued_certificates, revoked_certificates } = await one.readCounts();
    assert.equal(issued_certificates, issued());
    assert.equal(revoked_certificates, revoked.length);
  };
  await answersOf(network);
  await network.close();
  const again = await openSimulatedNetwork(folder.path, clock);
  await answersOf(again);
  await again.close();
});
