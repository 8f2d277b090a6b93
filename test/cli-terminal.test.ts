/** What commands print at a terminal, and that none of its formatting ends up in a pipe. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import { isColored, wrapped } from '../src/cli/kernel/output.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';
import { openTerminal, programLine } from './support/terminal.ts';

/** Written as an escape, so that a failing test does not color its own output. */
const ESCAPE = '\u001b';
const TREATY = '5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00';
const SUBJECT = `北京-${'long-name-'.repeat(12)}`;

function readable(shown: string): string {
  return shown.replaceAll(ESCAPE, '<ESC>');
}

for (const [what, isTTY, environment, expected] of [
  ['a terminal', true, { TERM: 'xterm' }, true],
  ['a pipe', false, { TERM: 'xterm' }, false],
  ['a terminal that has none', true, { TERM: 'dumb' }, false],
  ['a terminal whose user wants none', true, { NO_COLOR: '1' }, false],
  ['a terminal with an empty NO_COLOR', true, { NO_COLOR: '' }, true],
  ['a pipe whose user wants them', false, { FORCE_COLOR: '1' }, true],
  ['a terminal with FORCE_COLOR off', true, { FORCE_COLOR: '0' }, false],
  ['a pipe whose user wants them and does not', false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
] as const) {
  test(`${what} gets ${expected ? 'colors' : 'no colors'}`, () => {
    assert.equal(isColored({ isTTY }, environment), expected);
  });
}

for (const [text, columns, expected] of [
  ['wrong    one two three', 18, ['wrong    one two', '         three']],
  ['wrong    one two three', 22, ['wrong    one two three']],
  [
    'wrong    https://na.example/long two',
    20,
    ['wrong', '         https://na.example/long', '         two'],
  ],
  ['wrong    one two', 12, ['wrong    one two']],
  [
    'wrong    \u{6f22}\u{5b57}\u{6f22} two',
    18,
    ['wrong    \u{6f22}\u{5b57}\u{6f22}', '         two'],
  ],
] as const) {
  test(`"${text}" on ${columns} columns ends its lines between words`, () => {
    assert.deepEqual(wrapped(text, { isTTY: true, columns }, 9), expected);
    assert.deepEqual(wrapped(text, { columns }, 9), [text]);
  });
}

suite('a list', () => {
  let server: HostileAuthority;
  let graph: string[];
  before(async () => {
    server = await startHostileAuthority();
    const edge = {
      from: 'alpha',
      to: SUBJECT,
      treaty_id: TREATY,
      status: 'active',
      lifecycle_state: 'active',
      expiry_risk: 'none',
      valid_from: '2026-01-01T00:00:00Z',
      expires_at: '2026-02-01T00:00:00Z',
    };
    server.answers = {
      'GET /recognition-graph': {
        sovereigns: [],
        recognition_edges: [edge, { ...edge, to: `beta${ESCAPE}[31m`, lifecycle_state: 'revoked' }],
        active_treaties: [],
        revoked_trust_material: [],
      },
    };
    graph = ['graph', 'show', '--url', server.url];
  });
  after(() => server[Symbol.asyncDispose]());

  async function shownAt(
    columns: number,
    environment: { readonly [name: string]: string } = {},
    ...more: readonly string[]
  ): Promise<string> {
    const { code, shown } = await runAtTerminal([...graph, ...more], { columns, environment });
    assert.equal(code, 0, shown);
    return readable(shown);
  }

  test('is as wide as the terminal, with colors that show what is in force', async () => {
    const shown = await shownAt(100);
    const lines = stripVTControlCharacters(shown.replaceAll('<ESC>', ESCAPE)).split('\n');
    const widths = lines.map((line) => stringWidth(line));
    assert.ok(Math.max(...widths) <= 100, shown);
    assert.match(shown, /<ESC>\[1mFROM<ESC>\[22m/);
    assert.match(shown, /<ESC>\[32mactive<ESC>\[39m/);
    assert.match(shown, /<ESC>\[31mrevoked<ESC>\[39m/);
    assert.match(shown, /北京-long-n.*…/);
    assert.match(
      shown,
      new RegExp(`${TREATY.slice(0, 8)}\\n`),
      'a beginning of the id that commands take',
    );
    assert.match(shown, / \d+d ago /);
    assert.doesNotMatch(shown, /beta<ESC>\[31m/, 'no color of a server');
    const starts = lines.slice(1, 3).map((line) => stringWidth(line.split('none')[0] ?? ''));
    assert.equal(starts[0], starts[1], 'columns are aligned, whatever the script');
  });

  test('omits what matters least before it truncates more, and shows everything on request', async () => {
    const narrow = await shownAt(60);
    assert.doesNotMatch(narrow, /EXPIRY RISK/);
    assert.match(narrow, /FROM.*TO.*STATE.*EXPIRES.*TREATY/);
    for (const line of stripVTControlCharacters(narrow.replaceAll('<ESC>', ESCAPE)).split('\n')) {
      assert.ok(stringWidth(line) <= 60, line);
    }
    const wide = await shownAt(60, {}, '--wide');
    for (const whole of [SUBJECT, TREATY, '2026-02-01T00:00:00Z', 'EXPIRY RISK']) {
      assert.ok(wide.includes(whole), whole);
    }
  });

  test('has no colors if its user turned them off', async () => {
    assert.doesNotMatch(await shownAt(120, { NO_COLOR: '1' }), /<ESC>/);
  });

  test('is complete and plain in a pipe', async () => {
    const { stdout, stderr } = await runCommand(graph);
    assert.equal(stderr, '');
    assert.ok(stdout.includes(SUBJECT));
    assert.ok(stdout.includes(TREATY));
    assert.ok(!stdout.includes(ESCAPE));
  });

  test('is read page by page, continues after a lost connection, and is one object as JSON', async () => {
    const row = (id: string) => ({
      attestation: {
        attestation_id: id,
        issuer_sovereign_id: 'alpha',
        subject_id: 'agent-7',
        subject_public_key: null,
        roles: ['role:client'],
        claims: {},
        status: 'active',
        issued_at: '2026-01-01T00:00:00Z',
        valid_from: '2026-01-01T00:00:00Z',
        expires_at: '2026-02-01T00:00:00Z',
        issued_by: 'na',
        signatures: [],
      },
      status: 'active',
      revoked_at: null,
      revocation_reason: null,
    });
    const page = (id: string, next?: string) => ({
      count: 1,
      attestations: [row(id)],
      ...(next !== undefined && { next_cursor: next }),
    });
    const answers = () => ({
      'GET /attestations?limit=1000': page('one', 'c-1'),
      'GET /attestations?limit=1000&cursor=c-1': [null, page('two', 'c-2')],
      'GET /attestations?limit=1000&cursor=c-2': page('three'),
    });
    const args = ['attestation', 'list', '--url', server.url];
    server.answers = answers();
    const text = await runCommand(args);
    assert.equal(text.stderr, '');
    assert.match(text.stdout, /^ATTESTATION .*\none .*\ntwo .*\nthree .*\n$/);
    server.answers = answers();
    const { stdout } = await runCommand([...args, '--json']);
    assert.deepEqual(JSON.parse(stdout), {
      count: 3,
      attestations: ['one', 'two', 'three'].map(row),
    });
  });

  test('says that it is waiting only on a terminal', async () => {
    let resolve: (answer: object) => void = () => undefined;
    server.answers = { 'GET /agents': new Promise((given) => (resolve = given)) };
    const args = ['agent', 'list', '--url', server.url];
    await using terminal = openTerminal(programLine(args));
    const piped = runCommand(args);
    await terminal.until(/Waiting for the authority \(1 s\)/);
    await terminal.until(/Waiting for the authority \(2 s\)/);
    resolve({ count: 3, capability: null });
    assert.equal(await terminal.ended, 0);
    assert.match(
      readable(terminal.shown()),
      /\(\d+ s\)<ESC>\[1G<ESC>\[2K3 agents registered\.\r\n$/,
    );
    const { stdout, stderr } = await piped;
    assert.deepEqual([stdout, stderr], ['3 agents registered.\n', '']);
  });
});
