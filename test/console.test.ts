/**
 * `mesh-na console`: who may use it, what it shows, and what it changes. `console-browser` tests its pages in a
 * browser.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { suite, test } from 'node:test';
import { parseJson } from '../src/base/json/parse.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { indentedJson } from '../src/console/change.ts';
import type { Context } from '../src/console/context.ts';
import { CONTACTS } from '../src/console/pages/contacts.ts';
import {
  filtersFor,
  nodeQuery,
  parametersOf,
  searchesFor,
} from '../src/console/pages/node-filter.ts';
import { findNodes } from '../src/console/pages/node-rows.ts';
import { csvLine, NODES } from '../src/console/pages/nodes.ts';
import { registeredNode } from './support/agents.ts';
import { sharedAuthority, type TestAuthority } from './support/authority.ts';
import { HOUR } from './support/clock.ts';
import { changeIn, startTestConsole, type TestConsole } from './support/console.ts';
import {
  auditEvents,
  heartbeat,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
} from './support/requests.ts';

const authority = sharedAuthority();

async function opened(): Promise<TestConsole> {
  return startTestConsole(await authority());
}

function revocationsOf(na: TestAuthority, { certId }: { readonly certId: string }) {
  return auditEvents(na)
    .filter(({ type, details }) => type === 'certificate_revoked' && details.cert_id === certId)
    .map(({ details }) => details);
}

suite('access', () => {
  test('connections that ask for nothing make room for those of the operator', async () => {
    await using console = await opened();
    const idle = Array.from({ length: 100 }, () => connect(console.port, '127.0.0.1'));
    await Promise.all(
      idle.map((socket) =>
        once(
          socket.on('error', () => undefined),
          'connect',
        ),
      ),
    );
    assert.equal((await console.ask('GET', '/')).status, 200);
    assert.equal((await console.page('nodes')).status, 200);
    for (const socket of idle) socket.destroy();
  });

  test('refuses another host, another origin, a missing cookie, a wrong cookie, and a token used twice', async () => {
    await using console = await opened();
    const { origin, port } = console;
    const token = new URL(console.url).hash.slice(1);
    const form = { origin, 'content-type': 'application/x-www-form-urlencoded' };
    for (const host of ['evil.example', `evil.example:${port}`, `localhost:${port}`, '127.0.0.1']) {
      const answer = await console.ask('GET', '/', { host });
      assert.equal(answer.status, 403, host);
      assert.ok(answer.text.includes(`its own address, http://127.0.0.1:${port}/.`), host);
    }
    for (const other of ['https://evil.example', 'null', 'http://127.0.0.1:1', `${origin}0`]) {
      const answer = await console.ask('GET', '/', { origin: other });
      assert.equal(answer.status, 403, other);
    }
    const { origin: _, ...unnamed } = form;
    assert.equal((await console.ask('POST', '/session', unnamed, `token=${token}`)).status, 403);
    assert.equal((await console.ask('POST', '/session', form, 'token=')).status, 403);
    assert.equal((await console.ask('POST', '/session', form, `token=${token}x`)).status, 403);
    assert.equal((await console.ask('POST', '/session', { origin }, `token=${token}`)).status, 403);

    const first = await console.ask('POST', '/session', form, `token=${token}`);
    assert.equal(first.status, 303);
    const cookie = String(first.headers['set-cookie']);
    assert.match(cookie, /; Path=\/[0-9a-f]{24}\/; HttpOnly; SameSite=Strict$/);
    const again = await console.ask('POST', '/session', form, `token=${token}`);
    assert.equal(again.status, 403);
    assert.match(again.text, /used before/);

    const page = String(first.headers.location);
    assert.equal((await console.ask('GET', page)).status, 403);
    assert.equal((await console.ask('GET', page, { cookie: 'mesh-console=x' })).status, 403);
    const [pair = ''] = cookie.split(';');
    assert.equal((await console.ask('GET', page, { cookie: pair })).status, 200);
    assert.equal((await console.ask('GET', '/nodes', { cookie: pair })).status, 403);
    assert.equal((await console.ask('GET', page, { cookie: pair, origin: 'null' })).status, 403);
    const change = page.replace('overview', 'confirm');
    assert.equal((await console.ask('POST', change, { cookie: pair }, 'id=1')).status, 403);
    assert.equal((await console.ask('DELETE', page, { ...form, cookie: pair })).status, 405);
  });

  test('every answer forbids inline code, frames, and storage', async () => {
    await using console = await opened();
    for (const answer of [await console.ask('GET', '/'), await console.page('nodes')]) {
      const { headers, text } = answer;
      const policy = String(headers['content-security-policy']);
      assert.match(policy, /default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/);
      assert.doesNotMatch(policy, /unsafe|sha256/);
      assert.equal(headers['cache-control'], 'no-store');
      assert.equal(headers['referrer-policy'], 'same-origin');
      assert.doesNotMatch(text, /<script>|<style|\sstyle=|\son\w+=/);
    }
  });

  test('ends after eight hours without a request', async () => {
    const na = await authority();
    let now = na.clock.now();
    await using console = await startTestConsole(na, { now: () => now });
    now += 7 * HOUR;
    assert.equal((await console.page('nodes')).status, 502, 'this clock is ahead');
    now += 7 * HOUR;
    assert.equal(await console.stopIfIdle(), false);
    now += HOUR;
    assert.equal(await console.stopIfIdle(), true);
    await assert.rejects(console.ask('GET', '/'));
  });
});

suite('nodes', () => {
  test('are found by id, key, name, hostname, label, role and status', async () => {
    const na = await authority();
    const node = await joinedNode(na, {
      roles: ['role:anchor'],
      name: 'web-1',
      labels: { env: 'prod' },
    });
    const other = await joinedNode(na, { name: 'db-1' });
    await heartbeat(na, node);
    await using console = await opened();
    const rowsFor = async (query: Record<string, string>) => {
      const { text } = await console.page(`nodes?${new URLSearchParams(query)}`);
      return [node, other].map(({ certId }) => text.includes(certId));
    };
    for (const [query, found] of [
      [{}, [true, true]],
      [{ q: node.certId }, [true, false]],
      [{ q: node.certId.slice(0, 8) }, [true, false]],
      [{ q: node.key.publicKey }, [true, false]],
      [{ q: node.key.publicKey.slice(0, 12) }, [true, false]],
      [{ q: 'WEB' }, [true, false]],
      [{ q: 'db-*' }, [false, true]],
      [{ q: 'env=prod' }, [true, false]],
      [{ q: 'role:anchor' }, [true, false]],
      [{ q: '127.0.0.1' }, [true, true]],
      [{ q: '10.0.' }, [false, false]],
      [{ q: 'env=prod', label: 'env=prod' }, [true, false]],
      [{ q: 'env=prod', label: 'env=test' }, [false, false]],
      [{ q: 'nothing-like-it' }, [false, false]],
      [{ status: 'revoked' }, [false, false]],
      [{ role: 'role:anchor', label: 'env' }, [true, false]],
      [{ health: 'joined' }, [false, true]],
      [{ lapsing: '1m' }, [false, false]],
      [{ silent: '1m' }, [false, false]],
      [{ lapsing: '9999w1h' }, [true, true]],
      [{ sort: '-name' }, [true, true]],
    ] as const) {
      assert.deepEqual(await rowsFor(query), found, JSON.stringify(query));
    }
    const { text } = await console.page('nodes?sort=-name&q=-1');
    assert.ok(text.indexOf('web-1') < text.indexOf('db-1'));
    const csv = await console.page('nodes.csv?q=web-1');
    assert.match(String(csv.headers['content-disposition']), /nodes\.csv/);
    const [head, row, end] = csv.text.split('\r\n');
    assert.match(head ?? '', /^cert_id,node_public_key,name,/);
    assert.match(row ?? '', new RegExp(`^${node.certId},.*,web-1,env=prod,`));
    assert.equal(end, '');
  });

  test('a wrong duration is refused, and matches nothing that could be revoked', async () => {
    await using console = await opened();
    const problem = /role="alert">Silent for must be a duration such as 7d or 1h30m\./;
    const listed = await console.page('nodes?silent=soon&role=role:client');
    assert.match(listed.text, problem);
    assert.match(listed.text, /value="role:client"/);
    for (const path of ['contacts?silent=soon', 'nodes.csv?silent=soon']) {
      const { status, text } = await console.page(path);
      assert.equal(status, 422);
      assert.match(text, problem);
    }
    const revoking = await console.submit('do?action=revoke-matching', {
      silent: 'soon',
      reason: 'superseded',
    });
    assert.equal(revoking.status, 422);
    assert.match(revoking.text, problem);
  });

  test('a node shows its certificates, facts and audit entries', async () => {
    const na = await authority();
    const node = await joinedNode(na, { name: 'api-<1>' });
    await using console = await opened();
    const { status, text } = await console.page(
      `node?${new URLSearchParams({ key: node.key.publicKey })}`,
    );
    assert.equal(status, 200);
    for (const part of [
      node.certId,
      node.key.publicKey,
      'api-&lt;1&gt;',
      'certificate_issued',
      'No agent is registered',
      'Revoke…',
    ]) {
      assert.ok(text.includes(part), part);
    }
    const unknown = new URLSearchParams({ key: newKey().publicKey });
    assert.match((await console.page(`node?${unknown}`)).text, /No certificate of this key/);
    const refused = await console.page('node?key=wrong');
    assert.match(refused.text, /role="alert">The authority refused: /);
  });

  test('each has a cell for its last contact, grouped by a label', async () => {
    const na = await authority();
    const node = await joinedNode(na, { name: 'cell-1', labels: { rack: 'r<1>' } });
    await joinedNode(na, { name: 'cell-2', labels: { rack: 'r2' } });
    await using console = await opened();
    const { text } = await console.page('contacts?q=cell&group=rack');
    assert.equal(text.match(/<title>cell-/g)?.length, 2);
    assert.match(text, /Active: 2/);
    assert.match(text, /r&lt;1&gt;.*cell-1: active.*<h2>r2<.*cell-2/s);
    assert.ok(text.includes(`./node?${new URLSearchParams({ key: node.key.publicKey })}`));
    assert.doesNotMatch((await console.page('contacts?q=cell')).text, /<h2>/);
    assert.match((await console.page('contacts?q=none-like-it')).text, /No node matches/);
    // Both are searched as the list of nodes is: the text can be a key, and filters can contradict each other.
    const byKey = new URLSearchParams({ q: node.key.publicKey.slice(0, 12) });
    assert.match((await console.page(`contacts?${byKey}`)).text, /Active: 1<.*<title>cell-1/s);
    const none = 'contacts?q=role:client&role=role:other';
    assert.match((await console.page(none)).text, /No node matches/);
  });

  test('of a network with too many cells, each is a bin of them, and leads to its nodes', async () => {
    const counts = (silent: number, active: number) => ({
      count: silent + active,
      active,
      silent_under_hour: 0,
      silent_under_day: 0,
      silent_under_week: silent,
      silent_longer: 0,
      silent_since: silent === 0 ? null : '2026-11-01T00:00:00.000000Z',
    });
    const bin = (by: string, value: string, silent: number) => ({
      by,
      value,
      ...counts(silent, 40),
    });
    let bins = [
      bin('name', 'web-2*', 40),
      bin('name', 'web-10', 0),
      bin('hostname', 'web*', 1),
      bin('remote_addr', '10.1.', 0),
      bin('remote_addr', '2', 0),
    ];
    let rest = {};
    const asked: object[] = [];
    const client = {
      async countContacts(question: object) {
        asked.push(question);
        return { total: counts(3, 2000), bins, unlabeled: null, other: null, ...rest };
      },
    };
    const context = { client, now: () => 0 } as unknown as Context;
    const show = (query: string) => CONTACTS.show(context, new URLSearchParams(query));
    const content = await show('role=role:client&status=any&label=rack');
    assert.deepEqual(asked, [{ role: ['role:client'], label: ['rack'] }]);
    assert.match(content.lede ?? '', /more than 2,000 nodes.*names or addresses begin alike/);
    const { text } = content.body;
    assert.match(text, /Active: 2,000<.*Less than a week: 3</s);
    const list = (query: Record<string, string>) =>
      `href="./nodes?${new URLSearchParams(query)}"`.replaceAll('&', '&amp;');
    const filter = { role: 'role:client', label: 'rack' };
    const sort = 'contact';
    for (const part of [
      `${list({ q: 'web-2*', ...filter, sort })}><bdi>web-2…</bdi></a>: 40 of 80 silent, the longest since <time`,
      `${list({ q: 'web-10*', ...filter, sort })}><bdi>web-10</bdi></a>: 0 of 40 silent<svg`,
      list({ q: 'web*', ...filter, meaning: '1', sort }),
      `${list({ q: '10.1.', ...filter, sort })}><bdi>10.1.</bdi></a>`,
      '<li><bdi>2</bdi>: 0 of 40 silent',
      '<title>web-2…: 40 silent of 80, the longest since 2026-11-01T00:00:00.000000Z</title>',
      '<rect class="age3" x="0" y="0" width="1" height="10"/><rect class="age0" x="1" y="0" width="9" height="10"/>',
    ]) {
      assert.ok(text.includes(part), part);
    }
    assert.ok(text.indexOf('web-2…') < text.indexOf('web-10<'), 'numbers in names are numbers');
    assert.match(text, /<h2>By name<.*<h2>By host name, without a name<.*<h2>By address/s);

    bins = [bin('label', 'rack=r<1>', 2)];
    rest = { unlabeled: counts(0, 1500), other: counts(0, 500) };
    const grouped = await show('group=rack');
    assert.deepEqual(asked[1], { group: 'rack' });
    assert.match(grouped.lede ?? '', /each cell is a value of the label rack/);
    assert.ok(grouped.body.text.includes(list({ label: 'rack=r<1>', sort })), grouped.body.text);
    assert.match(
      grouped.body.text,
      /<bdi>r&lt;1&gt;<.*<bdi>further values<.*0 of 500.*<bdi>without it</s,
    );
  });

  test('a search continues with the interpretation that found something', async () => {
    const asked: Record<string, unknown>[] = [];
    const client = {
      async listCertificates(filters: Record<string, unknown>) {
        asked.push(filters);
        if (filters.hostname === undefined) return { count: 0, certificates: [] };
        const certificates = Array.from({ length: Number(filters.limit) }, () => ({}));
        return { count: certificates.length, certificates, next_cursor: 'c' };
      },
    };
    const context = { client, now: () => 0 } as unknown as Context;
    const first = nodeQuery(new URLSearchParams({ q: 'webserver', status: 'any' }));
    const { meaning, nextCursor } = await findNodes(context, first);
    assert.deepEqual([meaning, nextCursor], [1, 'c']);
    asked.length = 0;
    const next = parametersOf(first, { meaning, cursor: nextCursor ?? '' });
    assert.equal((await findNodes(context, nodeQuery(next))).meaning, 1);
    assert.deepEqual(asked, [{ hostname: '*webserver*', limit: 50, cursor: 'c' }]);
  });

  test('are listed worst first, with what a page costs bounded, whatever the size of the network', async () => {
    const asked: Record<string, unknown>[] = [];
    const STATES = ['silent', 'active unwell', 'active well'];
    const client = {
      async listCertificates(filters: Record<string, unknown>) {
        asked.push(filters);
        const state = STATES.indexOf([filters.status, filters.health ?? []].flat().join(' '));
        const named = (name: string) => ({ name: `${state}-${name}`, node_public_key: name });
        // Of silent nodes there are two, of unwell ones none, and of the others very many.
        const certificates =
          state === 2
            ? Array.from({ length: Number(filters.limit) }, (_, n) => named(`${n}`))
            : [named('10'), named('9')].slice(0, state === 0 ? 2 : 0);
        return { certificates, ...(state === 2 && { next_cursor: 'c' }) };
      },
    };
    const fleet = { expected: 3, healthy: 1 };
    const context = { client, fleet, now: () => 0 } as unknown as Context;
    const { rows, nextCursor } = await findNodes(context, nodeQuery(new URLSearchParams()));
    assert.deepEqual(
      rows.slice(0, 4).map(({ name }) => name),
      ['0-9', '0-10', '2-0', '2-1'],
    );
    assert.deepEqual([rows.length, nextCursor, asked.length], [50, '2.c', 3]);
    asked.length = 0;
    await findNodes(context, nodeQuery(new URLSearchParams({ cursor: nextCursor ?? '' })));
    assert.deepEqual(asked, [{ status: 'active', health: 'well', limit: 50, cursor: 'c' }]);
    const well = { ...context, fleet: { expected: 3, healthy: 3 } } as unknown as Context;
    asked.length = 0;
    await findNodes(well, nodeQuery(new URLSearchParams()));
    assert.deepEqual(asked, [{ status: 'in_use', limit: 50 }]);
  });

  test('a page without rows says why', async () => {
    for (const [query, further, text] of [
      ['', {}, /No node is in use\. Invite one .*mesh-na invite create/],
      ['role=role:client', {}, /No node in use matches.*status=any.*any status/],
      ['role=role:client&status=any', {}, /No certificate matches/],
      ['role=role:client', { next_cursor: 'c' }, /None matches so far: the next page searches on/],
    ] as const) {
      const listCertificates = async () => ({ count: 0, certificates: [], ...further });
      const context = { client: { listCertificates }, now: () => 0 } as unknown as Context;
      const { body } = await NODES.show(context, new URLSearchParams(query));
      assert.match(body.text, text);
    }
  });

  test('possible interpretations of a search', () => {
    assert.deepEqual(searchesFor(''), [{}]);
    assert.deepEqual(searchesFor('ABCD1234'), [{ cert_id: 'abcd1234' }, { name: '*ABCD1234*' }]);
    assert.deepEqual(searchesFor('web 1'), [{ name: '*web 1*' }]);
    assert.deepEqual(searchesFor('env=dev rack=r3'), [
      { label: ['env=dev rack=r3'] },
      { label: ['env=dev', 'rack=r3'] },
    ]);
    assert.deepEqual(searchesFor('web-1, web-2')[1], { name: ['*web-1*', '*web-2*'] });
    const both = { q: 'rack=r3', label: 'env=dev', role: 'role:a role:b', status: 'any' };
    assert.deepEqual(filtersFor(nodeQuery(new URLSearchParams(both)), 0), [
      { role: ['role:a', 'role:b'], label: ['env=dev', 'rack=r3'] },
    ]);
    assert.deepEqual(searchesFor('webserver'), [
      { name: '*webserver*' },
      { hostname: '*webserver*' },
      { key: 'webserver' },
    ]);
  });
});

suite('changes', () => {
  test('show what will be signed, require the number, and end with the answer, the audit entry and the command', async () => {
    const na = await authority();
    const node = await joinedNode(na, { name: 'lost-1' });
    await using console = await opened();
    const key = node.key.publicKey;
    const proposed = await console.submit('do?action=revoke-node', {
      node_public_key: key,
      reason: 'key_compromise',
    });
    assert.equal(proposed.status, 200);
    for (const part of [
      '"method": "POST"',
      '"path": "/admin/revoke"',
      '"reason": "key_compromise"',
      '1 certificate is no longer accepted',
      '1 agent is evicted|No agent is registered',
      'Type <bdi>lost-1</bdi> to confirm',
      `mesh-na certificate revoke --key ${key} --reason key_compromise`,
    ]) {
      assert.match(proposed.text, new RegExp(part.replaceAll('+', '\\+')), part);
    }
    assert.equal(revocationsOf(na, node).length, 0);

    const id = changeIn(proposed);
    const form = await console.page(
      `do?${new URLSearchParams({ action: 'revoke-node', node_public_key: key })}`,
    );
    assert.match(form.text, /<h1><bdi>Revoke lost-1 \(role:client\)</);
    const wrong = await console.submit('confirm', { id, number: '1' });
    assert.equal(wrong.status, 422);
    assert.match(wrong.text, /Nothing was signed/);
    assert.equal(revocationsOf(na, node).length, 0);

    const done = await console.submit('confirm', { id, number: 'lost-1' });
    assert.match(done.text, /Done/);
    assert.match(done.text, /"crl_sequence": /);
    assert.match(done.text, /certificate_revoked/);
    assert.match(done.text, new RegExp(node.certId));
    assert.deepEqual(
      revocationsOf(na, node).map(({ reason }) => reason),
      ['key_compromise'],
    );

    const again = await console.submit('confirm', { id, number: '1' });
    assert.match(again.text, /Done/);
    assert.equal(revocationsOf(na, node).length, 1);
    assert.equal((await console.submit('confirm', { id: 'unknown' })).status, 404);
    assert.equal((await console.page('outcome?id=unknown')).status, 404);
  });

  test('an agent that is evicted is named shortened, without what changes the direction of text', async () => {
    const na = await authority();
    const agent_id = `\u202e${'x'.repeat(150)}end`;
    const node = await registeredNode(na, { agent_id });
    await using console = await opened();
    const fields = { node_public_key: node.key.publicKey, reason: 'superseded' };
    const { text } = await console.submit('do?action=revoke-node', fields);
    assert.match(text, /1 agent is evicted: ⟨U\+202E⟩x+…x+end\./);
    assert.doesNotMatch(text, /\u202e/);
  });

  test('one certificate, and the name and labels of its node', async () => {
    const na = await authority();
    const node = await joinedNode(na, { name: 'old', labels: { env: 'prod', zone: 'a' } });
    await using console = await opened();
    const key = node.key.publicKey;
    const named = await console.submit('do?action=describe-node', {
      node_public_key: key,
      name: 'new',
      labels: 'env=test\nrack=7',
    });
    assert.match(named.text, /Labels removed: zone/);
    assert.match((await console.submit('confirm', { id: changeIn(named) })).text, /node_described/);
    const { body } = await operate(na, '/admin/certificates', {}, { method: 'GET' });
    const row = body.certificates.find((each: { cert_id: string }) => each.cert_id === node.certId);
    assert.deepEqual([row.name, row.labels], ['new', { env: 'test', rack: '7' }]);

    const one = await console.submit('do?action=revoke-certificate', {
      cert_id: node.certId,
      reason: 'superseded',
    });
    assert.doesNotMatch(one.text, /to confirm</);
    assert.match(
      (await console.submit('confirm', { id: changeIn(one) })).text,
      /certificate_revoked/,
    );
  });

  test('revoke all matches, one by one, except those that no longer match', async () => {
    const na = await authority();
    const nodes = [];
    for (const name of ['rack9-1', 'rack9-2', 'rack9-3'])
      nodes.push(await joinedNode(na, { name }));
    await using console = await opened();
    assert.match((await console.page('nodes?q=rack9')).text, /Revoke all that match…/);
    for (const all of ['nodes', 'nodes?status=any', 'nodes?status=active']) {
      assert.doesNotMatch((await console.page(all)).text, /Revoke all that match…/);
    }
    const fields = { q: 'rack9', reason: 'cessation_of_operation' };
    const proposed = await console.submit('do?action=revoke-matching', fields);
    assert.match(
      proposed.text,
      /id="touched"(?:.*rack9-\d<){3}.*Type <bdi>3<\/bdi> to confirm.*3 requests/s,
    );
    assert.match(
      proposed.text,
      /certificate revoke --name \*rack9\* --reason cessation_of_operation/,
    );
    const [renamed] = nodes;
    const key = encodeURIComponent(renamed?.key.publicKey ?? '');
    await operate(na, `/admin/nodes/${key}`, { name: 'moved' });
    const id = changeIn(proposed);
    assert.equal((await console.submit('confirm', { id, number: '2' })).status, 422);
    const done = await console.submit('confirm', { id, number: '3' });
    assert.match(done.text, /Done.*3 of 3 requests.*1 request was not sent: no longer applicable/s);
    assert.match(
      done.text,
      /<p>Changed 2: <bdi>rack9-\d, rack9-\d<\/bdi>\.<\/p><p>Left alone 1: <bdi>rack9-1</,
    );
    assert.deepEqual(
      nodes.map((node) => revocationsOf(na, node).length),
      [0, 1, 1],
    );
    for (const [wrong, problem] of [
      [{}, /Give a filter/],
      [{ status: 'any' }, /Give a filter/],
      [{ status: 'silent' }, /No accepted certificate matches/],
      [{ q: 'rack9' }, /No accepted certificate matches/],
      [{ role: 'role:nobody' }, /No accepted certificate matches/],
    ] as const) {
      const answer = await console.submit('do?action=revoke-matching', {
        ...fields,
        q: '',
        ...wrong,
      });
      assert.equal(answer.status, 422);
      assert.match(answer.text, problem);
    }
  });

  test('revoke all certificates of a compromised key that matches, and name each node by itself', async () => {
    const na = await authority();
    const [renewed, moved] = [
      await joinedNode(na, { name: 'twin' }),
      await joinedNode(na, { name: 'twin' }),
    ];
    await nodeRequest(na, '/renew', renewed.key, { cert_id: renewed.certId });
    await using console = await opened();
    const fields = { q: 'twin', reason: 'key_compromise' };
    const id = changeIn(await console.submit('do?action=revoke-matching', fields));
    const key = encodeURIComponent(moved.key.publicKey);
    await operate(na, `/admin/nodes/${key}`, { name: 'moved' });
    const { text } = await console.submit('confirm', { id, number: '3' });
    assert.match(
      text,
      /1 request was not sent.*<p>Changed 2: <bdi>twin, twin<\/bdi>\.<\/p><p>Left alone 1: <bdi>twin</s,
    );
  });

  test('an invalid form is shown again with its contents', async () => {
    const na = await authority();
    const node = await joinedNode(na);
    await using console = await opened();
    const fields = { node_public_key: node.key.publicKey, name: 'kept', labels: 'No label' };
    const answer = await console.submit('do?action=describe-node', fields);
    assert.equal(answer.status, 422);
    assert.match(answer.text, /“No label” is not a label/);
    assert.match(answer.text, /value="kept"/);
    assert.equal((await console.submit('do?action=nothing', {})).status, 404);
  });

  test('are not offered to a standard key, nor when read-only', async () => {
    const na = await authority();
    const node = await joinedNode(na);
    const key = node.key.publicKey;
    const query = new URLSearchParams({ key });
    await using standard = await startTestConsole(na, { operator: na.standard });
    const page = await standard.page(`node?${query}`);
    assert.doesNotMatch(page.text, /Revoke…/);
    assert.match(page.text, /Set name and labels/);
    const fields = { node_public_key: key, reason: 'unspecified' };
    assert.equal((await standard.submit('do?action=revoke-node', fields)).status, 403);
    await using reading = await startTestConsole(na, { isReadOnly: true });
    assert.doesNotMatch((await reading.page(`node?${query}`)).text, /…<\/(a|button)>/);
    assert.equal(
      (await reading.submit('do?action=describe-node', { node_public_key: key, name: 'x' })).status,
      403,
    );
  });
});

test('CSV guards what spreadsheets take for a formula, and leaves keys as they are', () => {
  const key = `+${'A'.repeat(42)}=`;
  assert.equal(
    csvLine(['=1', '＝1', '\n=1', '-1', key, `${key}1`]),
    `'=1,'＝1,"'\n=1",'-1,${key},'${key}1\r\n`,
  );
});

test('JSON is indented as it is written', () => {
  const text = canonicalJson(parseJson('{"a":[],"b":[1,{"c":"x:,{}\\"["}],"d":{},"e":1.50}'));
  assert.equal(
    indentedJson(text),
    '{\n  "a": [],\n  "b": [\n    1,\n    {\n      "c": "x:,{}\\"["\n    }\n  ],\n  "d": {},\n  "e": 1.5\n}',
  );
});
