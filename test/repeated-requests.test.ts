/** Requests sent again byte for byte with `X-Mesh-Retry: 1` get their first answer [core-2-5]. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createKeptAnswers, keptText } from '../src/authority/replay/replay.ts';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import { newKey as newClientKey } from '../src/client/keys.ts';
import { createNodeClient } from '../src/client/node-client.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import type { Fetch } from '../src/client/options.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import {
  auditEvents,
  freshNonce,
  get,
  invite,
  joinedNode,
  newKey,
  operate,
  operatorRequest,
  outcome,
  type Received,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { asKey } from './support/signing.ts';
import { freshId, IMPORT, sovereign } from './support/trust.ts';

/** For tests that leave nothing behind that would affect the others. */
const shared = sharedAuthority();

const REPEAT = { 'X-Mesh-Retry': '1' };

function again(request: SignedRequest, headers: Readonly<Record<string, string>> = REPEAT) {
  return {
    ...request,
    init: { ...request.init, headers: { ...request.init.headers, ...headers } },
  };
}

function assertRepeated(repeated: Received, first: Received): void {
  assert.equal(repeated.status, first.status);
  assert.equal(repeated.text, first.text);
  assert.equal(repeated.headers.get('x-mesh-replayed'), 'true');
  assert.equal(first.headers.get('x-mesh-replayed'), null);
}

/** Refused as a replay, or in a join, because its invite is used. */
function assertRefused(replay: Received): void {
  assert.ok(['401', '403'].includes(outcome(replay).slice(0, 3)), replay.text);
  assert.equal(replay.headers.get('x-mesh-replayed'), null);
}

const TREATY = {
  subject_sovereign_id: 'sovereign-b',
  subject_public_keys: [newKey().publicKey],
  validity_hours: 24,
};

/** Commands whose answers are stored, each with a body that succeeds. */
const COMMANDS: readonly {
  readonly what: string;
  prepare(na: TestAuthority): Promise<SignedRequest>;
}[] = [
  {
    what: 'a join',
    async prepare(na) {
      return signedByNode(na, '/join', newKey(), { invite_token: await invite(na) });
    },
  },
  {
    what: 'a renewal',
    async prepare(na) {
      const { key, certId } = await joinedNode(na);
      return signedByNode(na, '/renew', key, { cert_id: certId });
    },
  },
  {
    what: 'a revocation',
    async prepare(na) {
      const { certId } = await joinedNode(na);
      return operatorRequest(na, '/admin/revoke', { cert_id: certId });
    },
  },
  {
    what: 'a withdrawal',
    async prepare(na) {
      const fingerprint = sha256Hex(await invite(na)).slice(0, 16);
      return operatorRequest(na, `/admin/invites/${fingerprint}/withdraw`);
    },
  },
  {
    what: 'a withdrawal of a batch',
    async prepare(na) {
      await invite(na, { batch: 'team', count: 3 });
      return operatorRequest(na, '/admin/invites/withdraw', { batch: 'team' });
    },
  },
  {
    what: 'a treaty',
    prepare: async (na) => operatorRequest(na, '/admin/recognition-treaties', TREATY),
  },
  {
    what: 'a policy',
    prepare: async (na) => operatorRequest(na, '/admin/policy', { rules: ['é ✓', 1.5] }),
  },
];

suite('a repeated request', () => {
  test('gets its first answer, and is carried out once', async () => {
    const na = await shared();
    for (const { what, prepare } of COMMANDS) {
      const request = await prepare(na);
      const first = await sendSigned(na, request);
      assert.ok(first.status < 300, first.text);
      const events = auditEvents(na).length;
      for (let time = 0; time < 3; time += 1) {
        assertRepeated(await sendSigned(na, again(request)), first);
      }
      assert.equal(auditEvents(na).length, events, what);
    }
  });

  test('gets it after a restart, too', async () => {
    await using na = await startTestAuthority();
    const sent: [SignedRequest, Received][] = [];
    for (const { prepare } of COMMANDS) {
      const request = await prepare(na);
      sent.push([request, await sendSigned(na, request)]);
    }
    await using restarted = await na.restart();
    for (const [request, first] of sent) {
      assertRepeated(await sendSigned(restarted, again(request)), first);
      assertRefused(await sendSigned(restarted, request));
    }
  });

  test('that arrives for the first time is carried out', async () => {
    const na = await shared();
    for (const { what, prepare } of COMMANDS) {
      const first = await sendSigned(na, again(await prepare(na)));
      assert.ok(first.status < 300, `${what}: ${first.text}`);
      assert.equal(first.headers.get('x-mesh-replayed'), null);
    }
  });

  test('is a replay without the header, and with another value of it', async () => {
    const na = await shared();
    for (const { prepare } of COMMANDS) {
      const request = await prepare(na);
      await sendSigned(na, request);
      for (const value of ['', '0', 'true', '1, 1']) {
        assertRefused(await sendSigned(na, again(request, { 'X-Mesh-Retry': value })));
      }
    }
  });

  test('is carried out once if many copies arrive at once, and all get its answer', async () => {
    await using na = await startTestAuthority();
    const request = again(operatorRequest(na, '/admin/recognition-treaties', TREATY));
    const answers = await Promise.all(Array.from({ length: 20 }, () => sendSigned(na, request)));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    const marked = answers.filter(({ headers }) => headers.get('x-mesh-replayed') === 'true');
    assert.equal(marked.length, 19);
    const { body } = await get(na, '/recognition-treaties');
    assert.equal(body.count, 1);
  });

  test('gets a refusal that followed the proof again', async () => {
    const na = await shared();
    const unknown = operatorRequest(na, '/admin/revoke', { cert_id: 'unknown' });
    const byStandard = { operator: na.standard };
    const lowTier = operatorRequest(na, '/admin/revoke', { cert_id: 'c' }, byStandard);
    const malformed = operatorRequest(na, '/admin/invite', { count: 0 });
    const beta = sovereign(freshId('beta'));
    const [stale, newest] = [2n ** 60n - 1n, 2n ** 60n].map((sequence) =>
      operatorRequest(na, IMPORT, {
        feed: beta.feed(na.clock.now(), sequence),
        issuer_public_keys: [beta.key.publicKey],
      }),
    ) as [SignedRequest, SignedRequest];
    assert.equal(outcome(await sendSigned(na, newest)), '200');
    for (const request of [unknown, lowTier, malformed, stale]) {
      const first = await sendSigned(na, request);
      const repeated = await sendSigned(na, again(request));
      const withoutId = ({ text, body }: Received) => text.replace(body.error.request_id, '');
      assert.equal(outcome(repeated), outcome(first));
      assert.equal(withoutId(repeated), withoutId(first));
      assert.equal(repeated.headers.get('x-mesh-replayed'), 'true');
    }
  });

  test('never gets invite tokens again, but gets the ids of those that were created', async () => {
    const na = await shared();
    for (const [body, count] of [
      [{}, 1],
      [{ count: 3 }, 3],
      [{ count: 1000 }, 1000],
    ] as const) {
      const request = operatorRequest(na, '/admin/invite', body);
      const first = await sendSigned(na, request);
      const repeated = await sendSigned(na, again(request));
      assert.equal(outcome(repeated), '409 already_done');
      const { details } = repeated.body.error;
      assert.equal(details.count, count);
      const created = auditEvents(na).filter(({ type }) => type === 'invite_created');
      const made = created.map((event) => event.details.token_fingerprint);
      assert.deepEqual(details.token_fingerprints, made.slice(-count).slice(0, 200));
      assert.ok(!repeated.text.includes(first.body.token_id));
    }
  });

  test('is a replay if anything in it has changed', async () => {
    const na = await shared();
    const { certId } = await joinedNode(na);
    const nonce = freshNonce();
    const request = operatorRequest(na, '/admin/revoke', { cert_id: certId }, { nonce });
    await sendSigned(na, request);
    const changed = [
      operatorRequest(na, '/admin/revoke', { cert_id: certId, reason: 'superseded' }, { nonce }),
      operatorRequest(na, '/admin/recognition-treaties', TREATY, { nonce }),
    ];
    na.clock.advance(SECOND);
    changed.push(operatorRequest(na, '/admin/revoke', { cert_id: certId }, { nonce }));
    for (const other of changed) {
      assert.equal(outcome(await sendSigned(na, again(other))), '401 admin_auth_failed');
    }
  });

  test('is a replay on another path, which signatures of version 1 do not cover', async () => {
    await using na = await startTestAuthority({
      environment: { MESH_ADMIN_SIGNATURE_V1: 'accept' },
    });
    const treaties = await Promise.all(
      ['b', 'c'].map((subject_sovereign_id) =>
        operate(na, '/admin/recognition-treaties', { ...TREATY, subject_sovereign_id }),
      ),
    );
    const [one, other] = treaties.map(
      ({ body }) => `/admin/recognition-treaties/${body.treaty_id}/revoke`,
    ) as [string, string];
    const request = operatorRequest(na, one, { reason: 'over' }, { version: 1 });
    const first = await sendSigned(na, request);
    assert.equal(first.status, 200);
    assertRepeated(await sendSigned(na, again(request)), first);
    const elsewhere = await sendSigned(na, again({ ...request, path: other }));
    assert.equal(outcome(elsewhere), '401 admin_auth_failed');
  });

  test('is stale outside the clock tolerance, like any request', async () => {
    const na = await shared();
    const request = operatorRequest(na, '/admin/recognition-treaties', TREATY);
    const first = await sendSigned(na, request);
    na.clock.advance(5 * MINUTE);
    assertRepeated(await sendSigned(na, again(request)), first);
    na.clock.advance(SECOND);
    assert.equal(outcome(await sendSigned(na, again(request))), '401 admin_auth_failed');
  });

  test('gets no answer once the key of its operator is revoked', async () => {
    await using na = await startTestAuthority();
    const request = operatorRequest(na, '/admin/invite', {}, { operator: na.standard });
    await sendSigned(na, request);
    await operate(na, `/admin/operator-keys/${na.standard.keyId}/revoke`, { reason: 'left' });
    assert.equal(outcome(await sendSigned(na, again(request))), '401 admin_auth_failed');
  });

  test('is a replay if it is a heartbeat, whose answers are not kept', async () => {
    const na = await shared();
    const { key, certId } = await joinedNode(na);
    const beat = signedByNode(na, '/heartbeat', key, { cert_id: certId });
    assert.equal((await sendSigned(na, beat)).status, 200);
    assert.equal(outcome(await sendSigned(na, again(beat))), '401 node_auth_failed');
  });

  test('gets the certificate it joined with, even if that was revoked meanwhile', async () => {
    const na = await shared();
    const request = signedByNode(na, '/join', newKey(), { invite_token: await invite(na) });
    const first = await sendSigned(na, request);
    await operate(na, '/admin/revoke', { cert_id: first.body.cert_id });
    assertRepeated(await sendSigned(na, again(request)), first);
  });
});

suite('a client whose first answer is lost', () => {
  /** Delivers every request, but loses the first answer. */
  function losing(): { readonly fetch: Fetch; readonly sent: () => number } {
    let sent = 0;
    const lossy: Fetch = async (url, init) => {
      const response = await fetch(url, init);
      if (init.method === 'GET') return response;
      sent += 1;
      if (sent === 1) throw new TypeError('fetch failed');
      return response;
    };
    return { fetch: lossy, sent: () => sent };
  }

  test('has joined once, and renewed once, with the certificates that the authority lists', async () => {
    await using na = await startTestAuthority();
    const key = newClientKey();
    const options = { url: na.url, key, now: na.clock.now };
    const joining = losing();
    const token = await invite(na);
    const joined = await createNodeClient({ ...options, ...joining }).join({ invite_token: token });
    assert.equal(joining.sent(), 2);
    const renewing = losing();
    const client = createNodeClient({ ...options, ...renewing, proof: 'header' });
    const renewed = await client.renew({ cert_id: joined.cert_id });
    assert.equal(renewing.sent(), 2);
    const issued = auditEvents(na).filter(({ type }) =>
      /^certificate_(?:issued|renewed)$/.test(type),
    );
    assert.deepEqual(
      issued.map(({ details }) => details.cert_id ?? details.new_cert_id),
      [joined.cert_id, renewed.cert_id],
    );
  });

  test('has issued one treaty, and gets the ids of the invites it created', async () => {
    await using na = await startTestAuthority();
    const { keyId, key } = na.privileged;
    const options = { url: na.url, keyId, key: asKey(key), now: na.clock.now };
    const treaty = await createOperatorClient({ ...options, ...losing() }).issueTreaty(TREATY);
    assert.equal((await get(na, '/recognition-treaties')).body.count, 1);
    const held = await get(na, `/recognition-treaties/${treaty.treaty_id}`);
    assert.equal(held.status, 200);
    const inviting = createOperatorClient({ ...options, ...losing() }).createInvites({ count: 2 });
    await assert.rejects(inviting, (error: unknown) => {
      assert.ok(error instanceof AuthorityError);
      assert.equal(error.code, 'already_done');
      assert.equal(error.details.count, 2);
      return true;
    });
  });
});

test('of an answer of more than 4 KiB only its existence is kept', () => {
  const json = (length: number) => `"${'x'.repeat(length - 2)}"`;
  const overhead = '{"answer":}'.length;
  assert.equal(keptText({ ok: true, json: json(4096 - overhead) }, null).length, 4096);
  assert.equal(keptText({ ok: true, json: json(4097 - overhead) }, null), '{"done":{}}');
  const details = { cause: '✓'.repeat(2000) };
  assert.equal(keptText({ ok: false, refusal: 'not_found', details }, null), '{"done":{}}');
});

test('when kept answers fill their memory, the oldest are discarded first', () => {
  const answers = createKeptAnswers(2500);
  for (let i = 0; i < 20; i += 1) {
    answers.keep({ digest: `${i}`, forgetAt: 60_000, request: `r${i}`, answer: 'x'.repeat(300) });
  }
  assert.equal(answers.find('0', 'r0'), undefined);
  assert.equal(answers.find('19', 'r18'), undefined);
  assert.equal(answers.find('19', 'r19'), 'x'.repeat(300));
  assert.equal(answers.find('16', 'r16'), 'x'.repeat(300));
  answers.forget(59_999);
  assert.equal(answers.find('19', 'r19'), 'x'.repeat(300));
  answers.forget(60_000);
  assert.equal(answers.find('19', 'r19'), undefined);
});
