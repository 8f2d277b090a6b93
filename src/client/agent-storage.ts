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
