/** `mesh-na disclosure`: proves one capability of an agreement without revealing the others. */
import { type Command, Option } from 'commander';
import { areTexts, isJsonObject, isList, type JsonObject } from '../base/json/value.ts';
import { verifyMembership } from '../protocol/api/verifications.ts';
import { usageFailure } from './exit-codes.ts';
import { notHolding, readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addPublicOptions, collect, type PublicOptions, signerKeyOption } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { publicClient } from './server.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

interface CommitOptions extends OperatorOptions, RecordOptions {
  readonly capability?: readonly string[];
}

interface ProveOptions extends PublicOptions, RecordOptions {
  readonly prover: string;
  readonly committed?: readonly string[];
  readonly agreement?: string;
}

const VERIFIED = routeOptions(verifyMembership, {
  issuer_public_keys: signerKeyOption('--issuer-key', 'the commitment'),
});

export function addDisclosureCommands(program: Command): void {
  const disclosure = program
    .command('disclosure')
    .description('prove one capability of an agreement without revealing the others');

  const commit = disclosure
    .command('commit')
    .description('sign a commitment to capabilities of an agreement (standard)')
    .argument('<agreement>', 'the agreement, signed by both parties; - for standard input')
    .option('--capability <name>', 'capability to commit to (repeatable; default: all)', collect)
    .action(runCommit);
  addOperatorOptions(addOutOption(commit), [
    'mesh-na disclosure commit agreement.json --out commitment.json',
  ]);

  const prove = disclosure
    .command('prove')
    .description('prove that a commitment includes a capability')
    .argument('<commitment>', 'the commitment, - for standard input')
    .argument('<capability>', 'capability to prove')
    .requiredOption('--prover <name>', 'sovereign that proves it')
    .option('--committed <name>', 'capability in the commitment (repeatable)', collect)
    .addOption(
      new Option('--agreement <file>', 'use all capabilities of this agreement instead').conflicts(
        'committed',
      ),
    )
    .action(runProve);
  addPublicOptions(addOutOption(prove), [
    'mesh-na disclosure prove commitment.json read --agreement agreement.json --prover beta',
  ]);

  const verify = disclosure
    .command('verify')
    .description('verify a proof; exit code 4 if it is rejected')
    .argument('<proof>', 'the membership proof, - for standard input')
    .argument('<commitment>', 'the commitment, - for standard input')
    .action(runVerify);
  addVerificationOptions(VERIFIED.addTo(verify), [
    'mesh-na disclosure verify proof.json commitment.json',
  ]);

  const nullify = disclosure
    .command('nullify')
    .description('issue the one-time nullifier of a membership proof (standard)')
    .argument('<proof>', 'the membership proof, - for standard input')
    .action(runNullify);
  addOperatorOptions(addOutOption(nullify), [
    'mesh-na disclosure nullify proof.json --out nullifier.json',
  ]);
}

async function runCommit(file: string, options: CommitOptions): Promise<void> {
  const agreement = await readJsonFile(file);
  const commitment = await operatorClient(options).commitCapabilities({
    capabilities: options.capability ?? agreedCapabilities(file, agreement),
    agreement,
  });
  const { commitment_id, capability_count, agreement_id } = commitment;
  deliverRecord(options, commitment, {
    made: `Commitment ${commitment_id} created`,
    about: `It covers ${capability_count} capabilities of agreement ${agreement_id}.`,
  });
}

async function runProve(file: string, capability: string, options: ProveOptions): Promise<void> {
  const { commitment, capabilities } = await committedIn(file, options);
  const proof = await publicClient(options).proveMembership({
    capability,
    capabilities,
    commitment,
    prover_sovereign_id: options.prover,
  });
  deliverRecord(options, proof, {
    made: `Proof ${proof.proof_id} created`,
    about: `It proves ${proof.revealed_capability} in commitment ${proof.commitment_id}.`,
  });
}

/** Returns the commitment with its full list of capabilities, which the commitment itself does not contain. */
async function committedIn(file: string, { committed, agreement: agreementFile }: ProveOptions) {
  if (committed !== undefined) {
    return { commitment: await readJsonFile(file), capabilities: committed };
  }
  if (agreementFile === undefined) {
    throw usageFailure(
      '--committed or --agreement is required: a commitment does not contain its capabilities',
    );
  }
  const [commitment, agreement] = await readJsonFiles(file, agreementFile);
  return { commitment, capabilities: agreedCapabilities(agreementFile, agreement) };
}

function agreedCapabilities(file: string, { agreed_terms: terms }: JsonObject): readonly string[] {
  const capabilities = isJsonObject(terms) ? terms.capabilities : undefined;
  if (isList(capabilities) && areTexts(capabilities)) return capabilities;
  throw notHolding(file, 'an agreement');
}

async function runVerify(
  proofFile: string,
  commitmentFile: string,
  options: VerificationOptions,
): Promise<void> {
  const [proof, commitment] = await readJsonFiles(proofFile, commitmentFile);
  const verdict = await (await verifierOf(options)).verifyMembership({
    proof,
    commitment,
    ...VERIFIED.sentIn(options),
  });
  const what = `proof of ${proof.revealed_capability} in commitment ${verdict.commitment_id}`;
  printVerdict(options, verdict, what);
}

async function runNullify(file: string, options: OperatorOptions & RecordOptions): Promise<void> {
  const nullifier = await operatorClient(options).nullifyProof({ proof: await readJsonFile(file) });
  const { nullifier_id, proof_id, expires_at } = nullifier;
  deliverRecord(options, nullifier, {
    made: `Nullifier ${nullifier_id} is issued`,
    about: `Proof ${proof_id} is used. Present the nullifier by ${expires_at}.`,
  });
}
