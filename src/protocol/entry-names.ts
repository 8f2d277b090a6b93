/** The names of what entries of the audit log are about: most entries have only ids, and earlier ones say the names. */
import type { JsonObject } from '../base/json/value.ts';
import type { AuditSaid } from './audit-sentence.ts';

/** From the ids and keys in an entry to names. */
export type NamesIn = Map<string, string>;

export interface NamedEntry<Entry extends AuditSaid = AuditSaid> {
  readonly entry: Entry;
  readonly names: NamesIn;
}

/** Reads entries in their order; each gets the names as they were before it, and its own. */
export function createEntryNames() {
  const names = new Map<string, string>();
  const keys = new Map<string, string>();

  return <Entry extends AuditSaid>(entry: Entry): NamedEntry<Entry> => {
    const { event_type: type, details } = entry;
    const { node_public_key: key } = details;
    if (typeof key === 'string') for (const id of certificatesIn(details)) keys.set(id, key);
    // What a rename is about is called by its earlier name.
    if (type !== 'node_described') learn(entry);
    const known: NamesIn = new Map();
    for (const id of textsIn(details)) {
      const name = names.get(id) ?? names.get(keys.get(id) ?? '');
      if (name !== undefined) known.set(id, name);
    }
    if (type === 'node_described') learn(entry);
    return { entry, names: known };
  };

  function learn({ event_type: type, details }: AuditSaid): void {
    const [named, by] = NAMING[type] ?? [];
    if (named === undefined || by === undefined) return;
    const [id, name] = [details[named], details[by]];
    if (typeof id !== 'string') return;
    if (typeof name === 'string') names.set(id, name);
    else if (name === null) names.delete(id);
  }
}

/** Which events say what something is called: the member with its id, and the one with its name. */
const NAMING: Readonly<Record<string, readonly [id: string, name: string]>> = {
  invite_created: ['token_fingerprint', 'name'],
  certificate_issued: ['node_public_key', 'name'],
  node_described: ['node_public_key', 'name'],
  recognition_treaty_issued: ['treaty_id', 'subject_sovereign_id'],
  recognition_treaty_followed: ['successor_treaty_id', 'subject_sovereign_id'],
  membership_attestation_issued: ['attestation_id', 'subject_id'],
};

function certificatesIn({ cert_id, old_cert_id, new_cert_id }: JsonObject): string[] {
  return [cert_id, old_cert_id, new_cert_id].filter((id) => typeof id === 'string');
}

function textsIn(details: JsonObject): string[] {
  return Object.values(details).filter((value) => typeof value === 'string');
}
