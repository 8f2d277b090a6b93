/** What a thief signs with a former authority key, and how the edges of the authority judge it. */
import { SHA256 } from '../../src/base/crypto/digest.ts';
import { verifySignature } from '../../src/base/crypto/ed25519.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { verifyTreaty } from '../../src/protocol/api/verifications.ts';
import { readTreatyScope } from '../../src/protocol/records/recognition.ts';
import { signRecord, signSingly, soleSigner } from '../../src/protocol/records/signed-record.ts';
import type { AuthorityKeys } from './model/authority-keys.ts';
import { NETWORK, NODES } from './requests.ts';
import { keyOfAuthority } from './successions.ts';
import { insist } from './violation.ts';

export interface Theft {
  readonly from: string;
  readonly distrustedFrom: number;
}

export function theftsIn({ inForce }: AuthorityKeys): readonly Theft[] {
  return inForce.flatMap(({ from, distrustedFrom }) =>
    distrustedFrom === null ? [] : [{ from, distrustedFrom }],
  );
}

/** Records that the thief signs as of one second ago, or since the key has been distrusted. */
export function forgedBy({ from, distrustedFrom }: Theft, now: number) {
  const at = Math.max(now - 1000, distrustedFrom);
  const stolen = keyOfAuthority(from);
  const key = stolen.publicKey;
  const signer = soleSigner(stolen);
  const sign = <Fields extends JsonObject>(fields: Fields) => signRecord(fields, signer);
  const [issued_at, later] = [formatInstant(at), formatInstant(at + 3_600_000)];
  return {
    certificate: sign({
      cert_id: 'forged',
      node_public_key: NODES[0]?.publicKey ?? '',
      network_name: NETWORK,
      roles: ['role:root'],
      issued_at,
      expires_at: later,
      issued_by: key,
    }),
    crl: sign({
      crl_id: 'forged',
      sequence: 1_000_000,
      issued_at,
      next_update: later,
      issuer: key,
      revoked_certificates: [],
    }),
    policy: sign({
      policy_id: 'forged',
      issued_at,
      issued_by: key,
      min_client_version: '0',
      allowed_ports: [443],
      allowed_services: [],
      routing: { preferred_transports: ['quic'], max_hops: 6 },
    }),
    bulletin: signSingly(
      {
        version: 1,
        network_name: NETWORK,
        issued_at,
        crl_sequence: 1_000_000,
        crl_digest: '0'.repeat(64),
        policy_id: null,
        genesis_digest: '0'.repeat(64),
        log_size: 1,
      },
      signer,
    ),
    treaty: sign({
      treaty_id: 'forged',
      issuer_sovereign_id: NETWORK,
      subject_sovereign_id: 'thief',
      subject_public_keys: [key],
      scope: readTreatyScope({}),
      status: 'active',
      issued_at,
      valid_from: issued_at,
      expires_at: later,
      issued_by: key,
      metadata: {},
    }),
    feed: sign({
      feed_id: 'forged',
      issuer_sovereign_id: NETWORK,
      sequence: 1_000_000,
      issued_at,
      revoked_attestation_ids: [],
      revocation_reasons: {},
      issued_by: key,
    }),
  };
}

/** The public routes verify with this authority's own keys unless others are given. */
export async function assertEdgeRefuses(
  keys: AuthorityKeys,
  ownKeys: () => readonly string[],
  now: number,
): Promise<void> {
  for (const theft of theftsIn(keys)) {
    const { treaty } = forgedBy(theft, now);
    const { verdict } = await verifyTreaty.judge(
      { treaty },
      {
        now,
        uuid: () => 'id',
        verify: verifySignature,
        sha256: SHA256,
        isBounded: true,
        ownKeys,
        ownName: null,
        ownPolicy: () => Promise.reject(new Error('It takes no policy')),
        askRevocations: () => ({
          attestation_revoked_here: false,
          attestation_revoked_by_feed: false,
          treaty_revoked: false,
          treaty_keys: [],
        }),
      },
    );
    const { reason } = verdict;
    insist(reason === 'invalid_signature', () => `An edge takes a forged treaty for ${reason}`);
  }
}
