/** The keys that sign for an authority: one, or two during a succession, in its files or in a signer. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';
import {
  createListContent,
  type ListForm,
  type ListHead,
} from '../src/authority/lists/list-document.ts';
import { createListRendering, createListThreads } from '../src/authority/lists/list-rendering.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { RecordSigner, Signer } from '../src/base/crypto/primitives.ts';
import { parseJsonBytes } from '../src/base/json/bytes.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { readPrivateKey } from '../src/base/keys/read-key.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import {
  createAuthoritySigner,
  heldHere,
  type KeySource,
  type SigningTerm,
  signingKeysOf,
} from '../src/base/signer/authority-signer.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import type { PublishedDocument } from '../src/protocol/contract/documents.ts';
import type { SignatureItem } from '../src/protocol/records/record.ts';
import {
  type SignedRecord,
  signedText,
  signRecord,
  signSingly,
  soleSigner,
} from '../src/protocol/records/signed-record.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { startListThread } from '../src/server/threads/list-thread.ts';
import { openSigner, startSignerThread } from '../src/server/threads/signer-thread.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { newKey } from './support/requests.ts';
import { refusedSigner, type SignedNetwork, signedNetwork, startSigner } from './support/signer.ts';
import { until } from './support/until.ts';

const [FIRST, SECOND, THIRD] = [newKey(), newKey(), newKey()];
const BEFORE: SigningTerm = { from: 0, current: FIRST.publicKey, previous: null };
const OVERLAP: SigningTerm = { from: 100, current: SECOND.publicKey, previous: FIRST.publicKey };
const AFTER: SigningTerm = { from: 200, current: SECOND.publicKey, previous: null };
const LABELED = { publicKey: FIRST.publicKey, keyId: 'na-2026' };

function signerOf(...held: readonly ReturnType<typeof newKey>[]) {
  return createAuthoritySigner(
    heldHere(() => held),
    LABELED,
  );
}

const keyIds = ({ signatures }: SignedRecord) => signatures.map(({ key_id }) => key_id);

suite('the keys of an authority', () => {
  test('one key signs under its label until terms are set, and the founding key keeps that label', () => {
    const signer = signerOf(FIRST, SECOND);
    const record = { a: 1 };
    assert.deepEqual(signRecord(record, signer), signRecord(record, soleSigner(FIRST, 'na-2026')));
    signer.use([BEFORE]);
    assert.deepEqual(signRecord(record, signer), signRecord(record, soleSigner(FIRST, 'na-2026')));
    signer.use([BEFORE, OVERLAP]);
    assert.deepEqual(keyIds(signRecord(record, signer)), [SECOND.publicKey, 'na-2026']);
    signer.use([BEFORE, OVERLAP, AFTER]);
    assert.deepEqual(signRecord(record, signer), signRecord(record, soleSigner(SECOND)));
  });

  test('in an overlap, both keys sign a record, and the previous one signs where only one fits', () => {
    const signer = signerOf(FIRST, SECOND);
    signer.use([BEFORE, OVERLAP]);
    assert.equal(signer.publicKey, SECOND.publicKey, 'named as issuer');
    const record = signRecord({ a: 1 }, signer);
    const [current, previous] = record.signatures;
    assert.ok(verifySignature(SECOND.publicKey, signedText(record), current?.sig ?? ''));
    assert.ok(verifySignature(FIRST.publicKey, signedText(record), previous?.sig ?? ''));
    const single = signSingly({ a: 1 }, signer);
    assert.deepEqual(single, signSingly({ a: 1 }, soleSigner(FIRST, 'na-2026')));
    assert.deepEqual(signingKeysOf(signer), {
      current: { publicKey: SECOND.publicKey, keyId: SECOND.publicKey },
      previous: LABELED,
    });
  });

  test('a rebuilt record has the signatures of its time, as far as the keys still sign', () => {
    const signer = signerOf(FIRST, SECOND, THIRD);
    const at = (instant: number) => keyIds(signRecord({ a: 1 }, signer.at(instant)));
    signer.use([BEFORE, OVERLAP]);
    assert.deepEqual(at(-1), ['na-2026']);
    assert.deepEqual(at(99), ['na-2026']);
    assert.deepEqual(at(100), [SECOND.publicKey, 'na-2026']);
    signer.use([BEFORE, OVERLAP, AFTER]);
    for (const instant of [99, 100, 200]) assert.deepEqual(at(instant), [SECOND.publicKey]);
    const again = { from: 300, current: THIRD.publicKey, previous: SECOND.publicKey };
    signer.use([BEFORE, OVERLAP, AFTER, again]);
    assert.deepEqual(at(99), [THIRD.publicKey, SECOND.publicKey], 'no key of that time signs now');
    assert.deepEqual(at(150), [SECOND.publicKey]);
    assert.deepEqual(at(300), [THIRD.publicKey, SECOND.publicKey]);
  });

  test('a missing key is refused by its name, and nothing changes', () => {
    const signer = signerOf(FIRST);
    assert.ok(signer.holds(FIRST.publicKey));
    assert.ok(!signer.holds(SECOND.publicKey));
    const missing = new RegExp(`^Error: The authority key ${quoted(SECOND.publicKey)} is not held`);
    assert.throws(() => signer.use([BEFORE, OVERLAP]), missing);
    assert.throws(() => signer.use([]), /^Error: No key is to sign$/);
    assert.equal(signer.publicKey, FIRST.publicKey);
    assert.equal(signer.previous, null);
  });

  test('a key that appears later is found, and one that no longer signs is dropped', () => {
    let held = [FIRST];
    const holder = heldHere(() => held);
    const signer = createAuthoritySigner(holder, LABELED);
    assert.ok(!signer.holds(SECOND.publicKey));
    held = [FIRST, SECOND];
    assert.ok(signer.holds(SECOND.publicKey));
    held = [SECOND];
    assert.ok(signer.holds(FIRST.publicKey), 'it signs still');
    signer.use([BEFORE, OVERLAP, AFTER]);
    assert.ok(!signer.holds(FIRST.publicKey));
  });
});

suite('signed lists with two keys', () => {
  const both: RecordSigner = {
    ...SECOND,
    keyId: SECOND.publicKey,
    previous: { ...FIRST, keyId: 'na-2026' },
  };

  for (const form of ['crl', 'feed'] as const) {
    test(`a ${form} is the record with a signature by each key, in canonical form`, () => {
      const content = createListContent(form);
      content.add([entryOf(form, 1), entryOf(form, 2)]);
      const record = recordIn(content.document(headOf(form, 1), both));
      assert.deepEqual(
        keyIds(record),
        form === 'crl' ? [SECOND.publicKey, 'na-2026'] : [SECOND.publicKey, FIRST.publicKey],
      );
      for (const [index, { publicKey }] of [SECOND, FIRST].entries()) {
        const { sig } = record.signatures[index] as SignatureItem;
        assert.ok(verifySignature(publicKey, signedText(record), sig));
      }
      assert.equal(record[form === 'crl' ? 'issuer' : 'issued_by'], SECOND.publicKey);
    });

    test(`the thread for a long ${form} signs with the current keys, including one it did not have`, async (t) => {
      const seeds = [randomBytes(32), randomBytes(32)];
      const [old, next] = seeds.map((seed) => signerFromSeed(seed)) as [typeof FIRST, typeof FIRST];
      const signer = createAuthoritySigner(
        heldHere(() => [old, next]),
        { publicKey: old.publicKey, keyId: 'na-2026' },
      );
      let source: KeySource = { kind: 'seeds', seeds: seeds.slice(0, 1) };
      const threads = createListThreads({
        from: 0,
        startThread: () => startListThread(signer, () => source, failed),
        notStarted: failed,
        edgesCaughtUp: () => Promise.resolve(),
      });
      t.after(() => threads.close());
      const shown: PublishedDocument[] = [];
      const show = (document: PublishedDocument) => shown.push(document);
      const onThread = createListRendering({ form, signer, threads, show });
      const here = createListRendering({ form, signer, threads: null, show });
      for (const list of [onThread, here]) list.add([entryOf(form, 1)]);
      await onThread.ready();
      const terms: SigningTerm[] = [
        { from: 0, current: old.publicKey, previous: null },
        { from: 1, current: next.publicKey, previous: old.publicKey },
        { from: 2, current: next.publicKey, previous: null },
      ];
      for (const [index] of terms.entries()) {
        signer.use(terms.slice(0, index + 1));
        source = { kind: 'seeds', seeds };
        for (const list of [onThread, here]) list.render(headOf(form, index));
        await onThread.settled();
        const [first, second] = shown.splice(0).map(({ bytes }) => Buffer.from(bytes).toString());
        assert.equal(first, second, `in term ${index}`);
      }
    });
  }

  test('a thread without a required key reports it', async () => {
    const seed = randomBytes(32);
    const old = signerFromSeed(seed);
    const signer = createAuthoritySigner(
      heldHere(() => [old, SECOND]),
      soleSigner(old),
    );
    const problem = await new Promise<unknown>((resolve) => {
      const thread = startListThread(signer, () => ({ kind: 'seeds', seeds: [seed] }), resolve);
      void thread.ready.then(() => {
        signer.use([{ from: 0, current: SECOND.publicKey, previous: null }]);
        void thread.open('crl').render(headOf('crl', 1));
      });
    });
    assert.match(String(problem), /The authority key \S+ is not held here/);
  });
});

suite('the next key next to the key file', () => {
  const load = (dataDir: string, flags = {}) => loadConfig({ dataDir, ...flags }, {}, Date.now());
  const seedsIn = (source: KeySource) =>
    source.kind === 'seeds' ? source.seeds.map((seed) => Buffer.from(seed).toString('hex')) : [];
  const files = () => {
    const { folder } = makeNetworkFolder();
    const at = (name: string) => join(folder, 'keys', name);
    return { folder, at, hex: (name: string) => readPrivateKey(at(name)).toString('hex') };
  };
  const makeNext = (keyFile: string) => nextKey(keyFile, () => randomBytes(32)).file;

  test('is found when it is created while the service runs, and after the files are replaced', () => {
    const { folder, at, hex } = files();
    const { keySource } = load(folder);
    const old = hex('na.key');
    assert.deepEqual(seedsIn(keySource()), [old]);
    makeNext(at('na.key'));
    const next = hex('na.next.key');
    assert.deepEqual(seedsIn(keySource()), [old, next]);
    renameSync(at('na.next.key'), at('na.key'));
    assert.deepEqual(seedsIn(keySource()), [next]);
    rmSync(at('na.key'));
    assert.deepEqual(seedsIn(keySource()), [next], 'what was read stays in use');
  });

  test('is enough if the genesis block names it already', () => {
    const { folder, at, hex } = files();
    renameSync(at('na.key'), at('na.next.key'));
    writeFileSync(at('na.key'), `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
    assert.deepEqual(seedsIn(load(folder).keySource()), [hex('na.key'), hex('na.next.key')]);
  });

  test('is next to the named key file; with the key as text, it is in the data folder', () => {
    const { folder, at, hex } = files();
    const old = hex('na.key');
    const elsewhere = join(folder, 'elsewhere.key');
    copyFileSync(at('na.key'), elsewhere);
    const apart = makeNext(elsewhere);
    assert.equal(apart, join(folder, 'elsewhere.next.key'));
    const named = load(folder, { naPrivateKey: elsewhere });
    assert.deepEqual(seedsIn(named.keySource()), [old, readPrivateKey(apart).toString('hex')]);
    makeNext(at('na.key'));
    const text = Buffer.from(old, 'hex').toString('base64');
    const given = loadConfig({ dataDir: folder }, { NA_PRIVATE_KEY: text }, Date.now());
    assert.deepEqual(seedsIn(given.keySource()), [old, hex('na.next.key')]);
  });

  const UNUSABLE: readonly (readonly [string, (file: string) => void, RegExp])[] = [
    [
      'a public key',
      (file) => writeFileSync(file, `# next na public key\n${FIRST.publicKey}\n`, { mode: 0o600 }),
      /^The next key cannot be used: \S+ holds a public key, and a private one is expected/,
    ],
    [
      'no key',
      (file) => writeFileSync(file, 'torn', { mode: 0o600 }),
      /^The next key cannot be used: The key file \S+ does not hold the canonical base64/,
    ],
    [
      'a key that others can read',
      (file) => chmodSync(makeNext(file.replace('.next', '')), 0o644),
      /^The next key cannot be used: The key file \S+ can be opened by other users/,
    ],
  ];
  for (const [what, write, warning] of UNUSABLE) {
    test(`is ignored with a warning if it contains ${what}`, () => {
      const { folder, at, hex } = files();
      write(at('na.next.key'));
      const { keySource, warnings } = load(folder);
      assert.ok(
        warnings.some((text) => warning.test(text)),
        warnings.join('\n'),
      );
      assert.deepEqual(seedsIn(keySource()), [hex('na.key')]);
    });
  }
});

suite('a signer with two keys', () => {
  interface TwoKeys extends SignedNetwork {
    readonly nextFile: string;
    readonly old: ReturnType<typeof newKey>;
    readonly next: ReturnType<typeof newKey>;
  }

  function twoKeys(): TwoKeys {
    const network = signedNetwork();
    const { file } = nextKey(network.keyFile, () => randomBytes(32));
    const [old, next] = [network.keyFile, file].map((path) =>
      signerFromSeed(readPrivateKey(path)),
    ) as [typeof FIRST, typeof FIRST];
    return { ...network, nextFile: file, old, next };
  }

  const named = ({ publicKey }: { readonly publicKey: string }) => ({
    publicKey,
    keyId: publicKey,
  });

  test('is restarted with more or fewer keys, the running authority follows, and each key signs', async (t) => {
    const { path, keyFile, nextFile, old, next, ...network } = twoKeys();
    const problems: string[] = [];
    let signer = await startSigner({ keyFile, ...network });
    const lacking = new RegExp(
      `does not sign: it holds ${quoted(old.publicKey)}, but not the authority’s key ${quoted(next.publicKey)}: start it with that key, or `,
    );
    const both = { current: named(next), previous: named(old) };
    await assert.rejects(openSigner({ kind: 'signer', path }, both), lacking);
    const holder = await startSignerThread(
      { path, publicKeys: [old.publicKey] },
      {
        available: () => undefined,
        unavailable: (problem) => problems.push(problem),
        refused: failed,
        asked: () => undefined,
        failed,
        elapsed: systemRuntime.elapsed,
      },
    );
    t.after(() => holder.close());
    const authority = createAuthoritySigner(holder, named(old));
    const restart = async (file: string, args: readonly string[] = []) => {
      await signer.end('SIGKILL');
      await until(() => !authority.isAvailable());
      signer = await startSigner({ keyFile: file, ...network }, args);
    };
    assert.ok(!authority.holds(next.publicKey));
    await restart(keyFile, ['--next-key', nextFile]);
    const keys = `the key ${old.publicKey} and the key ${next.publicKey}`;
    assert.match(signer.output(), new RegExp(`Signing at unix:${path} with ${quoted(keys)}\n`));
    await until(() => authority.isAvailable() && authority.holds(next.publicKey));
    const terms: SigningTerm[] = [
      { from: 0, current: old.publicKey, previous: null },
      { from: 1, current: next.publicKey, previous: old.publicKey },
      { from: 2, current: next.publicKey, previous: null },
    ];
    authority.use(terms.slice(0, 2));
    authority.assertAvailable();
    assert.deepEqual(keyIds(signRecord({ a: 1 }, authority)), [next.publicKey, old.publicKey]);
    await assertSignsWithEach(path, old, next);
    await until(() =>
      [old, next].every(({ publicKey }) =>
        signer.output().includes(`Signed revocation_feed with ${publicKey}: `),
      ),
    );
    // Both keys sign now, so one of them is not enough.
    await restart(nextFile);
    await until(() =>
      problems.some((problem) => problem.includes(`not the authority’s key ${old.publicKey}`)),
    );
    assert.throws(() => authority.assertAvailable(), { refusal: 'signer_unavailable' });
    authority.use(terms);
    await until(() => authority.isAvailable());
    assert.deepEqual(keyIds(signRecord({ a: 1 }, authority)), [next.publicKey]);
    await signer.end('SIGTERM');
  });

  async function assertSignsWithEach(path: string, old: Signer, next: Signer): Promise<void> {
    for (const [current, previous] of [
      [old, null],
      [next, old],
      [old, next],
      [next, null],
    ] as const) {
      const keys = { current: named(current), previous: previous && named(previous) };
      const opened = await openSigner({ kind: 'signer', path }, keys);
      const expected = { ...soleSigner(current), previous: previous && soleSigner(previous) };
      const record = { feed_id: 'x' };
      assert.deepEqual(signRecord(record, opened.signer), signRecord(record, expected));
      await opened.close();
    }
  }

  const REFUSED: readonly (readonly [string, (at: TwoKeys) => string, RegExp])[] = [
    [
      'the same key twice',
      ({ keyFile }) => keyFile,
      /holds the same key as \S+: name the file of the next key/,
    ],
    [
      'a public key',
      ({ nextFile }) => nextFile.replace(/\.key$/, '.pub'),
      /holds a public key, and a private one is expected: name the \.key file/,
    ],
    [
      'a key that others can read',
      ({ nextFile }) => {
        chmodSync(nextFile, 0o644);
        return nextFile;
      },
      /can be opened by other users; run chmod 600/,
    ],
    [
      'a file that is not there',
      ({ keyFile }) => join(dirname(keyFile), 'none.key'),
      /The key file \S+ cannot be read \(ENOENT\)/,
    ],
  ];
  for (const [what, nextFileOf, problem] of REFUSED) {
    test(`does not start with ${what} as the next key`, async () => {
      const network = twoKeys();
      assert.match(await refusedSigner(network, ['--next-key', nextFileOf(network)]), problem);
      assert.ok(!existsSync(network.path));
    });
  }
});

function quoted(text: string): string {
  return text.replace(/[+/]/g, '\\$&');
}

function failed(cause: unknown): never {
  throw cause;
}

function entryOf(form: ListForm, number: number) {
  const id = `id-${number}`;
  return { id, text: canonicalJson(form === 'crl' ? { certificate_id: id } : 'left') };
}

function headOf(form: ListForm, sequence: number): ListHead {
  return form === 'crl'
    ? { form, sequence, crlId: 'id', issuedAt: 0, nextUpdate: 1, digest: '' }
    : { form, sequence, feedId: 'id', issuedAt: 0, issuer: 'alpha' };
}

function recordIn({ bytes }: PublishedDocument): SignedRecord {
  const record = parseJsonBytes(bytes) as JsonObject;
  assert.equal(Buffer.from(bytes).toString(), canonicalJson(record), 'canonical');
  return record as SignedRecord;
}
