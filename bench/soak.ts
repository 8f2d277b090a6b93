/**
 * Enrolls, renews and revokes over HTTP until there are thousands of certificates, with one thread and with two. Then
 * every certificate must answer as predicted by a simple model of the acknowledged operations.
 */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import type { Settings } from './contest.ts';
import {
  type FleetNode,
  heartbeatRequest,
  httpRequest,
  inviteSigner,
  joinRequest,
  MAX_INVITES,
  newKeys,
  operatorSigner,
  renewalRequest,
} from './fleet.ts';
import { type Answered, type Lane, openLane } from './load/connection.ts';
import type { Load } from './load.ts';
import type { Report } from './report.ts';
import { type AuthorityProcess, startAuthority } from './servers.ts';

/** Five blocks of the tables, so that block boundaries are crossed several times. */
const CERTIFICATES = 20_500;
const CONNECTIONS = 32;

interface Body {
  readonly [member: string]: unknown;
}

interface Model {
  readonly usable: string[];
  /** Certificates that are neither revoked nor in use by a lane. */
  readonly valid: FleetNode[];
  readonly revoked: FleetNode[];
  issued: number;
}

export async function benchSoak(_load: Load, settings: Settings): Promise<Report> {
  const notes: string[] = [];
  for (const threads of [1, 2]) {
    await using na = await startAuthority(null, threads);
    const lanes = await Promise.all(Array.from({ length: CONNECTIONS }, () => openLane(na)));
    const model: Model = { usable: [], valid: [], revoked: [], issued: 0 };
    const startedAt = systemRuntime.elapsed();
    await Promise.all(lanes.map(({ ask }) => soak(na, ask, model, settings)));
    const seconds = (systemRuntime.elapsed() - startedAt) / 1000;
    await checkAnswers(lanes, model);
    for (const { close } of lanes) close();
    notes.push(
      `${threads} thread${threads === 1 ? '' : 's'}: ${model.issued} certificates, ` +
        `${model.revoked.length} revoked, in ${seconds.toFixed(0)} s; every answer as the model has it`,
    );
  }
  return {
    benchmark: 'soak',
    about: `enrolls, renews and revokes to ${CERTIFICATES} certificates on ${CONNECTIONS} connections`,
    lines: [],
    comparisons: [],
    notes,
  };
}

/** The work of one lane: of ten operations, five join, four renew and one revokes. */
async function soak(
  na: AuthorityProcess,
  ask: Lane['ask'],
  model: Model,
  settings: Settings,
): Promise<void> {
  const revocation = revocationSigner(na);
  while (model.issued < CERTIFICATES) {
    const chosen = randomInt(10);
    const node = chosen < 5 ? undefined : takeAny(model.valid);
    if (node === undefined) await enroll(na, ask, model, settings);
    else if (chosen < 9) {
      const renewed = await accepted(ask(renewalRequest(node)), 'renew');
      model.valid.push(node);
      addIssued(model, { key: node.key, certId: String(renewed.cert_id) }, settings);
    } else {
      await accepted(ask(revocation(node.certId)), 'revoke');
      model.revoked.push(node);
    }
  }
}

async function enroll(
  { network }: AuthorityProcess,
  ask: Lane['ask'],
  model: Model,
  settings: Settings,
): Promise<void> {
  const token = model.usable.pop();
  if (token === undefined) {
    const invites = inviteSigner(network)({ count: MAX_INVITES, token_expiry_hours: 24 });
    const { tokens } = await accepted(ask(invites), 'invite');
    for (const { token_id } of tokens as { token_id: string }[]) model.usable.push(token_id);
    return;
  }
  const [key] = newKeys(1);
  if (key === undefined) return;
  const joined = await accepted(ask(joinRequest(key, token)), 'join');
  addIssued(model, { key, certId: String(joined.cert_id) }, settings);
}

function addIssued(model: Model, node: FleetNode, { progress }: Settings): void {
  model.valid.push(node);
  model.issued += 1;
  if (model.issued % 5000 === 0) progress(`${model.issued} certificates`);
}

function revocationSigner({ network, dataDir }: AuthorityProcess) {
  const seed = readKeyFile(join(dataDir, 'keys', 'operator-privileged.key')).toString('base64');
  const privileged = { ...network, operatorKeyId: 'ops-privileged', operatorSeed: seed };
  const sign = operatorSigner(privileged, 'POST', '/admin/revoke');
  return (certId: string) => {
    const body = { cert_id: certId, reason: 'unspecified' };
    return httpRequest('POST', '/admin/revoke', sign(body), JSON.stringify(body));
  };
}

/** Sends a heartbeat with every certificate; a single lane sends those of one key, in the order of signing. */
async function checkAnswers(lanes: readonly Lane[], model: Model): Promise<void> {
  const expected = [
    ...model.valid.map((node) => ({ node, status: 200 })),
    ...model.revoked.map((node) => ({ node, status: 403 })),
  ];
  const ofKey = new Map<string, typeof expected>();
  for (const one of expected) {
    const known = ofKey.get(one.node.key.publicKey);
    if (known === undefined) ofKey.set(one.node.key.publicKey, [one]);
    else known.push(one);
  }
  const waiting = [...ofKey.values()];
  await Promise.all(
    lanes.map(async ({ ask }) => {
      for (let group = waiting.pop(); group !== undefined; group = waiting.pop()) {
        for (const { node, status } of group) {
          const answer = await ask(heartbeatRequest(node, systemRuntime.now()));
          if (answer.status === status) continue;
          throw new Error(`${node.certId} answers ${answer.status} instead of ${status}`);
        }
      }
    }),
  );
}

async function accepted(asked: Promise<Answered>, what: string): Promise<Body> {
  const { status, text } = await asked;
  if (status !== 200) throw new Error(`${what} was answered ${status}: ${text}`);
  return JSON.parse(text) as Body;
}

function takeAny(nodes: FleetNode[]): FleetNode | undefined {
  const at = nodes.length === 0 ? 0 : randomInt(nodes.length);
  const [taken] = nodes.splice(at, 1);
  return taken;
}
