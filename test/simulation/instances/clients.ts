/** Those who ask the instances, and hold every answer against all that was acknowledged before. */
import type { Answer } from '../../../src/protocol/contract/answers.ts';
import { insist, Violation } from '../violation.ts';
import type { Chance } from './chance.ts';
import type { Clockwork } from './clockwork.ts';
import type { StoredEntry } from './database.ts';
import type { Instance } from './instance.ts';

export interface ClientsOptions {
  readonly clockwork: Clockwork;
  readonly chance: Chance;
  readonly instances: readonly Instance[];
  /** What the database had, and has lost. */
  readonly lost: ReadonlySet<string>;
  /** What a client takes an answer for. */
  told(answer: Answer): Answer;
}

/** A change that was asked for. */
interface Asked {
  readonly id: string;
  readonly invite: string | null;
  /** Null while there is no answer. */
  answer: Answer | null;
}

export interface Clients {
  /** At this moment; `invite` is null for a revocation. */
  change(instance: Instance, invite: string | null): void;
  readList(instance: Instance): void;
  /** What must not be at the end; the last so many changes were asked for long after all trouble. */
  assertHolds(entries: readonly StoredEntry[], last: number): void;
}

/** How long after an acknowledgment the list is read, at most. */
const READ_AFTER_MS = 30;

/** Refusals that promise that nothing was done. */
const NOT_DONE: ReadonlySet<string> = new Set([
  'authority_unavailable',
  'shutting_down',
  'invalid_invite_token',
]);

export function createClients(options: ClientsOptions): Clients {
  const { clockwork, chance, instances, lost, told } = options;
  const asked: Asked[] = [];
  const revoked = new Set<string>();
  const problems: unknown[] = [];

  function found(cause: unknown): void {
    problems.push(cause);
  }

  async function read(instance: Instance): Promise<void> {
    const known = [...revoked];
    const list = await instance.readList()?.catch(unlessViolation);
    if (list == null) return;
    const missing = known.filter((id) => !list.includes(id) && !lost.has(id)).join(', ');
    const where = `${instance.machine.name} at ${clockwork.now}`;
    insist(missing === '', () => `${where} shows no ${missing}, acknowledged before it was asked`);
  }

  async function change(instance: Instance, invite: string | null): Promise<void> {
    const name = invite === null ? 'revokeCertificate' : 'join';
    const made: Asked = { id: `${name}-${asked.length}`, invite, answer: null };
    asked.push(made);
    const answer = await instance.change(name, { id: made.id, invite })?.catch(internalError);
    if (answer == null) return;
    made.answer = told(answer);
    if (answer.ok && invite === null) noteRevoked(made.id);
  }

  function noteRevoked(id: string): void {
    revoked.add(id);
    for (const instance of instances) {
      const later = clockwork.now + chance.between(0, READ_AFTER_MS);
      clockwork.at(later, () => void read(instance).catch(found));
    }
  }

  return {
    change: (instance, invite) => void change(instance, invite).catch(found),
    readList: (instance) => void read(instance).catch(found),
    assertHolds(entries, last) {
      if (problems.length > 0) throw problems[0];
      assertOnce(entries);
      assertInTurn(entries);
      assertStored(asked, new Set([...lost, ...entries.map(({ id }) => id)]));
      for (const { id, answer } of asked.slice(-last)) {
        const got = JSON.stringify(answer);
        insist(answer?.ok === true, () => `Long after all trouble, ${id} was answered ${got}`);
      }
    },
  };
}

function unlessViolation(cause: unknown): null {
  if (cause instanceof Violation) throw cause;
  return internalError();
}

/** It says nothing of what was done. */
function internalError(): null {
  return null;
}

function assertOnce(entries: readonly StoredEntry[]): void {
  const names = entries.flatMap(({ id, invite }) => (invite === null ? [id] : [id, invite]));
  const repeated = names.filter((name, index) => names.indexOf(name) !== index);
  insist(repeated.length === 0, () => `${repeated.join(', ')} is stored more than once`);
}

function assertInTurn(entries: readonly StoredEntry[]): void {
  for (const { id, epoch, holder, under } of entries) {
    insist(
      epoch === under.epoch && holder === under.holder,
      () => `${holder}, holder ${epoch}, stored ${id} under ${under.holder}, holder ${under.epoch}`,
    );
  }
}

function assertStored(asked: readonly Asked[], stored: ReadonlySet<string>): void {
  for (const { id, answer } of asked) {
    if (answer === null) continue;
    if (answer.ok) insist(stored.has(id), () => `${id} was acknowledged, and is not stored`);
    else if (NOT_DONE.has(answer.refusal)) {
      insist(!stored.has(id), () => `${id} was refused as ${answer.refusal}, and is stored`);
    }
  }
}
