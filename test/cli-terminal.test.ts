/** What commands print at a terminal, lists and events in particular, and that none of its formatting ends up in a pipe. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import stringWidth from 'string-width';
import { type ListOptions, ordered, orderedRows } from '../src/cli/kernel/list.ts';
import { isColored, wrapped } from '../src/cli/kernel/output.ts';
import { type Column, column, timeColumn } from '../src/cli/kernel/table.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';
import { joinedNode, operate } from './support/requests.ts';
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

// The order and length of lists on the command line, and events in the form for people.

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const place = ['--data-dir', na.dataDir, '--url', na.url];

// biome-ignore lint/suspicious/noExplicitAny: a test reads members of an answer it then asserts on
async function answer(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await runCommand([...args, ...place, '--json']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

interface Row {
  readonly name?: string;
  readonly count?: number;
  readonly at?: string;
}

const COLUMNS: readonly Column<Row>[] = [
  column('NAME', (row) => row.name),
  column('COUNT', (row) => row.count),
  timeColumn('LAST CONTACT', (row) => row.at),
];

test('rows are sorted by names with their numbers, by numbers and by times; empty ones come last', () => {
  const rows: Row[] = [
    { name: 'web-10', count: 10, at: '2026-01-01T00:00:00.500000Z' },
    { name: 'web-2', count: 9 },
    { count: 1, at: '2026-01-01T00:00:01Z' },
    { name: 'Alpha', at: '2026-01-01T00:00:00Z' },
  ];
  for (const [options, expected] of [
    [{ sort: 'name' }, [3, 1, 0, 2]],
    [{ sort: 'name', reverse: true }, [0, 1, 3, 2]],
    [{ sort: 'count' }, [2, 1, 0, 3]],
    [{ sort: 'last-contact' }, [3, 0, 2, 1]],
    [{ sort: 'last-contact', reverse: true, limit: 2 }, [2, 0]],
    [{}, [0, 1, 2, 3]],
    [{ limit: 1 }, [0]],
  ] as const) {
    const found = orderedRows(rows, COLUMNS, options).map((row) => rows.indexOf(row));
    assert.deepEqual(found, expected, JSON.stringify(options));
  }
});

test('pages in order are the rows in order, and no page is read in vain', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.record({ count: fc.integer({ min: 0, max: 9 }) }), { maxLength: 5 }), {
        maxLength: 5,
      }),
      fc.record(
        {
          sort: fc.constant('count'),
          reverse: fc.boolean(),
          limit: fc.integer({ min: 1, max: 9 }),
        },
        { requiredKeys: [] },
      ),
      async (pages, given) => {
        const options: ListOptions = given;
        let read = 0;
        async function* source() {
          for (const page of pages) {
            read += page.length;
            yield page;
            if (options.sort === undefined) assert.ok(read < (options.limit ?? 1000));
          }
        }
        const found: Row[] = [];
        for await (const rows of ordered(source(), COLUMNS, options)) found.push(...rows);
        assert.deepEqual(found, orderedRows(pages.flat(), COLUMNS, options));
      },
    ),
  );
});

test('nodes, certificates and invites are listed in the requested order and number', async () => {
  for (const name of ['web-10', 'web-2', 'db']) await joinedNode(na, { name });
  const namesOf = (rows: { name?: string }[]) => rows.map(({ name }) => name);
  const certificates = await answer('certificate', 'list', '--sort', 'name');
  assert.deepEqual(namesOf(certificates.certificates), ['db', 'web-2', 'web-10']);
  const reverse = ['--sort', 'name', '--reverse', '--limit', '2'];
  const invites = await answer('invite', 'list', ...reverse);
  assert.deepEqual([invites.count, namesOf(invites.invites)], [2, ['web-10', 'web-2']]);
  const nodes = await answer('node', 'list', ...reverse);
  assert.deepEqual([nodes.count, namesOf(nodes.nodes)], [2, ['web-10', 'web-2']]);
  assert.equal((await answer('node', 'list', '--limit', '1')).count, 1);
  assert.equal((await answer('node', 'list', '--expires-before', '1h')).count, 0);
  const { code, stderr } = await runCommand(['node', 'list', ...place, '--sort', 'size']);
  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are certificate, name, labels, key, roles, status, last-/);
});

test('events are one readable line each on a terminal, and complete in a pipe', async () => {
  const { key, certId } = await joinedNode(na, { name: 'mail' });
  await operate(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' });
  for (const command of [
    ['events', ...place, '--subject', certId],
    ['audit', 'show', '--data-dir', na.dataDir, '--subject', certId.slice(0, 12)],
  ]) {
    const terminal = await runAtTerminal(command, { columns: 120 });
    assert.equal(terminal.code, 0, terminal.shown);
    const shown = stripVTControlCharacters(terminal.stdout).trimEnd().split('\n');
    assert.equal(shown.length, 2, terminal.shown);
    const [issued = '', revoked = ''] = shown;
    assert.match(issued, /\d+[sm] ago +mail \([A-Za-z0-9+/]{8}\) joined as role:client$/);
    assert.ok(issued.includes(key.publicKey.slice(0, 8)) && !issued.includes(key.publicKey));
    assert.match(
      revoked,
      new RegExp(`ops-privileged revoked mail \\(${certId.slice(0, 8)}\\): superseded$`),
    );
    for (const line of shown) assert.ok(line.length <= 120, line);
    const piped = await runCommand(command);
    assert.match(
      piped.stdout,
      new RegExp(
        `\\dZ {2}certificate_revoked {2}ops-privileged revoked mail \\(${certId}\\): superseded\\n`,
      ),
    );
    const detailed = await runCommand([...command, '--details']);
    assert.match(
      detailed.stdout,
      new RegExp(`joined as role:client {2}\\{"cert_id":"${certId}",.*"remote_addr":`),
    );
  }
  const recent = await answer('events', '--actor', 'ops-privileged', '--since', '1h');
  const types = recent.events.map(
    ({ entry }: { entry: { event_type: string } }) => entry.event_type,
  );
  assert.deepEqual(types, ['certificate_revoked']);
  assert.deepEqual((await answer('events', '--actor', 'nobody')).events, []);
});

test('the audit log is in sentences that wrap, with the invites of one request as one', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const long = `${'x'.repeat(40)}-1`;
  await operate(na, '/admin/invite', { count: 10, name: 'web-{n}' });
  const node = await joinedNode(na, { name: long });
  await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'key_compromise' });
  const place = ['--data-dir', na.dataDir];
  for (const [columns, extra, parts] of [
    [60, [], ['ops-privileged invited web-1 … web-10 (10 invites) as role:client']],
    [60, [], [`ops-privileged revoked ${long} (${node.certId.slice(0, 8)}): key_compromise`]],
    [
      120,
      ['--details', '--type', 'certificate_revoked'],
      [`cert_id=${node.certId}`, 'reason=key_compromise', 'remote_addr=127.0.0.1'],
    ],
    [120, ['--details', '--type', 'invite_created'], ['web-1 (', 'web-10 (', 'name=web-10']],
  ] as const) {
    const command = ['audit', 'show', ...place, ...extra];
    const { code, stdout, shown } = await runAtTerminal(command, { columns });
    assert.equal(code, 0, shown);
    const lines = stripVTControlCharacters(stdout).trimEnd().split('\n');
    for (const line of lines) assert.ok(line.length <= columns, line);
    const text = lines.map((line) => line.trim()).join(' ');
    for (const part of parts) assert.ok(text.includes(part), `${part} in ${text}`);
    assert.ok(!text.includes('…', text.indexOf('…') + 1), 'nothing is cut');
  }
  const events = ['events', ...place, '--url', na.url];
  const all = await runCommand(events);
  const last = Number(/^(\d+) /.exec(all.stdout.trimEnd().split('\n').at(-1) ?? '')?.[1]);
  const late = await runCommand([...events, '--after', String(last - 1)]);
  assert.match(late.stdout, new RegExp(`revoked ${long} `), 'the name is asked');
});
