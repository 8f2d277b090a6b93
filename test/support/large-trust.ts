/** Treaties and attestations of a large network, written straight into the store; nobody signed them. */
import type { Attestation } from '../../machines/attestation.ts';
import type { Treaty } from '../../machines/recognition-treaty.ts';
import { canonicalJson } from '../../src/base/json/write.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import type { SubjectWrite } from '../../src/store/store.ts';
import { HOUR } from './clock.ts';
import { openStoreOf } from './test-stores.ts';

export interface LargeTrust {
  readonly treaties: number;
  readonly attestations: number;
  /** The name of a sovereign; a tenth as many of them as there are treaties by default. */
  readonly nameOf?: (index: number) => string;
}

const BATCH = 5000;
const KEY = Buffer.alloc(32, 7).toString('base64');

export async function seedTrust(dataDir: string, now: number, given: LargeTrust): Promise<void> {
  const { treaties, attestations, nameOf = sovereignName } = given;
  const sovereigns = Math.max(2, Math.floor(treaties / 10));
  const store = await openStoreOf({ dataDir });
  const writeAll = async (count: number, subject: (index: number) => SubjectWrite) => {
    for (let start = 0; start < count; start += BATCH) {
      const subjects = Array.from({ length: Math.min(BATCH, count - start) }, (_, index) =>
        subject(start + index),
      );
      await store.commit({ subjects, removals: [], nonces: [], audit: [] });
    }
  };
  await writeAll(treaties, (index) => {
    const [from, to] = [index, index * 7 + 1 + Math.floor(index / sovereigns)];
    return treaty(index, nameOf(from % sovereigns), nameOf(to % sovereigns), now);
  });
  await writeAll(attestations, (index) => attestation(index, now));
  await store.close();
}

export function sovereignName(index: number): string {
  return `Sovereign-${String(index).padStart(5, '0')}`;
}

export function treatyId(index: number): string {
  return uuid('a', index);
}

function uuid(kind: string, index: number): string {
  const spread = (index * 2654435761) % 2 ** 32;
  return `${spread.toString(16).padStart(8, '0')}-0000-4000-8000-${kind}${index.toString(16).padStart(11, '0')}`;
}

function treaty(index: number, issuer: string, subject: string, now: number): SubjectWrite {
  const id = treatyId(index);
  const issuedAt = now - HOUR + index;
  const expiresAt = now + (1000 + (index % 700)) * HOUR;
  const revokedAt = index % 10 === 3 ? now - 1 : null;
  const context: Treaty = {
    json: canonicalJson({
      treaty_id: id,
      issuer_sovereign_id: issuer,
      subject_sovereign_id: subject,
      subject_public_keys: [KEY],
      scope: { allowed_roles: [], accepted_statuses: ['active'], claims: {} },
      ...unsigned(issuedAt, expiresAt),
      metadata: {},
    }),
    issuer,
    subject,
    subjectKeys: [KEY],
    issuedAt,
    validFrom: formatInstant(issuedAt),
    expiresAt,
    revokedAt,
    revocationReason: revokedAt === null ? null : 'ended',
    followed: [],
  };
  const value = revokedAt === null ? 'active' : 'revoked';
  return created('recognition-treaty', id, value, context);
}

function attestation(index: number, now: number): SubjectWrite {
  const id = uuid('b', index);
  const [issuer, subject, issuedAt] = ['alpha', `agent-${index}`, now - HOUR + index];
  const context: Attestation = {
    json: canonicalJson({
      attestation_id: id,
      issuer_sovereign_id: issuer,
      subject_id: subject,
      subject_public_key: null,
      roles: [],
      ...unsigned(issuedAt, issuedAt + HOUR),
      claims: {},
    }),
    issuer,
    subject,
    issuedAt,
    revokedAt: null,
    revocationReason: null,
  };
  return created('attestation', id, 'active', context);
}

/** What both kinds of record have. */
function unsigned(issuedAt: number, expiresAt: number) {
  const from = formatInstant(issuedAt);
  const window = { issued_at: from, valid_from: from, expires_at: formatInstant(expiresAt) };
  return { status: 'active', ...window, issued_by: 'na', signatures: [] };
}

function created(kind: string, id: string, value: string, context: object): SubjectWrite {
  return { kind, id, version: 1, replaces: 0, snapshot: { value, context } };
}
