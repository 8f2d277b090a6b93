/** Runs every row of every state table, and checks that every branch of every machine has a row. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { type AnyStateMachine, StateMachine } from 'xstate';
import { certificateMachine } from '../machines/certificate.ts';
import { inviteMachine } from '../machines/invite.ts';
import { type Resting, step } from '../machines/step.ts';
import { beat, issued, revoke } from './machine-tables/certificates.ts';
import { bound, consumed, invite, join, unused } from './machine-tables/invites.ts';
import './machine-tables/agents.ts';
import './machine-tables/authority-keys.ts';
import './machine-tables/node-descriptions.ts';
import './machine-tables/nullifiers.ts';
import './machine-tables/operator-keys.ts';
import './machine-tables/policies.ts';
import './machine-tables/recognition.ts';
import './machine-tables/removals.ts';
import './machine-tables/revocations.ts';
import { modulePath, PROJECT } from './support/project.ts';
import { rowsOf, tested } from './support/state-tables.ts';

// The tables are complete

test('every machine of the folder has a table here', async () => {
  const missing: string[] = [];
  const files = readdirSync(new URL('machines', PROJECT)).filter((name) => name.endsWith('.ts'));
  for (const file of files) {
    const exported = (await import(modulePath(`machines/${file}`))) as Record<string, unknown>;
    for (const [name, value] of Object.entries(exported)) {
      if (!(value instanceof StateMachine)) continue;
      if (!tested.has(value as unknown as AnyStateMachine)) missing.push(`${file} ${name}`);
    }
  }
  assert.deepEqual(missing, []);
});

type Transitions = { readonly [event: string]: unknown };

for (const machine of tested) {
  test(`${machine.id}: every branch of every state has a row`, () => {
    const short: string[] = [];
    const states = Object.entries(
      (machine.config.states ?? {}) as Record<string, { on?: Transitions }>,
    );
    function demandRows(event: string, branches: unknown, answering: readonly string[]): void {
      const name = `${machine.id} ${answering.join(' or ')} ${event}`;
      const needed = Array.isArray(branches) ? branches.length : 1;
      const found = answering.map((state) => rowsOf.get(`${machine.id} ${state} ${event}`) ?? 0);
      const all = found.reduce((sum, count) => sum + count, 0);
      if (all < needed) short.push(`${name}: ${all} rows for ${needed} branches`);
      if (found.includes(0)) short.push(`${name}: a state without a row`);
    }
    for (const [state, { on = {} }] of states) {
      for (const [event, branches] of Object.entries(on)) demandRows(event, branches, [state]);
    }
    // What the machine answers in every state that does not answer by itself.
    for (const [event, branches] of Object.entries((machine.config.on ?? {}) as Transitions)) {
      const others = states.filter(([, { on = {} }]) => !(event in on)).map(([state]) => state);
      demandRows(event, branches, others);
    }
    assert.deepEqual(short, []);
  });
}

test('a terminal state leads to no other', () => {
  const ways: string[] = [];
  for (const machine of tested) {
    for (const [state, { tags, transitions }] of Object.entries(machine.states)) {
      if (!tags.includes('terminal')) continue;
      const shared = [...machine.root.transitions].filter(([event]) => !transitions.has(event));
      for (const [event, branches] of [...transitions, ...shared]) {
        const leads = branches.some(({ target }) => target?.some(({ key }) => key !== state));
        if (leads) ways.push(`${machine.id} ${state} ${event}`);
      }
    }
  }
  assert.deepEqual(ways, []);
});

// Running machines

test('subjects of one machine do not affect each other', () => {
  const one = step(inviteMachine, undefined, { type: 'create', invite });
  const two = step(inviteMachine, undefined, { type: 'create', invite: bound.context });
  const consumedOne = step(inviteMachine, one.next, join);
  assert.deepEqual(one.next, unused);
  assert.deepEqual(two.next, bound);
  assert.equal(consumedOne.next.value, 'consumed');
  assert.deepEqual(step(inviteMachine, two.next, join).emitted, [{ type: 'consumed' }]);
  assert.deepEqual(consumedOne.emitted, [{ type: 'consumed' }]);
});

test('a subject restored from JSON accepts events as before', () => {
  const resting = JSON.parse(JSON.stringify(issued)) as Resting;
  assert.deepEqual(step(certificateMachine, resting, beat).emitted, [{ type: 'alive' }]);
  const stopped = step(certificateMachine, resting, revoke).next;
  const reloaded = JSON.parse(JSON.stringify(stopped)) as Resting;
  assert.deepEqual(step(certificateMachine, reloaded, revoke).emitted, [
    { type: 'already_revoked' },
  ]);
});

test('a refusal after a change, and a change after a throw, emit only their own effects', () => {
  assert.throws(() => step(inviteMachine, unused, { type: 'create', invite }));
  assert.deepEqual(step(inviteMachine, unused, join).emitted, [{ type: 'consumed' }]);
  assert.deepEqual(step(inviteMachine, consumed, join).emitted, [
    { type: 'refused', refusal: 'invalid_invite_token' },
  ]);
});
