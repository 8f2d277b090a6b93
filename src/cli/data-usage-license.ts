import type { DataLicensePolicy } from '../protocol/records/data-usage.ts';
import { EXIT, failure, usageFailure } from './exit-codes.ts';
import { type OperatorOptions, operatorClient } from './operator-connection.ts';
import { deliverRecord, type RecordOptions } from './record-output.ts';
import { publicClient } from './server.ts';
import { type WindowOptions, windowOf } from './validity.ts';

export interface LicenseOptions extends OperatorOptions, RecordOptions, WindowOptions {
  readonly licensee?: string;
  readonly source?: readonly string[];
  readonly access?: readonly string[];
  readonly maxVolume?: number;
  readonly prohibit?: readonly string[];
  readonly show?: boolean;
}

/** `data-usage license`. */
export async function runLicense(options: LicenseOptions): Promise<void> {
  const policy = options.show ? await policyInForce(options) : await newPolicy(options);
  const { policy_id, licensor_sovereign_id, licensee_sovereign_id, valid_until } = policy;
  deliverRecord(
    options,
    policy,
    `Data license ${policy_id} is in force`,
    `${licensor_sovereign_id} licenses ${policy.allowed_source_ids.join(', ') || 'nothing'} to ${licensee_sovereign_id} until ${valid_until}.`,
  );
}

async function policyInForce(options: LicenseOptions): Promise<DataLicensePolicy> {
  const policy = await publicClient(options).licensePolicy();
  if (policy !== null) return policy;
  throw failure(EXIT.refused, 'no_policy', 'The authority has no data license in force');
}

async function newPolicy(options: LicenseOptions): Promise<DataLicensePolicy> {
  const { licensee, source = [], access = [], maxVolume, prohibit } = options;
  if (licensee === undefined) {
    throw usageFailure('--licensee is needed to license data, or --show to read the license');
  }
  return operatorClient(options).createLicensePolicy({
    licensee_sovereign_id: licensee,
    allowed_source_ids: source,
    allowed_access_types: access,
    ...(maxVolume !== undefined && { max_volume_bytes_per_session: maxVolume }),
    ...(prohibit && { prohibited_classification_tags: prohibit }),
    ...windowOf(options),
  });
}
