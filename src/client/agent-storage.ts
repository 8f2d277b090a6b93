/** What a node agent keeps between two runs: texts by name, each either as it was or wholly replaced. */
export const AGENT_RECORDS = ['genesis', 'crl', 'policy', 'certificate', 'agent'] as const;

/** `agent` is the state of the agent, for local programs. */
export type AgentRecord = (typeof AGENT_RECORDS)[number];

export interface AgentStorage {
  /** Null when there is none. Rejects when it cannot be read. */
  read(name: AgentRecord): Promise<string | null> | string | null;
  write(name: AgentRecord, text: string): Promise<void> | void;
}
