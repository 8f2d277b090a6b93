/** Clients of the instances, which check every answer against everything acknowledged before. */
import type { AuthorityKeyStep } from '../../../src/protocol/answers/operators.ts';
import type { Answer } from '../../../src/protocol/contract/calls.ts';
import type { Random } from '../../fuzz/random.ts';
import type { CallName, CallOf } from '../authority-calls.ts';
import { signer } from '../requests.ts';
import { insist, Violation } from '../violation.ts';
import { type Asking, asOperator, joining } from './asking.ts';
import { BEATING, Beats } from './beats.ts';
import type { Clockwork } from './clockwork.ts';
import type { Database, StoredChange } from './database.ts';
import type { DrawnRequest, DrawnSuccession } from './histories.ts';
import type { Instance } from './instance.ts';
import { BEGAN } from './machine-runtime.ts';
import type { Running } from './process.ts';
import { Readers } from './readers.ts';
import { comesOnce, joined, keyIs, revoked } from './remote-store.ts';
import { SEED } from './seed.ts';
import { Operators } from './staging.ts';

type Sending = Omit<DrawnRequest, 'at' | 'instance'>;

export interface ClientsOptions {
  readonly clockwork: Clockwork;
  readonly chance: Random;
  readonly instances: readonly Instance[];
  readonly database: Pick<Database, 'lost' | 'hasLost' | 'disk' | 'changes'>;
  /** Transforms an answer before the client sees it. */
  received(answer: Answer): Answer;
}

/** A requested change. */
interface Asked {
  readonly label: string;
  /** What an acknowledgment promises; null if only the answer reveals it. */
  fact: string | null;
  /** Null until it is answered. */
  answer: Answer | null;
}

export interface Clients {
  /** Sends the request now. */
  send(instance: Instance, request: Sending): void;
  /** Reads after all faults have ended, when every instance shows documents that all clients can follow. */
  readLast(instance: Instance): void;
  /** Nodes start sessions before any fault begins. */
  beginSessions(instance: Instance): void;
  /** Sends heartbeats after all faults have ended, when every instance accepts every heartbeat. */
  beatLast(index: number): void;
  /** Reports a violation. */
  found(cause: unknown): void;
  /** Checks the rules at the end; the last `last` changes were requested after all faults had ended. */
  assertHolds(last: number): void;
  /** How many session heartbeats were counted. */
  beatsCounted(): number;
}

/** The longest delay between an acknowledgment and a read. */
const READ_AFTER_MS = 30;

/** Refusals that guarantee that nothing was done. */
const NOT_DONE: ReadonlySet<string> = new Set([
  'authority_unavailable',
  'shutting_down',
  'invalid_invite_token',
]);

export function createClients(options: ClientsOptions): Clients {
  const { clockwork, chance, instances, database, received } = options;
  const asked: Asked[] = [];
  const problems: unknown[] = [];
  const operators = new Operators(instances, chance);
  const readers = new Readers({
    now: () => timeOf(clockwork),
    hasLost: () => database.hasLost,
    isLost: (certId) => database.lost.has(revoked(certId)),
  });
  const beats = new Beats({
    now: () => timeOf(clockwork),
    hasLost: () => database.hasLost,
    isRevoked: (certId) => readers.acknowledged.revoked.includes(certId),
  });
  let nonces = 0;

  function found(cause: unknown): void {
    problems.push(cause);
  }

  async function read(instance: Instance, isLast = false): Promise<boolean> {
    const { acknowledged } = readers;
    const shown = await instance.read()?.catch(unlessViolation);
    if (shown == null) return false;
    const where = `${instance.machine.name} at ${clockwork.now}`;
    readers.check(where, shown, acknowledged, isLast);
    return true;
  }

  async function ask<Name extends CallName>(
    instance: Instance,
    name: Name,
    given: (asking: Asking, running: Running) => CallOf<Name> | null,
    fact: string | null = null,
  ): Promise<Answer | null> {
    nonces += 1;
    const nonce = `nonce-${nonces}`;
    const made: Asked = { label: `${name} ${nonces}`, fact, answer: null };
    asked.push(made);
    const asking = (running: Running) => ({
      now: timeOf(clockwork),
      nonce,
      authorityKeys: running.authorityKeys,
    });
    const answer = await instance
      .ask((running) => {
        const question = given(asking(running), running);
        return question && running.call(name, question);
      })
      ?.catch(unlessViolation);
    if (answer == null) return null;
    made.answer = received(answer);
    return answer;
  }

  async function revoke(instance: Instance): Promise<void> {
    const certId = SEED.certificates[nextNode];
    if (certId === undefined) throw new Error('All certificates are revoked');
    nextNode += 1;
    const given = { cert_id: certId, node_public_key: null, reason: 'unspecified' } as const;
    const answer = await ask(
      instance,
      'revokeCertificate',
      (asking) => asOperator('revokeCertificate', given, asking),
      revoked(certId),
    );
    if (answer?.ok !== true) return;
    readers.noteRevoked(certId);
    readEverywhere();
  }
  let nextNode = 0;

  async function join(instance: Instance, invite: number): Promise<void> {
    const key = signer(`joins ${nonces}`);
    const token = SEED.invites[invite] ?? '';
    const fact = joined(key.publicKey);
    await ask(instance, 'join', (asking) => joining(token, key, asking), fact);
  }

  async function stage(instance: Instance, drawn: DrawnSuccession): Promise<void> {
    const answer = await ask(instance, 'stageSuccession', (asking, running) => {
      const succession = operators.succession(drawn, asking.now, running);
      return succession && asOperator('stageSuccession', { succession }, asking);
    });
    stepTaken(answer);
  }

  async function step(
    instance: Instance,
    name: 'activateSuccession' | 'rollBackAuthorityKey',
  ): Promise<void> {
    stepTaken(await ask(instance, name, (asking) => asOperator(name, {}, asking)));
  }

  /** Confirms the number of nodes that the refusal reports. */
  async function finish(instance: Instance): Promise<void> {
    const name = 'finishSuccession';
    const finishing = (despite: number) =>
      ask(instance, name, (asking) => asOperator(name, { despite }, asking));
    const first = await finishing(0);
    const isCounted = first?.ok === false && first.refusal === 'nodes_have_not_followed';
    stepTaken(isCounted ? await finishing(Number(first.details.count)) : first);
  }

  function stepTaken(answer: Answer | null): void {
    if (answer?.ok !== true) return;
    const taken = JSON.parse(answer.json) as AuthorityKeyStep;
    readers.noteStep(taken);
    promised.push(keyIs(taken.public_key, taken.state));
    readEverywhere();
  }
  const promised: string[] = [];

  function readEverywhere(): void {
    for (const instance of instances) {
      const later = clockwork.now + chance.between(0, READ_AFTER_MS);
      clockwork.at(later, () => void read(instance).catch(found));
    }
  }

  const requests: { readonly [What in DrawnRequest['what']]: Sends } = {
    revoke,
    join: (instance, { invite }) => join(instance, invite),
    read: async (instance) => void (await read(instance)),
    stage: (instance, { succession }) => stage(instance, succession),
    activate: (instance) => step(instance, 'activateSuccession'),
    rollBack: (instance) => step(instance, 'rollBackAuthorityKey'),
    finish,
    bringKeys: async (instance) => operators.bringKeys(instance),
    beat: async (instance, { beat }) => void (await beats.inSession(instance, beat)),
    repeatBeat: (instance, { beat }) => beats.again(instance, beat),
  };

  return {
    found,
    send: (instance, request) => void requests[request.what](instance, request).catch(found),
    readLast(instance) {
      read(instance, true)
        .then((isShown) =>
          insist(isShown, () => `${instance.machine.name} shows nothing in the end`),
        )
        .catch(found);
    },
    beginSessions(instance) {
      for (const node of BEATING.keys()) beats.signed(instance, node).catch(found);
    },
    beatLast: (index) => void beats.last(index, instances).catch(found),
    beatsCounted: () => beats.counted,
    assertHolds(last) {
      if (problems.length > 0) throw problems[0];
      const { changes } = database;
      beats.assertHolds(database.disk);
      assertOnce(changes);
      assertInTurn(changes);
      const facts = changes.flatMap((change) => change.facts);
      assertStored(asked, promised, new Set([...database.lost, ...facts]));
      for (const { label, answer } of asked.slice(-last)) {
        const got = JSON.stringify(answer);
        insist(answer?.ok === true, () => `Long after all trouble, ${label} was answered ${got}`);
      }
    },
  };
}

type Sends = (instance: Instance, request: Sending) => Promise<void>;

function timeOf({ now }: Clockwork): number {
  return BEGAN + Math.floor(now);
}

function unlessViolation(cause: unknown): null {
  if (cause instanceof Violation) throw cause;
  // An internal error does not say whether the request was carried out.
  return null;
}

function assertOnce(changes: readonly StoredChange[]): void {
  const names = changes.flatMap(({ facts }) => facts.filter(comesOnce));
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  insist(repeated.length === 0, () => `${repeated.join(', ')} more than once`);
}

function assertInTurn(changes: readonly StoredChange[]): void {
  for (const { by, facts, under } of changes) {
    insist(
      by.term === under.term && by.holder === under.holder,
      () =>
        `${by.holder}, holder ${by.term}, stored ${facts} under ${under.holder}, holder ${under.term}`,
    );
  }
}

function assertStored(
  asked: readonly Asked[],
  promised: readonly string[],
  stored: ReadonlySet<string>,
): void {
  for (const { label, fact, answer } of asked) {
    if (answer === null || fact === null) continue;
    if (answer.ok) insist(stored.has(fact), () => `${label} was acknowledged, and is not stored`);
    else if (NOT_DONE.has(answer.refusal)) {
      insist(!stored.has(fact), () => `${label} was refused as ${answer.refusal}, and is stored`);
    }
  }
  for (const fact of promised) {
    insist(stored.has(fact), () => `${fact} was acknowledged, and is not stored`);
  }
}
