import { readJsonFile } from './json-file.ts';
import { printVerdict } from './output.ts';
import { type VerificationOptions, verifierOf } from './verification.ts';

interface VerifyOptions extends VerificationOptions {
  readonly issuerKey?: readonly string[];
  readonly expectIssuer?: string;
  readonly expectSubject?: string;
}

/** `treaty verify`. */
export async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { issuerKey, expectIssuer, expectSubject } = options;
  const verdict = await (await verifierOf(options)).verifyTreaty({
    treaty: await readJsonFile(file),
    ...(issuerKey && { issuer_public_keys: issuerKey }),
    ...(expectIssuer !== undefined && { expected_issuer_sovereign_id: expectIssuer }),
    ...(expectSubject !== undefined && { expected_subject_sovereign_id: expectSubject }),
  });
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = verdict;
  const parties = `${issuer_sovereign_id} recognizes ${subject_sovereign_id}`;
  printVerdict(options, verdict, `treaty ${treaty_id}, ${parties}`);
}
