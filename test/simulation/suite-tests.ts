import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { on } from 'node:events';
import { after, before, suite, test } from 'node:test';
import { modulePath } from '../support/project.ts';
import type { Failure } from './simulate.ts';
import { SUITES } from './suites.ts';

/**
 * A test for each run of the suite. They are played in another process, because the test runner tracks every promise in
 * its own, which takes as long as the histories themselves.
 */
export function testSuite(where: string): void {
  suite(where, () => {
    let child: ChildProcess;
    let found: AsyncIterator<[Failure | null]>;
    before(() => {
      child = fork(modulePath('test/simulation/suite-process.ts'), [where]);
      found = on(child, 'message', { close: ['disconnect'] }) as AsyncIterator<[Failure | null]>;
    });
    after(() => child.kill());

    for (const { name, finding } of SUITES.get(where) ?? []) {
      test(name, async (t) => {
        const next = await found.next();
        assert.ok(next.done !== true, 'The process has ended early');
        const [failure] = next.value;
        if (finding === null) return assert.ok(failure === null, failure?.report);
        assert.ok(failure !== null, 'All histories hold with it');
        assert.match(failure.problem, finding);
        t.diagnostic(`After ${failure.after} histories: ${failure.problem.split('\n', 1)}`);
      });
    }
  });
}
