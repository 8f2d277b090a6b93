/** The active policy (wire rules 4.10): a network without one gets a signed default on first read. */
import { jsonText } from '../json/write.ts';
import { readPolicyManifest } from '../records/policy-manifest.ts';
import { signRecord } from '../records/signed-record.ts';
import { formatInstant } from '../timestamp.ts';
import type { Authority, Handler } from './authority.ts';
import { publishedDocument } from './documents.ts';
import { existing, type UnitOfWork } from './unit-of-work.ts';

export const ensurePolicy: Handler<null> = (na, unit) => {
  const policyId = `policy-${na.settings.networkName}-${na.settings.networkVersion}`;
  if (unit.current('policy', policyId) === undefined) {
    const manifest = defaultManifest(na, unit, policyId);
    unit.send('policy', policyId, { type: 'first_read', at: unit.at, manifest });
  }
  const { manifest } = existing(unit, 'policy', policyId);
  const document = publishedDocument(jsonText(manifest));
  unit.whenCommitted(() => na.publish('policy', document));
  return '{}';
};

function defaultManifest(na: Authority, unit: UnitOfWork, policyId: string) {
  const manifest = readPolicyManifest({
    policy_id: policyId,
    issued_at: formatInstant(unit.at),
    issued_by: na.settings.keyId,
    min_client_version: '0.1.0',
  });
  if (manifest === null) throw new Error('The default policy is not a PolicyManifest');
  return signRecord(manifest, na.signer, na.settings.keyId);
}
