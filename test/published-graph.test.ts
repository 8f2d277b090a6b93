/**
 * Pages read the published documents in slices, once for each version; of long lists, they read only what they show.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import type { Authority } from '../src/authority/authority.ts';
import { createDashboardTreaties } from '../src/authority/dashboard/dashboard-treaties.ts';
import {
  createGraphCaches,
  createGraphDigest,
  publishGraph,
} from '../src/authority/recognition/graph.ts';
import { connectomeText } from '../src/authority/recognition/recognition-graph.ts';
import {
  createRecognitionIndex,
  type RecognitionIndex,
} from '../src/authority/recognition/recognition-index.ts';
import { parseJson } from '../src/base/json/parse.ts';
import { JsonText, jsonText } from '../src/base/json/write.ts';
import { withoutPause } from '../src/base/work.ts';
import { createSharedBuild } from '../src/edge/documents/shared-build.ts';
import { dashboardPage, MOST_URGENT } from '../src/pages/dashboard/dashboard.ts';
import { drawnHistory } from '../src/pages/dashboard/history-section.ts';
import { readDashboard, readGraph } from '../src/pages/graph/model.ts';
import {
  createDocumentPublisher,
  documentText,
  GRAPH_DOCUMENTS,
  type PublishedDocument,
  publishedDocument,
} from '../src/protocol/contract/documents.ts';
import type { Dashboard } from '../src/protocol/rows/dashboard.ts';
import { startTestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { get, heartbeat, joinedNode, outcome, type Received } from './support/requests.ts';
import { importFeed, issued, noteImport, recognize, sovereign } from './support/trust.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

/** Text that separates rows and lists in the document, for use in names. */
const BOUNDARIES = [
  '},{"',
  '},{',
  '"},{"expires_at":"',
  '],"recognition_edges":[',
  '],"sovereigns":[{"',
  '],"summary":',
  '"treaties":[',
  '],"revocation_feed_summary":',
  '\\',
  '\\"',
  'é🙂\u2028',
];

const hostileName = fc
  .array(fc.oneof(fc.constantFrom(...BOUNDARIES), fc.string({ unit: 'grapheme' })), {
    minLength: 1,
    maxLength: 5,
  })
  .map((parts) => parts.join(''));

function recognized(
  names: readonly string[],
  copies = 1,
  index = createRecognitionIndex(),
): RecognitionIndex {
  for (let i = 0; i < names.length * copies; i += 1) {
    const [issuer = '', subject = ''] = [
      names[i % names.length],
      names[(i * 7 + 1) % names.length],
    ];
    index.putTreaty(`treaty-${i}`, {
      json: jsonText({ metadata: { note: names, recognition_edges: [{ expires_at: subject }] } }),
      issuer,
      subject,
      subjectKeys: [],
      issuedAt: NOW,
      validFrom: '2026-01-01T00:00:00Z',
      expiresAt: NOW + (i % 5) * 24 * HOUR,
      revokedAt: i % 4 === 3 ? NOW : null,
      revocationReason: i % 4 === 3 ? subject : null,
      followed: [],
    });
    noteImport(
      index,
      { issuer: subject, feedId: issuer, sequence: '9007199254740993', revokedAt: NOW },
      [[`attestation-${i}`, issuer]],
    );
  }
  index.endLoading();
  return index;
}

function connectome(index: RecognitionIndex): PublishedDocument {
  return publishedDocument([...connectomeText(index, NOW + 1)].join(''));
}

/** The graph of the document, parsed in one piece. */
function graphOf({ bytes }: PublishedDocument): unknown {
  const { active_treaties: _, ...graph } = parseJson(Buffer.from(bytes).toString()) as {
    readonly active_treaties: unknown;
  };
  return graph;
}

test('a graph read in slices is that of the document, whatever its names are', () => {
  fc.assert(
    fc.property(fc.array(hostileName, { minLength: 1, maxLength: 6 }), (names) => {
      const document = connectome(recognized(names));
      assert.deepEqual(withoutPause(readGraph(document.bytes)), graphOf(document));
    }),
    { numRuns: 100 },
  );
  const empty = connectome(createRecognitionIndex());
  assert.deepEqual(withoutPause(readGraph(empty.bytes)), graphOf(empty));
});

test('a graph that is restored at once is one that grew while it was read', () => {
  fc.assert(
    fc.property(
      fc.array(hostileName, { minLength: 1, maxLength: 6 }),
      fc.nat(9),
      (names, copies) => {
        const growing = createRecognitionIndex();
        growing.endLoading();
        const [restored, grown] = [recognized(names, copies), recognized(names, copies, growing)];
        const order = (index: RecognitionIndex) => index.edges().map(({ treatyId }) => treatyId);
        assert.deepEqual(order(grown), order(restored));
        assert.deepEqual(connectome(grown).bytes, connectome(restored).bytes);
      },
    ),
    { numRuns: 50 },
  );
});

test('a long graph is read in many slices, even while the document’s bytes are released', () => {
  const document = connectome(recognized([...BOUNDARIES, 'beta'], 400));
  const expected = graphOf(document);
  const work = readGraph(document.bytes);
  let slices = 1;
  let step = work.next();
  document.bytes.fill(0);
  for (; step.done !== true; step = work.next()) slices += 1;
  assert.deepEqual(step.value, expected);
  assert.ok(slices > 20, `${slices} slices`);
});

test('the dashboard reads only the first treaties, and its page is the same', () => {
  fc.assert(
    fc.property(
      fc.array(hostileName, { minLength: 1, maxLength: 6 }),
      fc.nat(20),
      (names, copies) => {
        const whole = dashboardOf(recognized(names, copies));
        const read = readDashboard(publishedDocument(whole).bytes, MOST_URGENT);
        const parsed = parseJson(whole) as unknown as Dashboard;
        assert.deepEqual(read, { ...parsed, treaties: parsed.treaties.slice(0, MOST_URGENT) });
        assert.equal(pageOf(read), pageOf(parsed));
      },
    ),
    { numRuns: 60 },
  );
});

function pageOf(model: Dashboard): string {
  const history = drawnHistory({ range: '1h', hasNumbers: false }, null);
  return documentText(dashboardPage(model, 'version', history, 'alpha').document);
}

function dashboardOf(index: RecognitionIndex): string {
  const { treaties, summary } = createDashboardTreaties().list(index.edges(), NOW + 1);
  const none = { freshness: 'none', status: 'not_observed', completed_at_display: '' };
  return jsonText({
    sovereign: { id: BOUNDARIES.join(''), version: 'v0.1' },
    readiness: { status: 'ready' },
    nodes: { active: 0, tracked: 0 },
    fleet: null,
    posture: { status: 'ok', findings: [], unknown: [] },
    horizon_summary: { within_week: 0, within_month: 0, days: [] },
    connectome_summary: {
      active_edge_count: 0,
      sovereign_count: 0,
      revoked_trust_material_count: 0,
    },
    treaty_summary: summary,
    treaties: new JsonText(treaties.text),
    revocation_feed_summary: { ...none, count: 0 },
    revocation_feeds: [],
    trust_cycle_summary: none,
    recent_changes: [],
    warnings: BOUNDARIES,
  });
}

/** A build that takes as many slices as the document has bytes, and returns its text. */
function countedBuild() {
  const built: string[] = [];
  let newest = publishedDocument('first');
  const shared = createSharedBuild(
    function* (document) {
      const text = Buffer.from(document.bytes).toString();
      built.push(text);
      for (let left = text.length; left > 1; left -= 1) yield;
      if (text === 'broken') throw new Error(text);
      return text;
    },
    () => newest,
  );
  return {
    built,
    ask(text: string) {
      newest = publishedDocument(text);
      return shared(newest);
    },
  };
}

test('concurrent callers share a build, and later ones its result at once', async () => {
  const { built, ask } = countedBuild();
  assert.deepEqual(await Promise.all([ask('first'), ask('first'), ask('first')]), [
    'first',
    'first',
    'first',
  ]);
  assert.equal(ask('first'), 'first');
  assert.deepEqual(built, ['first']);
  assert.equal(ask('2'), '2', 'a single slice is built at once');
});

test('changes during a build do not mix in, and lead to one more build, of the newest version', async () => {
  const { built, ask } = countedBuild();
  const answers = ['version 1', 'version 2', 'version 1', 'version 3', 'version 4'].map(ask);
  assert.deepEqual(await Promise.all(answers), [
    'version 1',
    'version 4',
    'version 1',
    'version 4',
    'version 4',
  ]);
  assert.deepEqual(built, ['version 1', 'version 4']);
});

test('a failed build fails only those who wait for it', async () => {
  const { built, ask } = countedBuild();
  const answers = await Promise.allSettled([ask('broken'), ask('broken'), ask('whole')]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  );
  await assert.rejects(async () => ask('broken'));
  assert.deepEqual(built, ['broken', 'whole', 'broken']);
});

/** How many heartbeats were answered before the page was. */
async function beatsDuring(
  page: Promise<Received>,
  beat: () => Promise<Received>,
): Promise<number> {
  let isMade = false;
  const made = page.finally(() => {
    isMade = true;
  });
  let beats = 0;
  for (; !isMade; beats += 1) assert.equal(outcome(await beat()), '200');
  assert.match((await made).text, /1 to 50 of 10,000/);
  return beats;
}

test('heartbeats are answered while the first page after a change of a long graph is built', async () => {
  await using na = await startTestAuthority();
  const node = await joinedNode(na);
  const beta = sovereign('beta');
  const terms = { subject_sovereign_id: 'beta', subject_public_keys: [beta.key.publicKey] };
  await issued(recognize(na, terms));
  const ids = Array.from({ length: 10_000 }, (_, index) => `id-${100_000 + index}`);
  const beats: number[] = [];
  for (let sequence = 1; sequence <= 2; sequence += 1) {
    const feed = beta.feed(na.clock.now(), sequence, { revoked_attestation_ids: ids });
    await issued(importFeed(na, feed));
    // After this, the authority has built the document, but the edge has not read any of it.
    await get(na, '/connectome.json');
    beats.push(await beatsDuring(get(na, '/connectome'), () => heartbeat(na, node)));
  }
  // A page that is built without a break lets the one or two through that have already arrived.
  assert.ok(Math.min(...beats) > 5, `${beats}`);
});

// The digest of the recognition graph is not computed in one step if it was already built in slices.

test('the digest of a graph is cached until a treaty or the clock changes the graph', () => {
  const index = createRecognitionIndex();
  let read = 0;
  const edges = () => {
    read += 1;
    return index.edges();
  };
  const digest = createGraphDigest({ ...index, edges });
  assert.equal(digest.isKnown(10), false);
  digest.note({ version: index.version(), from: 10, until: 20, digest: 'built' });
  assert.deepEqual([digest.isKnown(10), digest.at(10), digest.at(19)], [true, 'built', 'built']);
  assert.equal(read, 0, 'nothing is read again');
  assert.deepEqual([digest.isKnown(9), digest.isKnown(20)], [false, false]);
  noteImport(index, { issuer: 'beta', feedId: 'f-1', sequence: '1', revokedAt: 5 }, [
    ['a-1', null],
  ]);
  assert.equal(digest.isKnown(10), false);
  assert.notEqual(digest.at(10), 'built');
});

/** What builds the graph documents of the index, and those that it has published. */
function graphOn(
  index: RecognitionIndex,
  now: () => number,
  edgesCaughtUp: () => Promise<void> = () => Promise.resolve(),
) {
  const publisher = createDocumentPublisher();
  const published: PublishedDocument[] = [];
  publisher.follow(({ document }) => published.push(document));
  const graph = createGraphCaches(index, edgesCaughtUp);
  const na = { recognition: index, publisher, runtime: { now }, graph } as unknown as Authority;
  return { na, publisher, published };
}

const LONG_NAMES = ['alpha', 'beta', 'gamma'].map((name) => name.padEnd(2000, '.'));

test('a graph that time changes faster than it can be built is published', () => {
  const index = recognized(LONG_NAMES, 2);
  let now = NOW;
  const { na, published } = graphOn(index, () => {
    now += 24 * HOUR;
    return now;
  });
  withoutPause(publishGraph(na));
  assert.equal(published.length, GRAPH_DOCUMENTS.length);
});

test('a graph that is built while the clock is set back is built again', () => {
  let now = NOW + 30 * 24 * HOUR;
  const { na, published } = graphOn(recognized(LONG_NAMES, 20), () => now);
  const building = publishGraph(na);
  building.next();
  now = NOW;
  withoutPause(building);
  const [graph] = published.map(documentText);
  assert.match(String(graph), /"lifecycle_state":"active"/, 'all would have expired by then');
});

// The garbage collector does not account for shared memory.

test('graph documents are written to memory that no edge reads anymore, also if a build is discarded', async () => {
  const index = recognized(LONG_NAMES, 50);
  const behind: (() => void)[] = [];
  const edgesCaughtUp = () => new Promise<void>((resolve) => behind.push(resolve));
  const { na, publisher, published } = graphOn(index, () => NOW, edgesCaughtUp);
  const memories = () => new Set(published.map(({ bytes }) => bytes.buffer)).size;

  function change(sequence: number): void {
    const feed = { issuer: 'beta', feedId: 'f', sequence: `${sequence}`, revokedAt: NOW };
    noteImport(index, feed, [[`attestation-${sequence}`, null]]);
    for (const name of GRAPH_DOCUMENTS) publisher.withdraw(name);
  }

  const texts: string[] = [];
  let slices = 0;
  for (let sequence = 1; sequence <= 3; sequence += 1) {
    change(sequence);
    slices = [...publishGraph(na)].length;
    texts.push(...published.slice(-3).map(documentText));
  }
  assert.deepEqual(published.map(documentText), texts, 'an edge may still read all of them');
  assert.equal(memories(), 9);

  // The last slices of a build copy what the others have rendered.
  for (let left = 0; left < 3; left += 1) {
    for (const catchUp of behind.splice(0)) catchUp();
    await nextTurn();
    change(10 + left);
    const building = publishGraph(na);
    for (let slice = left; slice < slices; slice += 1) building.next();
    change(20 + left);
    withoutPause(building);
    const [text = ''] = published.slice(-3).map(documentText);
    assert.match(text, new RegExp(`"attestation-${20 + left}"`), 'the newest graph');
  }
  assert.equal(memories(), 9, 'no more than before');
});
