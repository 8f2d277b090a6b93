/**
 * Random histories of operators, nodes, machines and disks against the real authority: everything that it acknowledged
 * remains true, and nothing else is ever visible.
 *
 * Those of one authority are compared with the rules in `model/` after every step. Those of three instances have
 * machines that stop, hang, and lose contact with each other or with the database, which may lose its last changes,
 * while the authority's key is replaced. Whatever was acknowledged is stored, nothing is done twice, no document is older
 * than what was acknowledged before it was requested, every client that pinned the root key can verify every list, no
 * key takes over while a linked instance lacks it, no instance takes over a database that lacks what the instance has
 * shown, and no heartbeat counts if it was forged or counted before.
 */
import { suite } from 'node:test';
import { testSuite } from './suite-tests.ts';

suite('histories end as the specification says', { concurrency: 2 }, () => {
  testSuite('correct clocks');
  testSuite('clocks that are set');
  testSuite('many keys');
  testSuite('other processes take over');
  testSuite('three instances');
});
