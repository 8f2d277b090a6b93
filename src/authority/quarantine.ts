/**
 * An authority whose state was rolled back [backup-9]. It decides and changes nothing, and publishes only lists that
 * are provably the newest. Every call is refused until the state is restored.
 */
import type { RecordSigner } from '../base/crypto/primitives.ts';
import type { Answer } from '../protocol/contract/answers.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import type { StateHead } from '../protocol/records/state-head.ts';
import type { Store } from '../store/store.ts';
import { createListContent } from './lists/list-document.ts';
import { createStoredLists } from './lists/stored-lists.ts';
import type { OpenAuthority } from './open.ts';

export interface QuarantineOptions {
  readonly store: Store;
  /** The sequences of the newest lists ever published, according to each kept head; -1 matches no list. */
  readonly heads: readonly Pick<StateHead, 'crl_sequence' | 'feed_sequence'>[];
  readonly signer: RecordSigner;
  readonly networkName: string;
  readonly publisher: DocumentPublisher;
  /** The reason that `/readyz` reports. */
  readonly reason: string;
}

export async function openQuarantine(options: QuarantineOptions): Promise<OpenAuthority> {
  const { store, reason } = options;
  await publishNewest(options);
  const refused: Answer = { ok: false, refusal: 'restore_pending', details: { reason } };
  const nothing = () => Promise.resolve();
  return {
    call: () => refused,
    recordedUntil: 0,
    flush: nothing,
    sweep: nothing,
    renewLists: nothing,
    keepKeys: nothing,
    judgePosture: nothing,
    clockSet: () => undefined,
    seal: () => undefined,
    // Leaves the state unchanged.
    close: () => store.abandon(),
    abandon: () => store.abandon(),
  };
}

/** A list is the newest if all heads name its sequence number as the last one. */
async function publishNewest(options: QuarantineOptions): Promise<void> {
  const { store, heads, signer, networkName, publisher } = options;
  const lists = createStoredLists(signer.publicKey);
  const contents = await store.load();
  for await (const batch of contents.subjects) for (const subject of batch) lists.add(subject);
  await contents.dispose();
  if (lists.problem() !== null) return;
  const crl = lists.crl();
  if (crl !== null && heads.every((head) => head.crl_sequence === crl.sequence)) {
    const content = createListContent('crl');
    content.add(lists.crlEntries());
    publisher.publish('crl', content.document({ form: 'crl', ...crl }, signer));
  }
  const feed = lists.feeds().get(networkName);
  if (feed?.version && heads.every((head) => head.feed_sequence === feed.version?.sequence)) {
    const content = createListContent('feed');
    content.add(feed.entries);
    publisher.publish(
      'sovereign_revocation_feed',
      content.document({ form: 'feed', ...feed.version }, signer),
    );
  }
}
