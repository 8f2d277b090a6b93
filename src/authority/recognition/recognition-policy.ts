/** The recognition policy, which lists the issuers that this sovereign recognizes [core-4-12]. */
import { canonicalJson, JsonText } from '../../base/json/write.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Handler } from '../engine/admission.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';

/** Only one policy is active at a time, so a single subject holds it. */
const ACTIVE_POLICY = 'active';

export const setRecognitionPolicy: Handler<'setRecognitionPolicy'> = (
  na,
  unit,
  { recognition_policy: policy, policy_id: givenId },
) => {
  refusePrivateKeys(
    na,
    policy.recognized_issuers.flatMap(({ public_keys: keys }) => keys),
  );
  const local = policy.local_sovereign_id;
  const policyId = givenId ?? `recognition-${local}`;
  const stored = { policyId, json: canonicalJson(policy), setAt: unit.at };
  unit.send('recognition-policy', ACTIVE_POLICY, { type: 'record', record: stored });
  unit.audit('recognition_policy_saved', {
    policy_id: policyId,
    local_sovereign_id: local,
    recognized_issuer_count: policy.recognized_issuers.length,
  });
  return { policy_id: policyId, local_sovereign_id: local, active: true };
};

export const readRecognitionPolicy: Handler<'readRecognitionPolicy'> = (na) => {
  const policy = na.subjects.committed('recognition-policy', ACTIVE_POLICY);
  if (policy === undefined) throw new Refusal('recognition_policy_not_configured');
  return new JsonText(policy.context.json);
};
