/**
 * A client from before there were successions, written from the contract alone: it has pinned the authority's key,
 * verifies with Node's own cryptography, and drops members that it does not know [core-1-4].
 */
import { createHash, createPublicKey, verify } from 'node:crypto';

type Json = { readonly [name: string]: unknown };

/** The signed members of each record, in the version of the contract that this client was written for. */
const MEMBERS = {
  certificate: 'cert_id node_public_key network_name roles issued_at expires_at issued_by',
  crl: 'crl_id sequence issued_at next_update issuer revoked_certificates',
  delta: 'crl_id sequence issued_at next_update issuer list_signatures entries_digest',
  policy: 'policy_id issued_by min_client_version issued_at allowed_ports allowed_services routing',
  bulletin:
    'version network_name issued_at crl_sequence crl_digest policy_id genesis_digest log_size',
  attestation:
    'attestation_id issuer_sovereign_id subject_id issued_by subject_public_key roles status issued_at valid_from expires_at claims',
  treaty:
    'treaty_id issuer_sovereign_id subject_sovereign_id issued_by subject_public_keys scope status issued_at valid_from expires_at metadata',
  feed: 'feed_id issuer_sovereign_id issued_by sequence issued_at revoked_attestation_ids revocation_reasons',
  license:
    'policy_id licensor_sovereign_id licensee_sovereign_id allowed_source_ids allowed_access_types max_volume_bytes_per_session prohibited_classification_tags valid_from valid_until',
} as const;

export type EarlierRecord = keyof typeof MEMBERS;

export interface EarlierClient {
  /** Whether any signature verifies under the pinned key. */
  verifies(record: EarlierRecord, received: Json): boolean;
  /** Accepts a whole list, and then a delta; returns what is wrong, or null [core-5-5] [core-5-5-1]. */
  takeList(crl: Json, now: number): string | null;
  continueList(delta: Json, now: number): string | null;
  /** What is wrong with a bulletin by the four checks of [core-5-14], or null. */
  takeBulletin(bulletin: Json): string | null;
}

export function createEarlierClient(networkName: string, pinnedKey: string): EarlierClient {
  const raw = Buffer.from(pinnedKey, 'base64');
  const prefix = Buffer.from('302a300506032b6570032100', 'hex');
  const key = createPublicKey({ key: Buffer.concat([prefix, raw]), format: 'der', type: 'spki' });
  let entries: readonly unknown[] = [];
  let sequence = -1;
  let digest = '';
  let logSize = 0;

  function verifies(record: EarlierRecord, received: Json): boolean {
    const members = MEMBERS[record].split(' ').map((name) => [name, received[name]]);
    const text = Buffer.from(canonical(Object.fromEntries(members)));
    const signatures = received.signatures ?? [received.signature];
    return (signatures as { sig: string }[]).some(({ sig }) =>
      verify(null, text, key, Buffer.from(sig, 'base64')),
    );
  }

  function take(list: Json, all: readonly unknown[], now: number): string | null {
    if (Number(list.sequence) < sequence) return 'its sequence is lower';
    if (canonical(all.slice(0, entries.length)) !== canonical(entries)) return 'it lacks entries';
    if (Date.parse(String(list.next_update)) < now) return 'it is stale';
    entries = all;
    sequence = Number(list.sequence);
    digest = createHash('sha256')
      .update(`${list.issuer}\n${all.map(canonical).join(',')}`)
      .digest('hex');
    return null;
  }

  return {
    verifies,
    takeList(crl, now) {
      if (!verifies('crl', crl)) return 'it is not signed';
      return take(crl, crl.revoked_certificates as unknown[], now);
    },
    continueList(delta, now) {
      if (!verifies('delta', delta)) return 'it is not signed';
      if (delta.base_sequence !== sequence) return 'it continues another list';
      const problem = take(delta, [...entries, ...(delta.added as unknown[])], now);
      return problem ?? (digest === delta.entries_digest ? null : 'its digest is another one');
    },
    takeBulletin(bulletin) {
      if (!verifies('bulletin', bulletin)) return 'it is not signed';
      if (bulletin.network_name !== networkName) return 'it is of another network';
      if (Number(bulletin.crl_sequence) < sequence) return 'it is older than the list';
      if (bulletin.crl_sequence === sequence) {
        if (bulletin.crl_digest !== digest) return 'it names another list';
        if (Number(bulletin.log_size) < logSize) return 'it is older than another one';
      }
      logSize = Number(bulletin.log_size);
      return null;
    },
  };
}

/** Canonical JSON [core-1-1] of values without floats, and of ASCII text. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${canonical(each)}`).join(',')}}`;
}
