/**
 * `agent` is the state of the agent, for local programs; there are `authority-keys` once its key was ever replaced;
 * `request` is the stamp of the last request for a certificate, to send it again if its answer is lost.
 */
export type AgentRecord =
  | 'genesis'
  | 'authority-keys'
  | 'crl'
  | 'policy'
  | 'certificate'
  | 'agent'
  | 'request';

/** What a node agent stores between runs: texts by name. Each write replaces the text completely or not at all. */
export interface AgentStorage {
  /** Null when the record does not exist. Rejects when it cannot be read. */
  read(name: AgentRecord): Promise<string | null> | string | null;
  write(name: AgentRecord, text: string): Promise<void> | void;
}

interface RecordKeeperOptions {
  readonly storage: AgentStorage;
  stored(name: AgentRecord): void;
  /** Called when a problem begins or changes, and with null when it is over. */
  changed(problem: string | null): void;
}

/** Stores the records of an agent. Records that cannot be stored, for example on a full disk, are retried later. */
export function createRecordKeeper({ storage, stored, changed }: RecordKeeperOptions) {
  const held = new Map<AgentRecord, string>();
  let problem: string | null = null;

  async function retry(): Promise<void> {
    const before = problem;
    problem = null;
    for (const [name, text] of held) {
      // Only the statements show that what an earlier key signed belongs to the network of this genesis.
      if (name === 'genesis' && held.has('authority-keys')) continue;
      try {
        await storage.write(name, text);
        held.delete(name);
        stored(name);
      } catch (error) {
        problem = error instanceof Error ? error.message : String(error);
      }
    }
    if ((problem === null) !== (before === null)) changed(problem);
  }

  return {
    /** Resolves after the attempt, even if it failed. */
    async keep(name: AgentRecord, text: string): Promise<void> {
      held.set(name, text);
      await retry();
    },
    /** Retries the records that could not be stored; resolves after the attempt. */
    retry,
    /** Why the last attempt failed; null when everything is stored. */
    problem: (): string | null => problem,
  };
}
