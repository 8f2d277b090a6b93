/** `attestation verify`: under a recognition policy, or under a treaty. */
import { type Command, Option } from 'commander';
import { createPublicClient } from '../client/public-client.ts';
import type { JsonObject } from '../json/value.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { addPublicOptions, collectAs, type PublicOptions, publicKey } from './options.ts';
import { printVerdict } from './output.ts';

interface VerifyOptions extends PublicOptions {
  readonly policy?: string;
  readonly treaty?: string;
  readonly treatyKey?: readonly string[];
}

export function defineVerify(verify: Command): void {
  verify
    .description('verify an attestation; exit code 4 when it is refused')
    .argument('<file>', 'the signed attestation, - for standard input')
    .option('--policy <file>', "recognition policy to decide by (default: the authority's own)")
    .addOption(new Option('--treaty <file>', 'treaty to decide by').conflicts('policy'))
    .option(
      '--treaty-key <key>',
      "key the treaty must be signed by (repeatable; default: the authority's)",
      collectAs(publicKey),
    )
    .action(runVerify);
  addPublicOptions(verify, [
    'mesh-na attestation verify agent-7.json',
    'mesh-na attestation verify agent-7.json --treaty alpha-beta.json && echo accepted',
  ]);
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { policy, treaty, treatyKey } = options;
  if (treatyKey !== undefined && treaty === undefined) {
    throw usageFailure('--treaty-key needs --treaty');
  }
  const attestation = await readJsonFile(file);
  if (treaty === undefined) return verifyByPolicy(attestation, options, policy);
  const verdict = await createPublicClient(options).verifyAttestationWithTreaty({
    attestation,
    treaty: await readJsonFile(treaty),
    ...(treatyKey && { treaty_issuer_public_keys: treatyKey }),
  });
  const { attestation_id, treaty_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} under treaty ${treaty_id}`);
}

async function verifyByPolicy(
  attestation: JsonObject,
  options: PublicOptions,
  policy: string | undefined,
): Promise<void> {
  const verdict = await createPublicClient(options).verifyAttestation({
    attestation,
    ...(policy !== undefined && { recognition_policy: await readJsonFile(policy) }),
  });
  const { attestation_id, issuer_sovereign_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} of ${issuer_sovereign_id}`);
}
