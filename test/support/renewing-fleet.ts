/** A fleet that renews its certificates for years, while some nodes leave and others join. */
import assert from 'node:assert/strict';
import { networkFolder } from './folders.ts';
import { DAY, HOUR, openSimulatedNetwork, type SimulatedNode } from './simulated-network.ts';

const FLEET = 10;
/** How often a node leaves and another one joins. */
const CHANGE_WEEKS = 4;
export const YEAR_WEEKS = 52;

/**
 * Checks that an authority whose fleet renews weekly keeps only as many certificates as its active nodes need, after
 * the first year.
 */
export async function renewWeekly(weeks: number): Promise<void> {
  await using folder = networkFolder('alpha');
  const clock = { now: 1_800_000_000_000, elapsed: 0 };
  let network = await openSimulatedNetwork(folder.path, clock);
  let fleet = await Promise.all((await network.invite(FLEET)).map(network.join));
  const held: number[] = [];
  for (let week = 1; week <= weeks; week += 1) {
    network.advance(7 * DAY - HOUR);
    await Promise.all(fleet.map(network.beat));
    fleet = await Promise.all(fleet.map(network.renew));
    if (week % CHANGE_WEEKS !== 0) continue;
    fleet = [...(await replaced(network, fleet))];
    await network.flush();
    await network.sweepAll();
    if (week % YEAR_WEEKS === 0) {
      await network.close();
      network = await openSimulatedNetwork(folder.path, clock);
    }
    const { subjects, nonce_windows } = await network.readCounts();
    held.push(subjects.certificate ?? 0);
    assert.ok(nonce_windows <= FLEET + 5);
    assert.ok((subjects.invite ?? 0) <= FLEET + 2);
  }
  // A node that leaves is kept for a year, so the number grows in the first year and stays the same after that.
  const [second = 0, last = 0] = [held[15], held.at(-1)];
  assert.ok(last <= 1.2 * second, `${held.slice(-5).join()} after ${second}`);
  network.advance(HOUR);
  for (const node of fleet) await network.beat(node);
  const { issued_certificates } = await network.readCounts();
  assert.equal(issued_certificates, FLEET + weeks * FLEET + weeks / CHANGE_WEEKS);
  await network.close();
}

/** One node is revoked or leaves, and another one joins. */
async function replaced(
  network: Awaited<ReturnType<typeof openSimulatedNetwork>>,
  [first, ...others]: readonly SimulatedNode[],
): Promise<readonly SimulatedNode[]> {
  const [token] = await network.invite(1);
  if (first === undefined || token === undefined) throw new Error('There is no node');
  if (others.length % 2 === 0) await network.revoke(first);
  return [...others, await network.join(token)];
}
