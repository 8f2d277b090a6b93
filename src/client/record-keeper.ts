/** Stores the records of an agent; what cannot be stored, on a full disk for example, is held and stored later. */
import type { AgentRecord, AgentStorage } from './agent-storage.ts';

export interface RecordKeeper {
  /** Resolves when it was tried. */
  keep(name: AgentRecord, text: string): Promise<void>;
  /** Tries again what could not be stored so far; resolves when it was tried. */
  retry(): Promise<void>;
  /** Why not all is stored, by the last attempt; null when it is. */
  problem(): string | null;
}

export interface RecordKeeperOptions {
  readonly storage: AgentStorage;
  stored(name: AgentRecord): void;
  /** The problem is new, or over: null. */
  changed(problem: string | null): void;
}

export function createRecordKeeper({
  storage,
  stored,
  changed,
}: RecordKeeperOptions): RecordKeeper {
  const held = new Map<AgentRecord, string>();
  let problem: string | null = null;

  async function retry(): Promise<void> {
    const before = problem;
    problem = null;
    for (const [name, text] of held) {
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
    async keep(name, text) {
      held.set(name, text);
      await retry();
    },
    retry,
    problem: () => problem,
  };
}
