/**
 * Random histories with a backup in the middle, followed by a restore with the last public lists: nothing that was ever
 * revoked is accepted, and no sequence number is published twice.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { verifyAuditChain } from '../../src/authority/audit/audit.ts';
import { sha256Hex } from '../../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { createBackup } from '../../src/maintenance/backup/create.ts';
import { readBackup } from '../../src/maintenance/backup/file.ts';
import { applyRestore } from '../../src/maintenance/restore/apply.ts';
import { planRestore, type RestorePlan } from '../../src/maintenance/restore/plan.ts';
import { signRecord, soleSigner } from '../../src/protocol/records/signed-record.ts';
import { type AuditEntry, GENESIS_HASH } from '../../src/store/store.ts';
import { INVITE } from '../simulation/instances/asking.ts';
import { TOLERANCE } from '../simulation/model/access.ts';
import { AUTHORITY, GENESIS, NETWORK, OPERATORS } from '../simulation/requests.ts';
import { type SimulatedRuntime, simulatedRuntime } from '../simulation/runtime.ts';
import { type Accepted, Lived, valueIn } from './lived.ts';
import type { Route, StatePlace } from './places.ts';

type Step =
  | { readonly do: 'enrol' | 'invite' | 'attest' | 'operatorOff' | 'flush' }
  | {
      readonly do: 'renew' | 'revoke' | 'compromise' | 'revokeAttestation';
      readonly which: number;
    };

export interface History {
  readonly before: readonly Step[];
  readonly after: readonly Step[];
  /** Whether a head file was kept. */
  readonly hasHead: boolean;
}

const which = fc.nat(5);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ do: 'enrol' as const }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('invite', 'operatorOff', 'flush').map((name) => ({ do: name })),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'attest' as const }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('renew', 'revoke', 'revoke', 'compromise', 'revokeAttestation'),
      which,
    }),
  },
) as fc.Arbitrary<Step>;

export const HISTORY: fc.Arbitrary<History> = fc.record({
  before: fc.array(step, { minLength: 2, maxLength: 12 }),
  after: fc.array(step, { minLength: 1, maxLength: 12 }),
  hasHead: fc.boolean(),
});

interface Certificate {
  readonly id: string;
  readonly key: Signer;
}

/** What an outside observer knows. */
interface Observed {
  readonly certificates: Certificate[];
  readonly attestations: string[];
  readonly revokedCertificates: Set<string>;
  readonly revokedAttestations: Set<string>;
  readonly openInvites: string[];
  readonly accepted: Accepted[];
  keysOff: number;
}

/** In memory if the system supports it: with thousands of folders, the test would mostly wait for the disk. */
const PLACE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** Throws if the restored authority breaks a rule. */
export async function playAndRestore(history: History, { from, to }: Route): Promise<void> {
  const folder = mkdtempSync(join(PLACE, 'mesh-restore-'));
  const [first, second] = [await from(join(folder, 'first')), await to(join(folder, 'second'))];
  try {
    await play(history, first, second, join(folder, 'mesh.backup'));
  } finally {
    for (const place of [first, second]) await place.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function play(
  { before, after, hasHead }: History,
  first: StatePlace,
  second: StatePlace,
  path: string,
): Promise<void> {
  const runtime = simulatedRuntime();
  const observed: Observed = {
    certificates: [],
    attestations: [],
    revokedCertificates: new Set(),
    revokedAttestations: new Set(),
    openInvites: [],
    accepted: [],
    keysOff: 0,
  };
  const authority = await Lived.open(await first.open(), runtime);
  for (const one of before) await take(one, authority, observed);
  await backUp(first, path, runtime);
  const known = new Set(observed.certificates.map(({ id }) => id));
  const keysOffBefore = observed.keysOff;
  for (const one of after) await take(one, authority, observed);
  const [crl, feed] = [authority.document('crl'), authority.document('sovereign_revocation_feed')];
  await authority.close();
  const head = hasHead ? await headOf(first, observed, crl, feed, runtime) : null;

  runtime.advance(500);
  const { isProven } = await restore(path, second, { crls: [crl], feeds: [feed], head }, runtime);
  const restored = await Lived.open(await second.open(), runtime);
  await refusesAllThatWasSent(restored, observed);
  runtime.advance(TOLERANCE + 1000);
  await refusesAllThatWasSent(restored, observed);
  await refusesTheRevoked(restored, observed);
  await keepsInvitesIf(isProven, restored, observed);
  await acceptsTheOthers(restored, observed, known);
  if (hasHead) assert.equal(await usableOperators(restored), OPERATORS.length - observed.keysOff);
  else assert.ok((await usableOperators(restored)) <= OPERATORS.length - keysOffBefore);
  assertListsContinue(restored, observed, crl, feed);
  await restored.close();
  assert.equal((await verifyAuditChain(second.auditLog(), GENESIS_HASH)).valid, true);
}

let keys = 0;

function newKey(): Signer {
  keys += 1;
  return signerFromSeed(Buffer.from(sha256Hex(`node ${keys}`), 'hex'));
}

async function take(step: Step, authority: Lived, observed: Observed): Promise<void> {
  const ask = (request: Accepted) => authority.ask(request, observed.accepted);
  switch (step.do) {
    case 'enrol': {
      const token = await invite(authority, observed);
      const key = newKey();
      const { cert_id } = valueIn(await ask(authority.join(key, token)));
      observed.certificates.push({ id: String(cert_id), key });
      await ask(authority.heartbeat(key, String(cert_id)));
      return;
    }
    case 'invite':
      observed.openInvites.push(await invite(authority, observed));
      return;
    case 'renew': {
      const certificate = observed.certificates.at(-1 - step.which);
      if (certificate === undefined) return;
      const answer = await ask(authority.renew(certificate.key, certificate.id));
      if (!answer.ok) return;
      observed.certificates.push({ id: String(valueIn(answer).cert_id), key: certificate.key });
      return;
    }
    case 'revoke':
    case 'compromise': {
      const certificate = observed.certificates.at(-1 - step.which);
      if (certificate === undefined) return;
      const reason = step.do === 'compromise' ? 'key_compromise' : 'superseded';
      const request = authority.operator('revokeCertificate', {
        cert_id: certificate.id,
        node_public_key: null,
        reason,
      });
      const { revoked_cert_ids = [] } = valueIn(await ask(request));
      observed.revokedCertificates.add(certificate.id);
      for (const id of revoked_cert_ids as string[]) observed.revokedCertificates.add(id);
      return;
    }
    case 'attest': {
      const terms = {
        subject_id: `subject-${observed.attestations.length}`,
        roles: ['role:member'],
        validity_hours: 24,
        subject_public_key: null,
        claims: {},
        issuer_sovereign_id: NETWORK,
      };
      const answer = valueIn(await ask(authority.operator('issueAttestation', terms)));
      observed.attestations.push(String(answer.attestation_id));
      return;
    }
    case 'revokeAttestation': {
      const id = observed.attestations.at(-1 - step.which);
      if (id === undefined) return;
      const given = { attestation_id: id, reason: 'left' };
      await ask(authority.operator('revokeAttestation', given));
      observed.revokedAttestations.add(id);
      return;
    }
    case 'operatorOff': {
      const target = OPERATORS[OPERATORS.length - 1 - observed.keysOff];
      if (observed.keysOff >= OPERATORS.length - 1 || target === undefined) return;
      const given = { key_id: target.keyId, reason: 'left', unless_last_privileged: false };
      valueIn(await ask(authority.operator('revokeOperatorKey', given)));
      observed.keysOff += 1;
      return;
    }
    default:
      return authority.flush();
  }
}

async function invite(authority: Lived, observed: Observed): Promise<string> {
  const request = authority.operator('createInvites', INVITE);
  return String(valueIn(await authority.ask(request, observed.accepted)).token_id);
}

async function backUp(place: StatePlace, path: string, runtime: SimulatedRuntime): Promise<void> {
  const source = await place.source();
  await createBackup({
    source,
    genesis: GENESIS,
    openSigner: async () => ({ signer: soleSigner(AUTHORITY), close: async () => undefined }),
    verify: verifySignature,
    path,
    recipients: [],
    now: runtime.now(),
  });
  await source.close();
}

async function headOf(
  place: StatePlace,
  observed: Observed,
  crl: JsonObject,
  feed: JsonObject,
  runtime: SimulatedRuntime,
): Promise<JsonObject> {
  const entries: AuditEntry[] = [];
  for await (const entry of place.auditLog()) entries.push(entry);
  const off = OPERATORS.slice(OPERATORS.length - observed.keysOff).map(({ keyId }) => keyId);
  const record = {
    format: 'mesh-na-head',
    format_version: 1,
    network_name: NETWORK,
    epoch: 1,
    revision: 0,
    audit_length: entries.length,
    audit_head: entries.at(-1)?.hash ?? GENESIS_HASH,
    crl_sequence: Number(crl.sequence),
    feed_sequence: Number(feed.sequence),
    operator_keys_off: off.toSorted(),
    written_at: formatInstant(runtime.now()),
  };
  return signRecord(record, soleSigner(AUTHORITY)) as unknown as JsonObject;
}

async function restore(
  path: string,
  place: StatePlace,
  evidence: { crls: JsonObject[]; feeds: JsonObject[]; head: JsonObject | null },
  runtime: SimulatedRuntime,
): Promise<RestorePlan> {
  const plan = await planRestore(
    await readBackup(path, []),
    evidence,
    runtime.now(),
    verifySignature,
  );
  await applyRestore({
    plan,
    bytes: await readBackup(path, []),
    target: await place.target(),
    verify: verifySignature,
    runtime,
    clockTolerance: TOLERANCE,
  });
  return plan;
}

async function refusesAllThatWasSent(authority: Lived, observed: Observed): Promise<void> {
  for (const request of observed.accepted) {
    const answer = await request.send(authority);
    assert.equal(answer.ok, false, `${request.label} is accepted again`);
  }
}

async function refusesTheRevoked(authority: Lived, observed: Observed): Promise<void> {
  for (const { id, key } of observed.certificates) {
    if (!observed.revokedCertificates.has(id)) continue;
    for (const request of [authority.heartbeat(key, id), authority.renew(key, id)]) {
      assert.equal((await request.send(authority)).ok, false, `${request.label}, which is revoked`);
    }
  }
  for (const id of observed.attestations) {
    const question = { attestation: { id, issuer: NETWORK }, treaty: null };
    const { attestation_revoked_here } = valueIn(await authority.call('askRevocations', question));
    assert.equal(attestation_revoked_here, observed.revokedAttestations.has(id), id);
  }
}

/** If entries may be missing, an invite that looks unused may have been used. */
async function keepsInvitesIf(
  isProven: boolean,
  authority: Lived,
  observed: Observed,
): Promise<void> {
  for (const token of observed.openInvites) {
    const answer = await authority.join(newKey(), token).send(authority);
    assert.equal(answer.ok, isProven, 'an invite that may have been used');
  }
}

/** Certificates in the backup that were not revoked are accepted. */
async function acceptsTheOthers(
  authority: Lived,
  observed: Observed,
  known: ReadonlySet<string>,
): Promise<void> {
  const renewed = new Set<string>();
  for (const { id, key } of observed.certificates) {
    if (renewed.has(key.publicKey) || !known.has(id)) continue;
    renewed.add(key.publicKey);
    const own = observed.certificates.filter((other) => other.key === key);
    if (own.length > 1 || observed.revokedCertificates.has(id)) continue;
    const answer = await authority.heartbeat(key, id).send(authority);
    assert.equal(answer.ok, true, `certificate ${id} was never revoked: ${JSON.stringify(answer)}`);
  }
}

async function usableOperators(authority: Lived): Promise<number> {
  let usable = 0;
  for (const operator of OPERATORS) {
    const answer = await authority.operator('createInvites', INVITE, operator).send(authority);
    if (answer.ok) usable += 1;
  }
  return usable;
}

/** Every revocation is on the new lists, whose sequence numbers exceed all published ones. */
function assertListsContinue(
  authority: Lived,
  observed: Observed,
  crl: JsonObject,
  feed: JsonObject,
): void {
  const nextCrl = authority.document('crl');
  const nextFeed = authority.document('sovereign_revocation_feed');
  assert.ok(Number(nextCrl.sequence) > Number(crl.sequence));
  assert.ok(Number(nextFeed.sequence) > Number(feed.sequence));
  const listed = (nextCrl.revoked_certificates as JsonObject[]).map(
    (entry) => entry.certificate_id,
  );
  assert.deepEqual(new Set(listed), observed.revokedCertificates);
  assert.equal(listed.length, observed.revokedCertificates.size);
  assert.deepEqual(
    new Set(nextFeed.revoked_attestation_ids as string[]),
    observed.revokedAttestations,
  );
}
