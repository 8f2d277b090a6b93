/** The proofs of operators and nodes: the same faults, in the same order, in every form, over any bytes and on every route. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Signer } from '../src/base/crypto/primitives.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { jsonText } from '../src/base/json/write.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { NODE_PROOF_HEADER } from '../src/client/signing.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { MINUTE, SECOND } from './support/clock.ts';
import { respelled, timestampSpellings } from './support/hostile.ts';
import {
  auditEvents,
  freshNonce,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operatorRequest,
  outcome,
  provenByNode,
  type Received,
  type SignedRequest,
  sendRaw,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { nodeProofHeader, signAgentDescriptor } from './support/signing.ts';

const shared = sharedAuthority();

const TOLERANCE = 5 * MINUTE;
const PARTS = ['timestamp', 'nonce', 'signature'] as const;
type Part = (typeof PARTS)[number];

interface Change {
  readonly timestamp?: string;
  readonly nonce?: string;
  readonly signedBy?: Signer;
  /** Changes a part after it was signed; undefined removes it. */
  readonly alter?: { readonly [part in Part]?: (value: string) => string | undefined };
}

/** Someone who can prove to be who they are, in one form, again and again. */
interface Caller {
  request(change?: Change): SignedRequest | Promise<SignedRequest>;
  /** The audit entry of a refusal, without its reason. */
  readonly refused: { readonly type: string; readonly details: Record<string, unknown> };
}

interface Form {
  readonly name: string;
  /** The name of the reason if a part is missing. */
  readonly missing: string;
  readonly code: string;
  readonly longestNonce: number;
  begin(na: TestAuthority): Promise<Caller>;
}

function ofOperator(method: string, path: string): Form {
  return {
    name: `an operator's ${method} ${path}`,
    missing: 'missing_headers',
    code: '401 admin_auth_failed',
    longestNonce: 256,
    async begin(na) {
      const { keyId } = na.privileged;
      const details = { key_id: keyId, scope: path, remote_addr: '127.0.0.1' };
      return {
        request: ({ signedBy, alter = {}, ...call } = {}) =>
          operatorRequest(
            na,
            path,
            {},
            {
              ...call,
              method,
              ...(signedBy && { operator: { keyId, key: signedBy } }),
              alter(headers) {
                for (const part of PARTS) {
                  const name = `X-Admin-${part.charAt(0).toUpperCase()}${part.slice(1)}`;
                  change(headers, name, alter[part]);
                }
              },
            },
          ),
        refused: { type: 'admin_auth_failed', details },
      };
    },
  };
}

function ofNode(where: 'body' | 'header', path: string): Form {
  return {
    name: `the ${where} of ${path}`,
    missing: 'missing_fields',
    code: '401 node_auth_failed',
    longestNonce: 128,
    async begin(na) {
      const isJoin = path === '/join';
      const { key, certId } = isJoin ? { key: newKey(), certId: '' } : await joinedNode(na);
      const scope = `${isJoin ? 'join' : 'node'}:${key.publicKey}`;
      return {
        async request({ alter = {}, ...call } = {}) {
          const body = isJoin ? { invite_token: await invite(na) } : { cert_id: certId };
          return where === 'header'
            ? provenByNode(na, path, key, body, { ...call, alter: inHeader(alter) })
            : signedByNode(na, path, key, body, {
                ...call,
                alter(members) {
                  for (const part of PARTS) change(members, part, alter[part]);
                },
              });
        },
        refused: { type: 'node_auth_failed', details: { scope, remote_addr: '127.0.0.1' } },
      };
    },
  };
}

function change(
  parts: Record<string, unknown>,
  name: string,
  alter: ((value: string) => string | undefined) | undefined,
): void {
  if (alter === undefined) return;
  parts[name] = alter(String(parts[name]));
  if (parts[name] === undefined) delete parts[name];
}

const IN_HEADER = { timestamp: 'ts', nonce: 'nonce', signature: 'sig' } as const;

function inHeader(alter: Change['alter'] = {}): (header: string) => string {
  return (header) => {
    const parts = Object.fromEntries(
      header.split('; ').map((part) => [part.split('=')[0], part.slice(part.indexOf('=') + 1)]),
    );
    for (const part of PARTS) change(parts, IN_HEADER[part], alter[part]);
    return Object.entries(parts)
      .map(([name, value]) => `${name}=${value}`)
      .join('; ');
  };
}

const FORMS: readonly Form[] = [
  ofOperator('POST', '/admin/invite'),
  ofOperator('GET', '/nodes'),
  ...['/join', '/heartbeat', '/renew'].flatMap((path) => [
    ofNode('body', path),
    ofNode('header', path),
  ]),
];

/** The messages to a node [core-3-1]. */
const MESSAGES: { readonly [reason: string]: RegExp } = {
  missing_fields: /is missing$/,
  invalid_timestamp: /timestamp is not valid$/,
  stale_timestamp: /timestamp is too old, or too far ahead$/,
  nonce_replay: /nonce was used before$/,
  invalid_signature: /signature is not valid$/,
};

/** One of each form, which is tried with every fault; the others with the first of each reason. */
const WITH_ALL_FAULTS = [FORMS[0], FORMS[2], FORMS[5]];

type Fault = readonly [name: string, reason: string, change: Change];

/** One fault each, or several, of which the first is reported. */
function faultsOf(form: Form, na: TestAuthority, spent: string): readonly Fault[] {
  const { missing } = form;
  const aged = (milliseconds: number) => ({
    timestamp: formatInstant(na.clock.now() - milliseconds),
  });
  const stale = aged(TOLERANCE + 1);
  const never = { timestamp: 'never' };
  const signedBy = newKey();
  const signature = (text: string): Change => ({ alter: { signature: () => text } });
  const faults: readonly Fault[] = [
    ...PARTS.flatMap((part): Fault[] => [
      [`without ${part}`, missing, { alter: { [part]: () => undefined } }],
      [`with an empty ${part}`, missing, { alter: { [part]: () => '' } }],
    ]),
    ['signed at no time', 'invalid_timestamp', never],
    ['signed at a number', 'invalid_timestamp', { timestamp: '1767225600' }],
    ['1 ms too old', 'stale_timestamp', stale],
    ['1 ms too far ahead', 'stale_timestamp', aged(-TOLERANCE - 1)],
    ['1 µs too old', 'stale_timestamp', aged(TOLERANCE + 0.001)],
    ['1 µs too far ahead', 'stale_timestamp', aged(-TOLERANCE - 0.001)],
    ['with a nonce used before', 'nonce_replay', { nonce: spent }],
    ['signed by another key', 'invalid_signature', { signedBy }],
    ['with a signature that is no base64', 'invalid_signature', signature('!!')],
    ['with a signature of 63 bytes', 'invalid_signature', signature(zeros(63))],
    ['with 64 zero bytes as signature', 'invalid_signature', signature(zeros(64))],
    [
      'with its signature in a second spelling',
      'invalid_signature',
      { alter: { signature: respelled } },
    ],
    ['with another nonce than it signed', 'invalid_signature', { alter: { nonce: () => 'other' } }],

    ['no signature, no time', missing, { ...never, alter: { signature: () => '' } }],
    ['no time, replayed', 'invalid_timestamp', { ...never, nonce: spent }],
    ['no time, wrongly signed', 'invalid_timestamp', { ...never, signedBy }],
    ['stale, replayed', 'stale_timestamp', { ...stale, nonce: spent }],
    ['stale, wrongly signed', 'stale_timestamp', { ...stale, signedBy }],
    ['replayed, wrongly signed', 'nonce_replay', { nonce: spent, signedBy }],
  ];
  if (WITH_ALL_FAULTS.includes(form)) return faults;
  const reasons = faults.map(([, reason]) => reason);
  return faults.filter(([, reason], index) => reasons.indexOf(reason) === index);
}

for (const form of FORMS) {
  suite(form.name, () => {
    test('is refused for each fault, which is audited, and for the first of several', async () => {
      const na = await shared();
      const { request, refused } = await form.begin(na);
      const spent = freshNonce();
      assert.equal(outcome(await sendSigned(na, await request({ nonce: spent }))), '200');
      for (const [fault, reason, given] of faultsOf(form, na, spent)) {
        const sent = await request(given);
        const before = auditEvents(na).length;
        const answer = await sendSigned(na, sent);
        assert.equal(outcome(answer), form.code, fault);
        assert.deepEqual(answer.body.error.details, {});
        if (form.missing === 'missing_fields') {
          assert.match(answer.body.error.message, MESSAGES[reason] ?? /^$/);
        }
        const [event, ...more] = auditEvents(na).slice(before);
        const { nonce: _, ...details } = event?.details ?? {};
        assert.deepEqual(
          { ...event, details },
          { ...refused, details: { ...refused.details, reason } },
          fault,
        );
        assert.deepEqual(more, [], fault);
      }
      const long = await request({ nonce: 'n'.repeat(form.longestNonce + 1) });
      assert.equal(outcome(await sendSigned(na, long)), form.code);
      const valid = await sendSigned(na, await request());
      assert.equal(outcome(valid), '200', 'none of this keeps anyone from a valid request');
    });

    test('is accepted 300 s early or late, in every spelling of the time, and with a long nonce', async () => {
      const na = await shared();
      na.clock.advance(SECOND);
      const { request } = await form.begin(na);
      na.clock.advance(SECOND);
      const early = { timestamp: formatInstant(na.clock.now() + TOLERANCE) };
      const late = { timestamp: formatInstant(na.clock.now() - TOLERANCE) };
      const spellings = timestampSpellings(na.clock.now()).map(([, timestamp]) => ({ timestamp }));
      const spelled = WITH_ALL_FAULTS.includes(form) ? spellings : spellings.slice(-1);
      const nonces = [freshNonce().padEnd(form.longestNonce, 'n'), `AZ._:-${freshNonce()}`];
      for (const given of [...spelled, ...nonces.map((nonce) => ({ nonce })), late, early]) {
        // A node joins, and renews, only a few times.
        const asked = /renew|join/.test(form.name) ? (await form.begin(na)).request : request;
        const answer = await sendSigned(na, await asked(given));
        assert.equal(outcome(answer), '200', JSON.stringify(given));
      }
    });

    test('does not spend its nonce with a wrong signature, and spends it for this key alone', async () => {
      const na = await shared();
      const { request } = await form.begin(na);
      const nonce = freshNonce();
      const answers: Received[] = [];
      for (const given of [{ signedBy: newKey() }, {}, {}]) {
        answers.push(await sendSigned(na, await request({ ...given, nonce })));
      }
      assert.deepEqual(answers.map(outcome), [form.code, '200', form.code]);
      if (form.code === '401 admin_auth_failed') {
        const standard = { operator: na.standard, nonce };
        const other = operatorRequest(na, '/admin/invite', {}, standard);
        assert.equal(outcome(await sendSigned(na, other)), '200');
      } else {
        const other = await form.begin(na);
        assert.equal(outcome(await sendSigned(na, await other.request({ nonce }))), '200');
      }
    });

    test('is accepted once if 20 copies arrive at once', async () => {
      const na = await shared();
      const request = await (await form.begin(na)).request();
      const answers = await Promise.all(Array.from({ length: 20 }, () => sendSigned(na, request)));
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    });
  });
}

/** Minutes in which what follows a restart is checked. */
const AROUND_RESTARTS = [1, 4, 5, 6, 10];

for (const restarts of [false, true]) {
  test(`what was accepted is refused for as long as it is current${restarts ? ', over restarts' : ''}`, async () => {
    await using started = await startTestAuthority();
    let na = started;
    const { clock } = na;
    const callers = await Promise.all(FORMS.map((form) => form.begin(na)));
    const ahead = await Promise.all(FORMS.map((form) => form.begin(na)));
    clock.advance(SECOND);
    const sent: SignedRequest[] = [];
    async function accept(asked: readonly Caller[], timestamp?: string): Promise<void> {
      for (const { request } of asked) {
        const given = await request(timestamp === undefined ? {} : { timestamp });
        assert.equal(outcome(await sendSigned(na, given)), '200');
        sent.push(given);
        // A body binds no route: heartbeats and renewals have one nonce scope.
        const other = { '/heartbeat': '/renew', '/renew': '/heartbeat' }[given.path];
        if (other !== undefined && given.init.body?.includes('"signature"')) {
          sent.push({ ...given, path: other });
        }
      }
    }
    async function assertRefused(): Promise<void> {
      for (const given of sent) {
        assert.match(outcome(await sendSigned(na, given)), /^401 |^403 invalid_invite_token$/);
      }
    }
    async function restart(): Promise<void> {
      if (restarts) na = await na.restart();
    }
    await accept(callers);
    await accept(ahead, formatInstant(clock.now() + TOLERANCE));
    await assertRefused();
    const reasons = auditEvents(na).flatMap(({ details }) => details.reason ?? []);
    assert.deepEqual(new Set(reasons), new Set(['nonce_replay']));
    await restart();
    await assertRefused();
    clock.advance(SECOND);
    await accept(callers.filter((_, index) => !FORMS[index]?.name.endsWith('/join')));
    for (let minute = 1; minute <= 10; minute += 1) {
      clock.advance(minute === 5 ? MINUTE - SECOND : MINUTE);
      await na.flush();
      if (minute === 5) await restart();
      // Between restarts, it is decided from memory.
      if (!restarts || AROUND_RESTARTS.includes(minute)) await assertRefused();
    }
    await na[Symbol.asyncDispose]();
  });
}

function zeros(bytes: number): string {
  return Buffer.alloc(bytes).toString('base64');
}

// Proofs over the bytes of a body, while threads have to ask each other about limits.

const ROUTES = ['/heartbeat', '/renew', '/agents'] as const;
type Path = (typeof ROUTES)[number];

/** How many forgeries of one node are judged; the next are refused unread. */
const FAILURES = 2;

/** One node has failed too often; each route has the given limit. */
async function startLimited(threads: string, limit: string): Promise<TestAuthority> {
  const na = await startTestAuthority({
    flags: { threads },
    environment: {
      MESH_RATE_LIMIT_HEARTBEAT: limit,
      MESH_RATE_LIMIT_RENEW: limit,
      MESH_RATE_LIMIT_AGENTS: limit,
      MESH_RATE_LIMIT_NODE_FAILURES: `${FAILURES}/60`,
    },
  });
  const forgery = { cert_id: 'c', node_public_key: newKey().publicKey };
  const call = { signedBy: newKey() };
  for (let tries = 0; tries < 3; tries += 1) {
    await nodeRequest(na, '/heartbeat', newKey(), forgery, call);
  }
  return na;
}

function bodyFor(na: TestAuthority, path: Path, { key, certId }: TestNode): JsonObject {
  if (path !== '/agents') return { node_public_key: key.publicKey, cert_id: certId };
  const agent = {
    agent_id: 'agent-1',
    network_name: 'alpha',
    capabilities: ['tag'],
    endpoint: { host: '127.0.0.1', port: 7448 },
    lifetimeSeconds: 600,
  };
  return signAgentDescriptor(agent, key, na.clock.now());
}

/** A request whose header proves `signedText`, on its own connection. */
async function proving(
  na: TestAuthority,
  path: Path,
  { key }: TestNode,
  bodyText: string,
  signedText: string,
): Promise<Received> {
  const header = await nodeProofHeader(
    {
      method: 'POST',
      path,
      query: {},
      audience: na.audience,
      bodyText: signedText,
      timestamp: formatInstant(na.clock.now()),
      nonce: freshNonce(),
    },
    key,
  );
  const headers = { [NODE_PROOF_HEADER]: header, 'Content-Length': Buffer.byteLength(bodyText) };
  return sendRaw(na, 'POST', path, { headers, pieces: [bodyText] });
}

for (const [threads, limit] of [
  ['1', 'off'],
  ['3', 'off'],
  ['3', '1000/60'],
] as const) {
  test(`with ${threads} threads and limit ${limit} 10 of 10 header proofs pass on every route, and none over other bytes`, async () => {
    await using na = await startLimited(threads, limit);
    for (const path of ROUTES) {
      const node = await joinedNode(na);
      for (let round = 0; round < 10; round += 1) {
        na.clock.advance(1);
        const text = jsonText(bodyFor(na, path, node));
        assert.equal(outcome(await proving(na, path, node, text, text)), '200', path);
      }
      const forger = await joinedNode(na);
      for (let round = 0; round < 10; round += 1) {
        const text = jsonText(bodyFor(na, path, forger));
        const forged = await proving(na, path, forger, text, '');
        const refused = round < FAILURES ? '401 node_auth_failed' : '429 rate_limit_exceeded';
        assert.equal(outcome(forged), refused, path);
      }
    }
  });
}
