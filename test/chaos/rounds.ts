/** Plays faults under load, each to its end, and checks after each what was acknowledged. */
import type { TestAuthority } from '../support/authority.ts';
import type { Deployment } from './deployment.ts';
import type { Durations, Fault } from './faults.ts';
import { audit, type Ledger } from './ledger.ts';
import type { Load } from './load.ts';

export interface Seen {
  readonly fault: string;
  /** The longest time without an acknowledgment, in milliseconds. */
  readonly longestPause: number;
  /** The time from when the service had to recover until the next acknowledgment, in milliseconds. */
  readonly backAfter: number;
  readonly acknowledged: number;
  /** Failed attempts after which clients repeated their request, with their number. */
  readonly failures: ReadonlyMap<string, number>;
  /** How many lists were served as possibly outdated. */
  readonly staleLists: number;
  /** How many documents were read right after a change was acknowledged. */
  readonly documents: number;
  readonly violations: readonly string[];
}

/** Retried because an instance may notice only during the audit that it has to end. */
const AUDITS = 5;

async function auditWhenWhole(
  ledger: Ledger,
  na: TestAuthority,
  deployment: Deployment,
): Promise<void> {
  for (let left = AUDITS - 1; ; left -= 1) {
    await deployment.isWhole();
    try {
      return await audit(ledger, na);
    } catch (cause) {
      if (left === 0) throw cause;
    }
  }
}

/** How many acknowledgments show that everything works again. */
const AFTERWARDS = 10;

export async function playFault(
  fault: Fault,
  deployment: Deployment,
  durations: Durations,
  load: Load,
  ledger: Ledger,
): Promise<Seen> {
  await deployment.isWhole();
  await load.acknowledges(AFTERWARDS);
  load.takeLongestPause();
  load.failures.clear();
  const before = load.acknowledged();
  const staleBefore = ledger.staleLists;
  const documentsBefore = ledger.documents;
  let back = load.acknowledges(1);
  await fault.play(deployment, durations, () => {
    back = load.acknowledges(1);
  });
  const backAfter = await back;
  await deployment.isWhole();
  await load.acknowledges(AFTERWARDS);
  const longestPause = load.takeLongestPause();
  const failures = new Map(load.failures);
  await load.pause();
  for (const { na } of deployment.instances) await auditWhenWhole(ledger, na, deployment);
  load.resume();
  const violations = [...ledger.violations];
  ledger.violations.clear();
  if (!fault.mayFail) {
    for (const [what, times] of failures) {
      // Within the clock tolerance after a kill, even a clean stop counts as one [core-2-3].
      if (what.includes('401 node_auth_failed')) continue;
      violations.push(`failed: ${what}, ${times} times`);
    }
  }
  return {
    fault: fault.name,
    longestPause,
    backAfter,
    acknowledged: load.acknowledged() - before,
    failures,
    staleLists: ledger.staleLists - staleBefore,
    documents: ledger.documents - documentsBefore,
    violations,
  };
}
