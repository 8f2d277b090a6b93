/** Policy versions [core-4-10]. The authority timestamps and signs them; signatures from clients are ignored. */
import { compareCodePoints, jsonText } from '../base/json/write.ts';
import { formatInstant } from '../base/timestamp.ts';
import type { ListPlace } from '../protocol/contract/inputs.ts';
import { defaultPolicyId, MIN_CLIENT_VERSION } from '../protocol/records/first-policy.ts';
import { type PolicyManifest, readPolicyManifest } from '../protocol/records/policy-manifest.ts';
import { signRecord } from '../protocol/records/signed-record.ts';
import { Refusal } from '../protocol/refusals.ts';
import type { Authority } from './authority.ts';
import type { Handler } from './engine/admission.ts';
import { costOf, signedAgain } from './engine/issuer.ts';
import { pageOf } from './engine/page.ts';
import { refusalIn, type Subject } from './subjects/kinds.ts';
import type { UnitOfWork } from './subjects/unit-of-work.ts';

/** The active policy version, including decisions that are not committed yet. */
export function createPolicyIndex() {
  let active: string | null = null;
  return {
    put(id: string, { value }: Subject<'policy'>) {
      if (value === 'active') active = id;
    },
    activeId: (): string | null => active,
  };
}

/** Publishes the policy document: the active version, or on the first read the network's initial version. */
export const ensurePolicy: Handler<'ensurePolicy'> = (na, unit) => {
  const { networkName, networkVersion, firstPolicy } = na.settings;
  const policyId = na.policies.activeId() ?? defaultPolicyId(networkName, networkVersion);
  if (unit.current('policy', policyId) === undefined) {
    const manifest =
      firstPolicy === null
        ? manifestOf(na, unit, policyId, {})
        : signRecord(firstPolicy, na.signer);
    unit.send('policy', policyId, { type: 'first_read', at: unit.at, manifest });
  }
  // The version is published by the commit that activates it, so wait for that commit.
  unit.awaitEarlierCommits();
  return null;
};

/** Publishing under an existing policy id replaces that version. */
export const publishPolicy: Handler<'publishPolicy'> = (
  na,
  unit,
  { policy_id: givenId, ...content },
  operator,
) => {
  const policyId = givenId ?? `policy-${na.runtime.uuid()}`;
  const manifest = manifestOf(na, unit, policyId, content);
  unit.send('policy', policyId, { type: 'publish', at: unit.at, manifest });
  activate(na, unit, policyId);
  unit.audit('policy_published', {
    policy_id: policyId,
    remote_addr: operator.remoteAddr,
  });
  return manifest;
};

/** Returns the manifest with its original time, and the original signature unless the authority has another key since. */
export const rollBackPolicy: Handler<'rollBackPolicy'> = (na, unit, given, operator) => {
  const { policy_id: policyId } = given;
  const refused = refusalIn(unit.send('policy', policyId, { type: 'roll_back' }));
  if (refused !== null) throw new Refusal(refused.refusal);
  activate(na, unit, policyId);
  unit.audit('policy_rolled_back', {
    policy_id: policyId,
    remote_addr: operator.remoteAddr,
  });
  const { manifest, createdAt } = unit.existing('policy', policyId);
  return manifest && signedAgain(na, manifest, createdAt);
};

export const readPolicyHistory: Handler<'readPolicyHistory'> = (na, page) => {
  const compare = (a: ListPlace, b: ListPlace) => b.at - a.at || compareCodePoints(a.id, b.id);
  const items = [...na.subjects.allCommitted('policy')]
    .map(([id, policy]) => ({ at: policy.context.createdAt, id, policy }))
    .sort(compare);
  return pageOf(
    {
      items,
      placeOf: (item) => item,
      compare,
      passes: () => true,
      row: ({ at, id, policy }) => ({
        policy_id: id,
        active: policy.value === 'active',
        created_at: formatInstant(at),
        policy: policy.context.manifest && signedAgain(na, policy.context.manifest, at),
      }),
      lengthOf: ({ at, policy }) => costOf(na, jsonText(policy.context.manifest), at),
    },
    page,
  );
};

/** Exactly one version is active: the previous one is retired in the same transaction. */
function activate(na: Authority, unit: UnitOfWork, policyId: string): void {
  const before = na.policies.activeId();
  if (before !== null && before !== policyId) unit.send('policy', before, { type: 'retire' });
}

function manifestOf(
  na: Authority,
  unit: UnitOfWork,
  policyId: string,
  content: { readonly [member: string]: unknown },
): PolicyManifest {
  const manifest = readPolicyManifest({
    min_client_version: MIN_CLIENT_VERSION,
    ...content,
    policy_id: policyId,
    issued_at: formatInstant(unit.at),
    issued_by: na.signer.keyId,
    signatures: [],
  });
  if (manifest === null) throw new Error('A published policy is not a PolicyManifest');
  return signRecord(manifest, na.signer);
}
