/** `mesh-na disclosure`: discloses one agreed capability without the others. */
import { type Command, Option } from 'commander';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import { usageFailure } from './exit-codes.ts';
import { notHolding, readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addPublicOptions, collect, type PublicOptions, signerKeyOption } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
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

interface VerifyOptions extends VerificationOptions {
  readonly issuerKey?: readonly string[];
}

export function addDisclosureCommands(program: Command): void {
  const disclosure = program
    .command('disclosure')
    .description('show one capability of an agreement without the others');

  const commit = disclosure
    .command('commit')
    .description('sign a commitment to capabilities of an agreement (standard)')
    .argument('<agreement>', 'the agreement, with our signature; - for standard input')
    .option('--capability <name>', 'capability to commit to (repeatable; default: all)', collect)
    .action(runCommit);
  addOperatorOptions(addOutOption(commit), [
    'mesh-na disclosure commit agreement.json --out commitment.json',
  ]);

  const prove = disclosure
    .command('prove')
    .description('make a proof that a capability is among those committed to')
    .argument('<commitment>', 'the commitment, - for standard input')
    .argument('<capability>', 'capability to show')
    .requiredOption('--prover <name>', 'sovereign that shows it')
    .option('--committed <name>', 'capability that was committed to (repeatable)', collect)
    .addOption(
      new Option('--agreement <file>', 'or: all capabilities of this agreement').conflicts(
        'committed',
      ),
    )
    .action(runProve);
  addPublicOptions(addOutOption(prove), [
    'mesh-na disclosure prove commitment.json read --agreement agreement.json --prover beta',
  ]);

  const verify = disclosure
    .command('verify')
    .description('verify a proof; exit code 4 when it is refused')
    .argument('<proof>', 'the membership proof, - for standard input')
    .argument('<commitment>', 'the commitment, - for standard input')
    .addOption(signerKeyOption('--issuer-key', 'the commitment'))
    .action(runVerify);
  addVerificationOptions(verify, ['mesh-na disclosure verify proof.json commitment.json']);

  const nullify = disclosure
    .command('nullify')
    .description('nullify a membership proof, once and for all (standard)')
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
  deliverRecord(
    options,
    commitment,
    `Commitment ${commitment_id} created`,
    `Capabilities of agreement ${agreement_id} in it: ${capability_count}.`,
  );
}

async function runProve(file: string, capability: string, options: ProveOptions): Promise<void> {
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

async function runVerify(
  proofFile: string,
  commitmentFile: string,
  options: VerifyOptions,
): Promise<void> {
  const { issuerKey } = options;
  const [proof, commitment] = await readJsonFiles(proofFile, commitmentFile);
  const verdict = await (await verifierOf(options)).verifyMembership({
    proof,
    commitment,
    ...(issuerKey && { issuer_public_keys: issuerKey }),
  });
  const what = `proof of ${proof.revealed_capability} in commitment ${verdict.commitment_id}`;
  printVerdict(options, verdict, what);
}

async function runNullify(file: string, options: OperatorOptions & RecordOptions): Promise<void> {
  const nullifier = await operatorClient(options).nullifyProof(await readJsonFile(file));
  const { nullifier_id, proof_id, expires_at } = nullifier;
  deliverRecord(
    options,
    nullifier,
    `Nullifier ${nullifier_id} is issued`,
    `Proof ${proof_id} is used up. To be shown until ${expires_at}.`,
  );
}
