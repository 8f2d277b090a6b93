/** Long lists are rendered on a separate thread; in this test, a list counts as long if it has a few entries. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import {
  LIST_PERIOD,
  type ListEntry,
  type ListForm,
  type ListHead,
} from '../src/authority/lists/list-document.ts';
import {
  createListRendering,
  createListThreads,
  type ListThreading,
} from '../src/authority/lists/list-rendering.ts';
import { longTextSignerFromSeed, signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { parseJsonBytes } from '../src/base/json/bytes.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import type { KeySource } from '../src/base/signer/authority-signer.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { verifyText } from '../src/client/keys.ts';
import type { PublishedDocument } from '../src/protocol/contract/documents.ts';
import { soleSigner } from '../src/protocol/records/signed-record.ts';
import { startListThread } from '../src/server/threads/list-thread.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { get, joinedNodes, operate, type TestNode } from './support/requests.ts';
import { loadAll } from './support/stored.ts';
import { openStoreOf } from './support/test-stores.ts';

const DAY = 24 * HOUR;
const NOW = Date.parse('2026-01-01T00:00:00Z');

/** A separate renderer, with a list that the test extends. */
function rendererOf(
  t: { after(end: () => Promise<void>): void },
  form: ListForm,
  seed: Buffer,
  how: Rendering,
) {
  const { publicKey, sign } = signerFromSeed(seed);
  const keyId = form === 'feed' ? publicKey : 'na-2026';
  const signer = { publicKey, keyId, sign, previous: null };
  const startThread = () => startListThread(signer, () => seedsOf(seed), failed);
  const threading: ListThreading | null =
    how === 'at once'
      ? null
      : { from: 0, startThread, notStarted: failed, edgesCaughtUp: how.edgesCaughtUp };
  const threads = threading === null ? null : createListThreads(threading);
  const shown: PublishedDocument[] = [];
  const show = (document: PublishedDocument) => shown.push(document);
  const renderer = createListRendering({ form, signer, threads, show });
  renderer.add([]);
  t.after(async () => threads?.close());
  let sequence = 0;
  return {
    renderer,
    revoke(count: number): void {
      const entries: ListEntry[] = [];
      for (let i = 0; i < count; i += 1) {
        sequence += 1;
        entries.push({ id: `id-${(sequence * 7919) % 10_007}`, text: entryText(form, sequence) });
      }
      renderer.add(entries);
    },
    async publish(): Promise<PublishedDocument> {
      renderer.render(headOf(form, sequence));
      await renderer.settled();
      const document = shown.at(-1);
      assert.ok(document);
      return document;
    },
  };
}

function entryText(form: ListForm, number: number): string {
  const reason = number % 2 === 0 ? 'left' : 'Zürich ✓';
  return canonicalJson(form === 'feed' ? reason : { certificate_id: `c-${number}`, reason });
}

function headOf(form: ListForm, sequence: number): ListHead {
  const head = { sequence, issuedAt: NOW };
  return form === 'crl'
    ? { form, ...head, crlId: `id-${sequence}`, nextUpdate: NOW + DAY, digest: '' }
    : { form, ...head, feedId: `id-${sequence}`, issuer: 'Zürich' };
}

type Rendering = 'at once' | { readonly edgesCaughtUp: () => Promise<void> };

function seedsOf(seed: Buffer): KeySource {
  return { kind: 'seeds', seeds: [seed] };
}

function failed(cause: unknown): never {
  throw cause;
}

suite('the thread that renders long lists', () => {
  for (const form of ['crl', 'feed'] as const) {
    test(`produces the exact bytes and validator of a ${form} that is rendered directly, signed as canonical JSON`, async (t) => {
      const seed = randomBytes(32);
      const here = rendererOf(t, form, seed, 'at once');
      const threaded = rendererOf(t, form, seed, { edgesCaughtUp: () => Promise.resolve() });
      await threaded.renderer.ready();
      for (const more of [0, 1, 1, 2000, 3, 1]) {
        here.revoke(more);
        threaded.revoke(more);
        const [expected, made] = [await here.publish(), await threaded.publish()];
        assert.deepEqual(Buffer.from(made.bytes), Buffer.from(expected.bytes));
        assert.equal(made.etag, expected.etag);
        assert.equal(made.freshUntil, expected.freshUntil);
        assert.equal(made.freshUntil, NOW + LIST_PERIOD / 2);
      }
      const text = Buffer.from((await threaded.publish()).bytes).toString('utf8');
      const list = JSON.parse(text);
      assert.equal(canonicalJson(parseJsonBytes(Buffer.from(text))), text);
      const signed = canonicalJson(list, 'signatures');
      const { publicKey } = signerFromSeed(seed);
      assert.equal(verifyText(publicKey, signed, list.signatures[0].sig), true);
      if (form === 'feed') {
        assert.deepEqual(list.revoked_attestation_ids, list.revoked_attestation_ids.toSorted());
        assert.deepEqual(Object.keys(list.revocation_reasons), list.revoked_attestation_ids);
      }
    });
  }

  test('never overwrites a document that an edge may still be reading', async (t) => {
    let caughtUp: () => void = () => undefined;
    const threaded = rendererOf(t, 'crl', randomBytes(32), {
      edgesCaughtUp: () => new Promise((resolve) => (caughtUp = resolve)),
    });
    await threaded.renderer.ready();
    threaded.revoke(1);
    const first = await threaded.publish();
    const kept = Buffer.from(first.bytes).toString('latin1');
    for (let i = 0; i < 4; i += 1) {
      threaded.revoke(1);
      await threaded.publish();
      assert.equal(Buffer.from(first.bytes).toString('latin1'), kept);
    }
    threaded.revoke(1);
    const replaced = await threaded.publish();
    threaded.revoke(1);
    await threaded.publish();
    caughtUp();
    await new Promise(setImmediate);
    threaded.revoke(1);
    await threaded.publish();
    const again = Buffer.from(replaced.bytes).toString('latin1');
    assert.match(again, /"crl_id":"id-8"/, 'once none is reading it, its memory is used again');
  });

  test('reports a failure', async () => {
    const seed = randomBytes(32);
    const signer = soleSigner(signerFromSeed(seed));
    const problem = await new Promise<unknown>((resolve) => {
      const thread = startListThread(signer, () => seedsOf(seed), resolve);
      void thread.ready.then(() => thread.open('feed').render(headOf('crl', 1)));
    });
    assert.match(String(problem), /not that of a feed/);
  });

  test('that could not start is reported, not missed, and is started again by a list twice as long', async (t) => {
    const seed = randomBytes(32);
    const signer = soleSigner(signerFromSeed(seed));
    /** A thread does not start with a seed of the wrong length. */
    const seeds = [Buffer.alloc(1), seed];
    const problems: unknown[] = [];
    const threads = createListThreads({
      from: 3,
      startThread() {
        return startListThread(signer, () => seedsOf(seeds.shift() ?? seed), failed);
      },
      notStarted: (cause) => problems.push(cause),
      edgesCaughtUp: () => Promise.resolve(),
    });
    t.after(() => threads.close());
    const shown: PublishedDocument[] = [];
    const renderer = createListRendering({
      form: 'feed',
      signer,
      threads,
      show: (document) => shown.push(document),
    });
    const grow = (from: number, to: number) => {
      for (let id = from; id <= to; id += 1) {
        renderer.add([{ id: `id-${id}`, text: entryText('feed', id) }]);
      }
    };
    grow(1, 3);
    await renderer.ready();
    assert.equal(problems.length, 1);
    grow(4, 5);
    renderer.render(headOf('feed', 5));
    assert.match(
      Buffer.from(shown.at(-1)?.bytes ?? []).toString(),
      /"id-5"/,
      'rendered here, at once',
    );
    assert.equal(seeds.length, 1, 'not tried again by each entry');
    grow(6, 6);
    await renderer.ready();
    assert.equal(seeds.length, 0);
    renderer.render(headOf('feed', 6));
    await renderer.settled();
    assert.match(Buffer.from(shown.at(-1)?.bytes ?? []).toString(), /"id-1"[\s\S]*"id-6"/);
    assert.equal(problems.length, 1);
  });

  test('signs as libsodium does', () => {
    for (const length of [0, 1, 64, 100_000]) {
      const [seed, text] = [randomBytes(32), randomBytes(length)];
      assert.equal(longTextSignerFromSeed(seed).sign(text), signerFromSeed(seed).sign(text));
    }
  });
});

suite('a long list', () => {
  for (const listThreadFrom of [0, 3]) {
    const when = listThreadFrom === 0 ? 'from the start' : 'once the list is long';
    test(`is current with each revocation, ${when}, and the same after a restart`, async () => {
      await using na = await startTestAuthority({ listThreadFrom });
      const nodes = await joinedNodes(na, 8);
      for (const [index, node] of nodes.entries()) {
        const answer = await revoke(na, node);
        assert.equal(answer.body.crl_sequence, index + 1);
        assert.equal(answer.body.revoked_count, index + 1);
        const { body } = await get(na, '/crl');
        assert.equal(body.sequence, index + 1);
        assert.deepEqual(idsOn(body), nodes.slice(0, index + 1).map(idOf));
      }
      const { text } = await get(na, '/crl');
      await using again = await na.restart();
      assert.equal((await get(again, '/crl')).text, text);
    });
  }

  test('includes each of 30 simultaneous revocations when it is acknowledged', async () => {
    await using na = await startTestAuthority({ listThreadFrom: 0 });
    const nodes = await joinedNodes(na, 30);
    const seen = new Map<number, string>();
    const answers = await Promise.all(
      nodes.map(async (node) => {
        const { body } = await revoke(na, node);
        const { body: crl, text } = await get(na, '/crl');
        assert.ok(crl.sequence >= body.crl_sequence);
        assert.ok(idsOn(crl).includes(node.certId));
        assert.equal(seen.get(crl.sequence) ?? text, text, 'a sequence names one content');
        seen.set(crl.sequence, text);
        return { ...node, sequence: body.crl_sequence as number };
      }),
    );
    const order = answers.toSorted((a, b) => a.sequence - b.sequence);
    assert.deepEqual(
      order.map(({ sequence }) => sequence),
      nodes.map((_, index) => index + 1),
    );
    for (const [sequence, text] of seen) {
      assert.deepEqual(idsOn(JSON.parse(text)), order.slice(0, sequence).map(idOf));
    }
    await using again = await na.restart();
    assert.equal((await get(again, '/crl')).text, seen.get(30));
  });

  test('is reissued once when half its time is over, however many clients ask', async () => {
    await using na = await startTestAuthority({ listThreadFrom: 0 });
    const nodes = await joinedNodes(na, 3);
    for (const node of nodes) await revoke(na, node);
    const before = (await get(na, '/crl')).body;
    na.clock.advance(DAY / 2);
    const reads = await Promise.all(Array.from({ length: 20 }, () => get(na, '/crl')));
    const [first] = reads;
    for (const { text } of reads) assert.equal(text, first?.text);
    assert.equal(first?.body.sequence, 4);
    assert.equal(first?.body.issued_at, formatInstant(na.clock.now()));
    assert.deepEqual(first?.body.revoked_certificates, before.revoked_certificates);
  });

  test('keeps everything acknowledged when the authority stops while it is rendered', async () => {
    await using na = await startTestAuthority({ listThreadFrom: 0 });
    const nodes = await joinedNodes(na, 15);
    const acknowledged: string[] = [];
    const revocations = nodes.map(async (node) => {
      const answer = await revoke(na, node).catch(() => undefined);
      if (answer?.status === 200) acknowledged.push(node.certId);
    });
    await Promise.race(revocations);
    await using again = await na.restart();
    await Promise.all(revocations);
    const { body, text } = await get(again, '/crl');
    assert.equal(body.sequence, body.revoked_certificates.length);
    assert.deepEqual(
      acknowledged.filter((id) => !idsOn(body).includes(id)),
      [],
    );
    await using third = await again.restart();
    assert.equal((await get(third, '/crl')).text, text);
  });

  for (const listThreadFrom of [0, 1000]) {
    const where = listThreadFrom === 0 ? 'a thread' : 'no thread';
    test(`a start is refused, with ${where}, if the entries are not those that were signed`, async () => {
      await using na = await startTestAuthority({ listThreadFrom });
      const nodes = await joinedNodes(na, 2);
      for (const node of nodes) await revoke(na, node);
      const before = await get(na, '/crl');
      const certId = nodes[1]?.certId ?? '';
      await na.stop();
      await alterReason(na.dataDir, certId, 'superseded');
      await assert.rejects(na.restart(), {
        message:
          /damaged: its revoked certificates are not those of the published revocation list; /,
      });
      await alterReason(na.dataDir, certId, 'unspecified');
      await using again = await na.restart();
      assert.equal((await get(again, '/crl')).text, before.text);
    });
  }
});

function revoke(na: TestAuthority, node: TestNode) {
  return operate(na, '/admin/revoke', { cert_id: node.certId });
}

function idOf({ certId }: TestNode): string {
  return certId;
}

function idsOn(crl: { revoked_certificates: { certificate_id: string }[] }): string[] {
  return crl.revoked_certificates.map(({ certificate_id }) => certificate_id);
}

/** Makes a change that only an attacker or damage can cause. */
async function alterReason(dataDir: string, certificateId: string, revocationReason: string) {
  const store = await openStoreOf({ dataDir });
  const { subjects } = await loadAll(store);
  const found = subjects.find(({ kind, id }) => kind === 'certificate' && id === certificateId);
  assert.ok(found);
  const { version, snapshot } = found;
  const context = { ...snapshot.context, revocationReason };
  const write = {
    ...found,
    version: version + 1,
    replaces: version,
    snapshot: { ...snapshot, context },
  };
  await store.commit({ subjects: [write], removals: [], nonces: [], audit: [] });
  await store.close();
}
