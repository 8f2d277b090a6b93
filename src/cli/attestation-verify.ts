/** `attestation verify`: under a recognition policy, or under a treaty. */
import { type Command, Option } from 'commander';
import type { JsonObject } from '../base/json/value.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { collectAs, publicKey } from './options.ts';
import { printVerdict } from './output.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

interface VerifyOptions extends VerificationOptions {
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
    .option('--feed <file>', 'revocation feed of the issuer, which offline is not known otherwise')
    .action(runVerify);
  addVerificationOptions(verify, [
    'mesh-na attestation verify agent-7.json',
    'mesh-na attestation verify agent-7.json --policy recognition.json --offline',
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
  const verdict = await (await verifierOf(options)).verifyAttestationWithTreaty({
    attestation,
    treaty: await readJsonFile(treaty),
    ...(treatyKey && { treaty_issuer_public_keys: treatyKey }),
  });
  const { attestation_id, treaty_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} under treaty ${treaty_id}`);
}

async function verifyByPolicy(
  attestation: JsonObject,
  options: VerifyOptions,
  policy: string | undefined,
): Promise<void> {
  const verdict = await (await verifierOf(options)).verifyAttestation({
    attestation,
    ...(policy !== undefined && { recognition_policy: await readJsonFile(policy) }),
  });
  const { attestation_id, issuer_sovereign_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} of ${issuer_sovereign_id}`);
}
