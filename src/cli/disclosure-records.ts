import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import { usageFailure } from './exit-codes.ts';
import { notHolding, readJsonFile, readJsonFiles } from './json-file.ts';
import { type OperatorOptions, operatorClient } from './operator-connection.ts';
import type { PublicOptions } from './options.ts';
import { deliverRecord, type RecordOptions } from './record-output.ts';
import { publicClient } from './server.ts';

interface CommitOptions extends OperatorOptions, RecordOptions {
  readonly capability?: readonly string[];
}

interface ProveOptions extends PublicOptions, RecordOptions {
  readonly prover: string;
  readonly committed?: readonly string[];
  readonly agreement?: string;
}

/** `disclosure commit`. */
export async function runCommit(file: string, options: CommitOptions): Promise<void> {
  const agreement = await readJsonFile(file);
  const commitment = await operatorClient(options).commitCapabilities({
    capabilities: options.capability ?? agreedCapabilities(file, agreement),
    agreement,
  });
  const { commitment_id, capability_count, agreement_id } = commitment;
  deliverRecord(
    options,
    commitment,
    `Commitment ${commitment_id} created`,
    `Capabilities of agreement ${agreement_id} in it: ${capability_count}.`,
  );
}

/** `disclosure prove`. */
export async function runProve(
  file: string,
  capability: string,
  options: ProveOptions,
): Promise<void> {
  const { commitment, capabilities } = await committedIn(file, options);
  const proof = await publicClient(options).proveMembership({
    capability,
    capabilities,
    commitment,
    prover_sovereign_id: options.prover,
  });
  deliverRecord(
    options,
    proof,
    `Proof ${proof.proof_id} created`,
    `It shows ${proof.revealed_capability} in commitment ${proof.commitment_id}.`,
  );
}

/** The commitment, and the whole list behind it, which it does not contain. */
async function committedIn(file: string, { committed, agreement: agreementFile }: ProveOptions) {
  if (committed !== undefined) {
    return { commitment: await readJsonFile(file), capabilities: committed };
  }
  if (agreementFile === undefined) {
    throw usageFailure('--committed or --agreement is needed: a commitment holds no capabilities');
  }
  const [commitment, agreement] = await readJsonFiles(file, agreementFile);
  return { commitment, capabilities: agreedCapabilities(agreementFile, agreement) };
}

function agreedCapabilities(file: string, { agreed_terms: terms }: JsonObject): readonly string[] {
  const capabilities = isJsonObject(terms) ? terms.capabilities : undefined;
  if (Array.isArray(capabilities) && capabilities.every(isText)) return capabilities;
  throw notHolding(file, 'an agreement');
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
