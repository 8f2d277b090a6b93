/** What a commit changes in the public documents. */
import type { Policy } from '../../../machines/policy.ts';
import { jsonText } from '../../base/json/write.ts';
import { GRAPH_DOCUMENTS, publishedDocument } from '../../protocol/contract/documents.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { SubjectWrite } from '../../store/store.ts';

/** Publishes a policy that has become active, and withdraws the documents of the graph: the next reader waits for new ones. */
export function publishChanges(
  publisher: DocumentPublisher,
  writes: readonly SubjectWrite[],
): void {
  for (const { kind, snapshot } of writes) {
    if (kind === 'policy') publishIfActive(publisher, snapshot);
    else if (kind === 'recognition-treaty' || kind === 'imported-revocation') {
      for (const name of GRAPH_DOCUMENTS) publisher.withdraw(name);
    }
  }
}

export function publishIfActive(
  publisher: DocumentPublisher,
  { value, context }: SubjectWrite['snapshot'],
): void {
  if (value !== 'active') return;
  publisher.publish('policy', publishedDocument(jsonText((context as Policy).manifest)));
}
