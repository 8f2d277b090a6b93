/**
 * The revocation list on the link: sent whole once, then as the additions of each version, and shown only as it was
 * signed.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crlEntry, revisionDocument } from '../src/authority/lists/crl.ts';
import {
  type CrlHead,
  createListContent,
  LIST_PERIOD,
  type ListEntry,
} from '../src/authority/lists/list-document.ts';
import { crlDigest } from '../src/authority/lists/stored-lists.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import type { PublishedDocument } from '../src/protocol/contract/documents.ts';
import {
  createDocumentPublisher,
  type DocumentPublisher,
} from '../src/protocol/contract/publications.ts';
import { soleSigner } from '../src/protocol/records/signed-record.ts';
import type { FromWriter, GrownList, SentDocument } from '../src/server/link/messages.ts';
import { createReceivedList } from '../src/server/link/received-list.ts';
import { grownSince, sentListOf } from '../src/server/link/sent-list.ts';
import type { Wires } from '../src/server/link/wires.ts';
import { HOUR } from './support/clock.ts';
import {
  createTestClient,
  keptLog,
  LINK_SIGNER,
  openTestHost,
  startServing,
  WIRES,
} from './support/link.ts';
import { newKey } from './support/requests.ts';

const SIGNER = soleSigner(LINK_SIGNER, 'na');
const NEXT_SIGNER = soleSigner(newKey(), 'next');

test('a follower has every version byte for byte, although only the first was sent whole', async () => {
  await using link = await linked();
  const list = signedList(5000);
  await link.shows(publishNext(link, list, 0));
  assert.ok(link.sent.splice(0).every((sent) => 'bytes' in sent));
  for (const added of [1, 0, 3, 500, 1]) {
    const version = publishNext(link, list, added);
    await link.shows(version);
    const [sent] = link.sent.splice(0);
    assert.ok(sent !== undefined && 'base' in sent);
    assert.ok(sent.added.length <= added * 260, `${sent.added.length} bytes for ${added} entries`);
  }
});

test('a version issued by another key is an ordinary version, and so is the return to the former key', async () => {
  await using link = await linked();
  const list = signedList(20);
  await link.shows(publishNext(link, list, 1));
  await link.shows(publishNext(link, list, 1));
  link.sent.length = 0;
  for (const issuer of [NEXT_SIGNER, NEXT_SIGNER, SIGNER]) {
    for (const added of [0, 2]) await link.shows(publishNext(link, list, added, issuer));
  }
  assert.ok(link.sent.every((sent) => 'base' in sent));
  assert.doesNotMatch(link.log(), /has ended/);
});

test('versions that are published faster than they are sent are sent as one', async () => {
  await using link = await linked();
  const list = signedList(3);
  await link.shows(publishNext(link, list, 0));
  link.sent.length = 0;
  for (let version = 0; version < 5; version += 1) publish(link.ours, list.next(2));
  await link.shows(publishNext(link, list, 1));
  const [sent, ...more] = link.sent;
  assert.ok(sent !== undefined && 'base' in sent);
  assert.deepEqual(more, []);
});

test('the first entry of an empty list is handled like those after it', async () => {
  await using link = await linked();
  const list = signedList(0);
  for (const added of [0, 1, 1, 2]) await link.shows(publishNext(link, list, added));
});

test('a list that does not match what was signed is not shown, and is requested whole again', async () => {
  await using link = await linked();
  const list = signedList(10);
  await link.shows(publishNext(link, list, 1));
  for (const alter of [
    (grown: GrownList) => ({ ...grown, added: grown.added.subarray(1) }),
    (grown: GrownList) => ({ ...grown, base: '"of another version"' }),
  ]) {
    link.sent.length = 0;
    link.alter = alter;
    const version = publishNext(link, list, 1);
    await link.shows(version);
    const [grown, whole] = link.sent;
    assert.ok(grown !== undefined && 'base' in grown);
    assert.ok(whole !== undefined && 'bytes' in whole);
    await link.shows(publishNext(link, list, 1));
  }
  assert.deepEqual(
    link.shown.filter((etag) => !list.etags.has(etag)),
    [],
    'nothing was shown but what was signed',
  );
  assert.match(link.log(), /the extended revocation list is not the signed one/);
  assert.match(link.log(), /extends a version that was not received/);
});

test('the memory of a version is reused once no edge reads it any more', async () => {
  const list = signedList(100);
  const published: PublishedDocument[] = [];
  const caughtUp: (() => void)[] = [];
  const received = createReceivedList({
    publish: (document) => published.push(document),
    edgesCaughtUp: () => new Promise((resolve) => caughtUp.push(resolve)),
  });
  let before = list.next(0).document;
  received.begin(before);
  function grow(): PublishedDocument {
    const { document, revision } = list.next(1);
    const sent = sentListOf(before);
    const grown = sent && grownSince(sent, document);
    assert.ok(grown);
    received.grow(grown, revision);
    before = document;
    return document;
  }
  const memories = () => new Set(published.map(({ bytes }) => bytes.buffer)).size;
  const expected: PublishedDocument[] = [];
  for (let version = 0; version < 4; version += 1) expected.push(grow());
  for (const [at, { bytes }] of expected.entries()) {
    assert.deepEqual(Buffer.from(published[at]?.bytes ?? []), Buffer.from(bytes));
  }
  assert.equal(memories(), 4, 'edges may be reading them');
  for (let version = 0; version < 10; version += 1) {
    for (const resolve of caughtUp.splice(0)) resolve();
    await Promise.resolve();
    const { bytes } = grow();
    assert.deepEqual(Buffer.from(published.at(-1)?.bytes ?? []), Buffer.from(bytes));
  }
  assert.equal(memories(), 4);
});

interface Version {
  readonly document: PublishedDocument;
  readonly revision: PublishedDocument;
}

/** A list as the authority signs it. */
function signedList(length: number) {
  const content = createListContent('crl');
  const all: ListEntry[] = [];
  const etags = new Set<string>();
  let sequence = 0;

  function add(count: number): void {
    const added: ListEntry[] = Array.from({ length: count }, (_, at) =>
      crlEntry(SIGNER.publicKey, `certificate-${all.length + at}`, HOUR, 'unspecified'),
    );
    all.push(...added);
    content.add(added);
  }

  add(length);
  return {
    etags,
    next(count: number, issuer = SIGNER): Version {
      add(count);
      sequence += 1;
      const head: CrlHead = {
        form: 'crl',
        sequence,
        crlId: systemRuntime.uuid(),
        issuedAt: HOUR,
        nextUpdate: HOUR + LIST_PERIOD,
        digest: crlDigest(issuer.publicKey, all),
      };
      const document = content.document(head, issuer);
      etags.add(document.etag);
      return { document, revision: revisionDocument(document, head, issuer) };
    },
  };
}

function publish(publisher: DocumentPublisher, { document, revision }: Version): void {
  publisher.publish('crl', document);
  publisher.publish('crl_revision', revision);
}

function publishNext(
  { ours }: { readonly ours: DocumentPublisher },
  list: ReturnType<typeof signedList>,
  added: number,
  issuer = SIGNER,
): PublishedDocument {
  const version = list.next(added, issuer);
  publish(ours, version);
  return version.document;
}

/** A writer, and a follower that links again whenever its link has ended. */
async function linked() {
  const [ours, theirs] = [createDocumentPublisher(), createDocumentPublisher()];
  const { logger, text } = keptLog();
  const shown: string[] = [];
  let newest: PublishedDocument | null = null;
  theirs.follow(({ name, document }) => {
    if (name !== 'crl') return;
    shown.push(document.etag);
    newest = document;
  });
  const state = {
    ours,
    shown,
    /** The lists that were sent, in order. */
    sent: [] as Exclude<SentDocument['document'], null>[],
    /** Alters the next list of additions in transit, once. */
    alter: null as ((grown: GrownList) => GrownList) | null,
    log: text,
    /** Resolves when the follower has this version; checks that its bytes are the same. */
    async shows({ bytes, etag }: PublishedDocument): Promise<void> {
      while (newest?.etag !== etag) {
        client.follow({ epoch: 1, link: host.address });
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      assert.deepEqual(Buffer.from(newest.bytes), Buffer.from(bytes));
    },
    async [Symbol.asyncDispose]() {
      client.close();
      host.close();
    },
  };

  function onTheWay(message: FromWriter): FromWriter {
    if (message.type !== 'answers' || message.news === null) return message;
    const documents = message.news.documents.map((one) => {
      if (one.name !== 'crl' || one.document === null) return one;
      state.sent.push(one.document);
      const { alter } = state;
      if (alter === null || !('base' in one.document)) return one;
      state.alter = null;
      return { ...one, document: alter(one.document) };
    });
    return { ...message, news: { ...message.news, documents } };
  }

  const wires = watched(WIRES, onTheWay);
  const host = await openTestHost({ publisher: ours, logger, wires });
  startServing(host, 1, () => ({ ok: true, json: '{}' }));
  const client = createTestClient({ publisher: theirs, logger });
  return state;
}

/** Passes everything that the listening side sends through `onTheWay`. */
function watched(wires: Wires, onTheWay: (message: FromWriter) => FromWriter): Wires {
  return {
    ...wires,
    listen: (address, accept) =>
      wires.listen(address, (wire) =>
        accept({
          ...wire,
          open(silence, listener) {
            const frames = wire.open<FromWriter, never>(silence, listener as never);
            return {
              ...frames,
              send: (message: unknown) => frames.send(onTheWay(message as FromWriter)),
            } as never;
          },
        }),
      ),
  };
}
