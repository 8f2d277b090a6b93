import { JsonText, jsonText } from '../../base/json/write.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import { buildAccessIntent, buildLicensePolicy } from '../../protocol/records/data-usage.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Handler } from '../engine/admission.ts';
import { issuerOf } from '../engine/issuer.ts';
import { transition } from '../subjects/kinds.ts';

export const createLicensePolicy: Handler<'createLicensePolicy'> = (na, unit, terms) => {
  const policy = buildLicensePolicy(issuerOf(na, unit), terms);
  const json = jsonText(policy);
  unit.audit('data_license_policy_created', {
    policy_id: policy.policy_id,
    licensor_sovereign_id: policy.licensor_sovereign_id,
    licensee_sovereign_id: policy.licensee_sovereign_id,
    allowed_access_types: policy.allowed_access_types,
  });
  unit.whenCommitted(() => {
    const validUntil = instantOf(policy.valid_until);
    const event = { type: 'create', policy: { json, validUntil } } as const;
    na.license.policy = transition('data-license-policy', na.license.policy, event).next;
    na.publisher.publish('data_license_policy', publishedDocument(json));
  });
  return new JsonText(json);
};

export const declareIntent: Handler<'declareIntent'> = (na, unit, access) => {
  const intent = buildAccessIntent(issuerOf(na, unit), access);
  unit.audit('data_access_intent_created', {
    intent_id: intent.intent_id,
    agent_sovereign_id: intent.agent_sovereign_id,
    decision_id: intent.decision_id,
    declared_access_types: intent.declared_access_types,
    source_count: intent.declared_sources.length,
  });
  return intent;
};
