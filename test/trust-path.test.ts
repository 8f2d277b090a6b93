/** The search for a trust path, compared with a plain breadth-first search, written exactly as specified [core-6-3]. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Treaty } from '../machines/recognition-treaty.ts';
import { createRecognitionIndex } from '../src/authority/recognition/recognition-index.ts';
import { findTrustPath } from '../src/authority/recognition/trust-path.ts';
import { formatInstant } from '../src/base/timestamp.ts';

const NOW = Date.UTC(2026, 2, 1, 10);
const HOUR = 3_600_000;

/** A treaty as the test sees it. */
interface Given {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly state: 'active' | 'expiring_soon' | 'expired' | 'revoked' | 'replaced';
}

/** Milliseconds until expiry, and the reason for revocation, that put a treaty into each state. */
const MAKING = {
  active: [100 * HOUR, null],
  expiring_soon: [1000, null],
  expired: [999, null],
  revoked: [100 * HOUR, 'ended'],
  replaced: [-HOUR, 'renewed_by:other'],
} as const;

const RISK = {
  active: 'low',
  expiring_soon: 'high',
  expired: 'expired',
  revoked: 'none',
  replaced: 'none',
} as const;

/** The treaty's row in the graph [core-6-2]. */
function rowOf({ id, from, to, state }: Given) {
  const [left, reason] = MAKING[state];
  return {
    from,
    to,
    treaty_id: id,
    status: reason === null ? 'active' : 'revoked',
    lifecycle_state: state,
    expiry_risk: RISK[state],
    valid_from: formatInstant(NOW - HOUR),
    expires_at: formatInstant(NOW + left),
  };
}

/**
 * Breadth-first over active edges in the direction from -> to; edges are tried in (from, to, treaty_id) order, each
 * sovereign is visited once, and the first arrival wins.
 */
function reference(edges: readonly Given[], from: string, to: string) {
  const sorted = [...edges].sort(
    (a, b) => compare(a.from, b.from) || compare(a.to, b.to) || compare(a.id, b.id),
  );
  const active = sorted.filter(({ state }) => state === 'active' || state === 'expiring_soon');
  const none = {
    from,
    to,
    trusted: false,
    reason: 'no_active_treaty_path',
    path: [],
    hop_count: 0,
  };
  if (from === to) return none;
  const queue: { readonly at: string; readonly path: readonly Given[] }[] = [
    { at: from, path: [] },
  ];
  const visited = new Set([from]);
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const edge of active) {
      if (edge.from !== next.at || visited.has(edge.to)) continue;
      const path = [...next.path, edge];
      if (edge.to === to) {
        const rows = path.map(rowOf);
        const reason = 'active_treaty_path';
        return { from, to, trusted: true, reason, path: rows, hop_count: rows.length };
      }
      visited.add(edge.to);
      queue.push({ at: edge.to, path });
    }
  }
  const ended = sorted.find(
    (edge) => edge.from === from && edge.to === to && /^(revoked|replaced)$/.test(edge.state),
  );
  if (ended === undefined) return none;
  return { ...none, reason: 'direct_treaty_revoked', path: [rowOf(ended)] };
}

/** Compares by code point, which is the order of the UTF-8 bytes. */
function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function indexOf(edges: readonly Given[]) {
  const index = createRecognitionIndex();
  for (const edge of edges) index.putTreaty(edge.id, treatyOf(edge));
  index.endLoading();
  return index;
}

function treatyOf({ from, to, state }: Given): Treaty {
  const [left, reason] = MAKING[state];
  return {
    json: '{}',
    issuer: from,
    subject: to,
    subjectKeys: [],
    issuedAt: NOW - HOUR,
    validFrom: formatInstant(NOW - HOUR),
    expiresAt: NOW + left,
    revokedAt: reason === null ? null : NOW - 1,
    revocationReason: reason,
    followed: [],
  };
}

function assertEqualSearch(edges: readonly Given[], from: string, to: string): void {
  const found = findTrustPath(indexOf(edges), from, to, NOW);
  assert.deepEqual(found, reference(edges, from, to));
}

/** Includes names whose order by code point differs from their order by UTF-16 unit. */
const NAMES = ['a', 'b', 'B', 'c', 'd', '\ue000', '\u{1f600}', 'z', '', '__proto__'];

function graphs(sovereigns: number, maxEdges: number, states: readonly Given['state'][]) {
  const name = fc.nat({ max: sovereigns - 1 }).map((n) => NAMES[n] ?? `s-${n}`);
  return fc
    .uniqueArray(
      fc.record({
        id: fc.oneof(
          fc.stringMatching(/^[a-c]{1,3}$/),
          fc.constantFrom('\ue000', '\u{1f600}', '__proto__', 't'),
          fc.nat().map(String),
        ),
        from: name,
        to: name,
        state: fc.constantFrom(...states),
      }),
      { maxLength: maxEdges, selector: ({ id }) => id },
    )
    .chain((edges) => fc.tuple(fc.constant<readonly Given[]>(edges), name, name));
}

const EVERY_STATE = ['active', 'expiring_soon', 'expired', 'revoked', 'replaced'] as const;

for (const [name, sovereigns, maxEdges, states, numRuns] of [
  ['small dense graphs of every state', 4, 20, EVERY_STATE, 1000],
  ['graphs of active treaties with cycles, loops and parallel edges', 6, 30, ['active'], 1000],
  [
    'graphs of mostly active treaties',
    10,
    40,
    ['active', 'active', 'active', 'revoked', 'expired'],
    1000,
  ],
  ['sparse graphs with long paths', 25, 60, ['active', 'expiring_soon', 'revoked'], 500],
  ['larger graphs', 60, 200, ['active', 'active', 'expired'], 100],
] as [string, number, number, readonly Given['state'][], number][]) {
  test(`in ${name} the path is that of a breadth-first search`, () => {
    fc.assert(
      fc.property(graphs(sovereigns, maxEdges, states), ([edges, from, to]) => {
        assertEqualSearch(edges, from, to);
      }),
      { numRuns },
    );
  });
}

test('treaties may be put in any order, and again as they change', () => {
  fc.assert(
    fc.property(
      graphs(6, 20, EVERY_STATE).chain(([edges, from, to]) =>
        fc.tuple(
          fc.constant({ edges, from, to }),
          fc.shuffledSubarray([...edges], { minLength: edges.length }),
          fc.array(fc.tuple(fc.nat(), fc.constantFrom(...EVERY_STATE)), { maxLength: 10 }),
        ),
      ),
      ([{ edges, from, to }, shuffled, changes]) => {
        const index = indexOf(shuffled);
        const now = new Map(edges.map((edge) => [edge.id, edge]));
        for (const [n, state] of changes) {
          const edge = edges[n % Math.max(1, edges.length)];
          if (edge === undefined) continue;
          now.set(edge.id, { ...edge, state });
          index.putTreaty(edge.id, treatyOf({ ...edge, state }));
        }
        assert.deepEqual(
          findTrustPath(index, from, to, NOW),
          reference([...now.values()], from, to),
        );
      },
    ),
    { numRuns: 400 },
  );
});

/** Edges of words, such as `1:a>b` or `2:b>z~revoked`. */
function edgesOf(graph: string): Given[] {
  return graph.split(' ').map((word) => {
    const [, id = '', from = '', to = '', state = 'active'] =
      /^(.+):(.)>(.)(?:~(.+))?$/.exec(word) ?? [];
    return { id, from, to, state: state as Given['state'] };
  });
}

for (const [name, graph, path] of [
  ['a direct edge', '1:a>z', '1'],
  ['the shorter of two paths', '1:a>b 2:b>z 3:a>z', '3'],
  ['of two as short, the one over the first sovereign', '1:a>c 2:c>z 3:a>b 4:b>z', '3 4'],
  ['of parallel edges the first treaty', '2:a>z 1:a>z', '1'],
  ['of parallel edges the first active one', '2:a>z 1:a>z~revoked 0:a>z~expired', '2'],
  ['past a first sovereign that leads nowhere', '1:a>b 2:a>c 3:c>z', '2 3'],
  ['past one that leads there by a longer way', '1:a>b 2:b>d 3:d>z 4:a>c 5:c>z', '4 5'],
  ['first by the first hop, not the last', '1:a>b 2:a>c 3:b>y 4:c>x 5:x>z 6:y>z', '1 3 6'],
  ['a path through a cycle', '1:a>b 2:b>a 3:b>b 4:b>z 5:z>a', '1 4'],
  ['no path against the direction', '1:z>a', ''],
  ['no path over an expired edge', '1:a>b~expired 2:b>z', ''],
] as const) {
  test(`from a to z: ${name}`, () => {
    const edges = edgesOf(graph);
    assertEqualSearch(edges, 'a', 'z');
    const found = findTrustPath(indexOf(edges), 'a', 'z', NOW);
    assert.equal(found.path.map(({ treaty_id }) => treaty_id).join(' '), path);
    assert.equal(found.trusted, path !== '');
  });
}

test('of several direct edges that ended the first treaty is shown', () => {
  const edges = edgesOf('3:a>z~revoked 2:a>z~replaced 1:a>z~expired 0:z>a~revoked');
  const found = findTrustPath(indexOf(edges), 'a', 'z', NOW);
  assert.equal(found.reason, 'direct_treaty_revoked');
  assert.deepEqual(
    found.path.map(({ treaty_id }) => treaty_id),
    ['2'],
  );
});

test('a sovereign has no path to itself, not even by a treaty with itself', () => {
  for (const state of EVERY_STATE) {
    const edges = edgesOf(`1:a>a~${state} 2:a>b 3:b>a`);
    const found = findTrustPath(indexOf(edges), 'a', 'a', NOW);
    assert.deepEqual(
      [found.trusted, found.reason, found.path],
      [false, 'no_active_treaty_path', []],
    );
  }
});

test('a path of 2000 hops is found', () => {
  const edges = Array.from({ length: 2000 }, (_, n): Given => {
    return { id: `t-${n}`, from: `s-${n}`, to: `s-${n + 1}`, state: 'active' };
  });
  const found = findTrustPath(indexOf(edges), 's-0', 's-2000', NOW);
  assert.deepEqual([found.trusted, found.hop_count], [true, 2000]);
  assert.equal(findTrustPath(indexOf(edges), 's-2000', 's-0', NOW).trusted, false);
});

test('a treaty that expires between two questions ends the path', () => {
  const index = indexOf(edgesOf('1:a>z~expiring_soon'));
  assert.equal(findTrustPath(index, 'a', 'z', NOW).trusted, true);
  assert.equal(findTrustPath(index, 'a', 'z', NOW + 1).trusted, false);
});

test('a search leaves the index unchanged', () => {
  const index = indexOf(edgesOf('1:a>b 2:b>c 3:c>d'));
  const before = structuredClone([...index.sovereigns()]);
  assert.equal(findTrustPath(index, 'a', 'd', NOW).hop_count, 3);
  assert.equal(findTrustPath(index, 'd', 'a', NOW).trusted, false);
  assert.deepEqual([...index.sovereigns()], before);
});
