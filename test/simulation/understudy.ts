/** The state that another process keeps up to date in memory, from what it finds on the writer's disk. */
import type { ReadyState } from '../../src/authority/open.ts';
import { type AuthorityState, createAuthorityState } from '../../src/authority/state.ts';
import type { AuthoritySigner } from '../../src/base/signer/authority-signer.ts';
import { createDocumentPublisher } from '../../src/protocol/contract/documents.ts';
import { GENESIS_HASH, type PreviousOwner, type StoredSubject } from '../../src/store/store.ts';
import { inOneBatch } from '../support/stored.ts';
import { stateOptions } from './authority-calls.ts';
import type { KeyFolder } from './key-folder.ts';
import { contentsOf, type MemoryDisk, subjectOf } from './memory-disk.ts';
import type { SimulatedRuntime } from './runtime.ts';
import { insist } from './violation.ts';

type Seen = Pick<MemoryDisk, 'subjects' | 'nonces' | 'liveness'> & { readonly entries: number };

export class Understudy {
  readonly publisher = createDocumentPublisher();
  readonly signer: AuthoritySigner;
  readonly #state: AuthorityState;
  readonly #disk: MemoryDisk;
  #seen: Seen;
  /** Changes are applied in order. */
  #last: Promise<void>;

  constructor(
    disk: MemoryDisk,
    runtime: SimulatedRuntime,
    folder: KeyFolder,
    signer: AuthoritySigner,
  ) {
    const { publisher } = this;
    this.#disk = disk;
    this.signer = signer;
    this.#state = createAuthorityState(stateOptions({ runtime, publisher, signer, folder }));
    this.#seen = seenOn(disk, disk.liveness);
    this.#last = this.#state.read(contentsOf(disk, 'closed'));
  }

  follow(withLiveness: boolean): void {
    const disk = this.#disk;
    const { subjects, nonces, liveness, entries } = this.#seen;
    this.#seen = seenOn(disk, withLiveness ? disk.liveness : liveness);
    const changed: StoredSubject[] = [];
    for (const [key, bytes] of disk.subjects) {
      if (subjects.get(key) !== bytes) changed.push(subjectOf(bytes));
    }
    // They arrive in any order, except for the authority's keys.
    if (changed.length % 2 === 0) changed.reverse();
    const isKey = ({ kind }: StoredSubject) => Number(kind === 'authority-key');
    changed.sort((a, b) => isKey(b) - isKey(a));
    const removed = [...subjects].filter(([key]) => !disk.subjects.has(key));
    const spent = [...disk.nonces.values()].filter((one) => nonces.get(one.digest) !== one);
    const digests = new Set(spent.map(({ digest }) => digest));
    const touched = [...disk.liveness.values()].filter((row) => liveness.get(row.id) !== row);
    const changes = {
      ...factsOf(disk),
      subjects: inOneBatch(changed),
      removals: () => removed.map(([, bytes]) => subjectOf(bytes)),
      nonces: inOneBatch(spent.map((one) => ({ ...one }))),
      answers: inOneBatch([...disk.answers.values()].filter(({ digest }) => digests.has(digest))),
      liveness: inOneBatch(withLiveness ? touched.map((row) => ({ ...row })) : []),
      recentAudit: disk.audit.slice(entries),
    };
    this.#last = this.#last.then(() => this.#state.apply(changes));
  }

  /** Call only when nobody writes to the disk. */
  async ready(previousOwner: PreviousOwner): Promise<ReadyState> {
    this.follow(true);
    const { revision, ...facts } = factsOf(this.#disk);
    await this.#last;
    const published = this.publisher.versions.some((version) => version > 0);
    insist(!published, () => 'A state that is followed has published a document');
    return { state: this.#state, revision, facts: { ...facts, previousOwner } };
  }
}

function seenOn({ subjects, nonces, audit }: MemoryDisk, liveness: Seen['liveness']): Seen {
  return {
    subjects: new Map(subjects),
    nonces: new Map(nonces),
    liveness: new Map(liveness),
    entries: audit.length,
  };
}

function factsOf({ revision, audit, unstoredTimes, forgottenTimes }: MemoryDisk) {
  return {
    revision,
    unstoredTimes,
    forgottenTimes,
    auditLength: audit.length,
    auditHead: audit.at(-1)?.hash ?? GENESIS_HASH,
  };
}
