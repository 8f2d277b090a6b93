/** The names of nodes in entries of the audit log that are read without those that say the names. */
import type { NamedEntry } from '../protocol/entry-names.ts';
import type { OperatorClient } from './operator-client.ts';

type Client = Pick<OperatorClient, 'listCertificates'>;

/** Adds the names that nodes have now, each asked once, unless earlier entries have said them. */
export function nodeNames(client: Client): (entries: readonly NamedEntry[]) => Promise<void> {
  const asked = new Map<string, Promise<string | undefined>>();

  return async (entries) => {
    await Promise.all(entries.map(addTo));
  };

  async function addTo({ entry: { event_type: type, details }, names }: NamedEntry): Promise<void> {
    // The name that a node has now is not the one that it had before it was named.
    if (type === 'node_described') return;
    for (const [filter, id] of [
      ['cert_id', details.cert_id],
      ['key', details.node_public_key],
    ] as const) {
      if (typeof id !== 'string' || names.has(id)) continue;
      const known = asked.get(id) ?? nameNow({ [filter]: id });
      asked.set(id, known);
      const name = await known;
      if (name !== undefined) names.set(id, name);
    }
  }

  async function nameNow(filter: { cert_id?: string; key?: string }): Promise<string | undefined> {
    const { certificates } = await client.listCertificates({ ...filter, limit: 1 });
    return certificates[0]?.name;
  }
}
