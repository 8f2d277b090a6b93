/** The authority's process, which can be started repeatedly on one disk. */
import type { JsonObject } from '../../src/base/json/value.ts';
import type { AuthoritySigner } from '../../src/base/signer/authority-signer.ts';
import type { NetworkTrust } from '../../src/client/followed-keys.ts';
import type { KnownAuthorityKeys } from '../../src/edge/auth/known-keys.ts';
import type { HeartbeatSessions } from '../../src/edge/auth/session.ts';
import { createDocumentPublisher, documentText } from '../../src/protocol/contract/documents.ts';
import type { Store } from '../../src/store/store.ts';
import { type OpenAuthority, open } from './authority-calls.ts';
import { edgeOf } from './edge.ts';
import { KeyFolder } from './key-folder.ts';
import { emptyDisk } from './memory-disk.ts';
import { type MemoryStore, openMemoryStore } from './memory-store.ts';
import type { PublishedDocuments } from './published-documents.ts';
import type { SimulatedRuntime } from './runtime.ts';
import { Understudy } from './understudy.ts';

/** A defect planted around the authority. */
export interface Defect {
  readonly store?: (store: MemoryStore) => Store;
  readonly signer?: (signer: AuthoritySigner) => AuthoritySigner;
  readonly edge?: (keys: KnownAuthorityKeys) => KnownAuthorityKeys;
  readonly sessions?: (sessions: HeartbeatSessions) => HeartbeatSessions;
  /** What readers receive instead of the document. */
  readonly published?: (name: string, record: JsonObject) => JsonObject;
  /** A client that follows the keys. */
  readonly client?: (create: () => NetworkTrust) => NetworkTrust;
  readonly authority?: (authority: OpenAuthority) => OpenAuthority;
}

export interface ProcessOptions {
  readonly runtime: SimulatedRuntime;
  /** Receives what is published. */
  readonly documents: PublishedDocuments;
  readonly defect: Defect;
  /** Whether each start continues with a followed state instead of reading it. */
  readonly takesOver: boolean;
  /** Called when the service follows a clock that was set. */
  readonly clockSet: (byMs: number) => void;
}

export class Process {
  readonly disk = emptyDisk();
  readonly folder = new KeyFolder();
  store!: MemoryStore;
  edge!: KnownAuthorityKeys;
  /** The edge's sessions. */
  sessions!: HeartbeatSessions;
  /** Why the authority gave up; null while it runs. */
  failure: unknown = null;
  readonly #runtime: SimulatedRuntime;
  readonly #documents: PublishedDocuments;
  readonly #defect: Defect;
  readonly #clockSet: (byMs: number) => void;
  /** Null if each start reads the state. */
  #understudy: Understudy | null = null;

  constructor({ runtime, documents, defect, takesOver, clockSet }: ProcessOptions) {
    this.#runtime = runtime;
    this.#documents = documents;
    this.#defect = defect;
    this.#clockSet = clockSet;
    if (takesOver) this.#understudy = this.#newUnderstudy();
  }

  /** Opens the state that the last process left. */
  begin(): Promise<OpenAuthority> {
    const { lastOwner } = this.disk;
    const ready = this.#understudy?.ready(lastOwner) ?? null;
    const documents = this.#understudy?.publisher ?? createDocumentPublisher();
    const signer = this.#understudy?.signer ?? this.#newSigner();
    const memory = openMemoryStore(this.disk, 'by_hand');
    this.store = memory;
    if (this.#understudy !== null) this.#understudy = this.#newUnderstudy();
    this.failure = null;
    this.#runtime.restart(this.#clockSet);
    const { genesis } = this.folder;
    const edge = edgeOf({
      publisher: documents,
      signer,
      genesis,
      runtime: this.#runtime,
      sessions: this.#defect.sessions,
    });
    this.edge = this.#defect.edge?.(edge.authorityKeys) ?? edge.authorityKeys;
    this.sessions = edge.sessions;
    documents.follow(({ name, document }) => {
      const record = JSON.parse(documentText(document)) as JsonObject;
      this.#documents.take(name, this.#defect.published?.(name, record) ?? record);
    });
    const surroundings = {
      signer,
      folder: this.folder,
      store: this.#defect.store?.(memory) ?? memory,
      runtime: this.#runtime,
      publisher: documents,
      fatal: (_where: string, cause: unknown) => {
        this.failure = cause;
      },
    };
    const opening = open(surroundings, ready);
    opening.catch(() => undefined);
    return opening;
  }

  #newSigner(): AuthoritySigner {
    const signer = this.folder.signer();
    return this.#defect.signer?.(signer) ?? signer;
  }

  #newUnderstudy(): Understudy {
    return new Understudy(this.disk, this.#runtime, this.folder, this.#newSigner());
  }

  /** The process that will take over looks at the disk. */
  follow(withLiveness: boolean): void {
    this.#understudy?.follow(withLiveness);
  }
}
