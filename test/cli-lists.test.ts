/** The order and length of lists on the command line, and events in the form for people. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { type ListOptions, ordered, orderedRows } from '../src/cli/kernel/list.ts';
import { type Column, column, timeColumn } from '../src/cli/kernel/table.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal, runCommand } from './support/commands.ts';
import { joinedNode, operate } from './support/requests.ts';

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
