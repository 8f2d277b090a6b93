/** `mesh-na disclosure`: discloses one agreed capability without the others. */
import { type Command, Option } from 'commander';
import { runCommit, runProve } from './disclosure-records.ts';
import { readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addPublicOptions, collect, signerKeyOption } from './options.ts';
import { printValidity } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

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
  printValidity(options, verdict, what);
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
