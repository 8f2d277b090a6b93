/** `mesh-na consensus`: several validators independently approve a justified decision. */
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { assembleConsensus, castVote } from '../protocol/api/consensus.ts';
import { verifyConsensus } from '../protocol/api/verifications.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { collectAs, namedKey, signerKeyOption } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

const CAST = routeOptions(castVote, { reason: ['--reason <text>', 'reason for the vote'] });

const ASSEMBLED = routeOptions(assembleConsensus, {
  validator_sovereign_ids: ['--validator <name>', 'validator whose vote counts'],
  required_threshold: ['--threshold <n>', 'number of approvals required'],
});

const VERIFIED = routeOptions(verifyConsensus, {
  assembler_public_keys: signerKeyOption('--assembler-key'),
});

interface ValidatorKey {
  readonly validator: string;
  readonly key: string;
}

interface VerifyOptions extends VerificationOptions {
  readonly validatorKey: readonly ValidatorKey[];
}

export function addConsensusCommands(program: Command): void {
  const consensus = program
    .command('consensus')
    .description('vote on decisions, and prove that enough validators approved');

  const vote = consensus
    .command('vote')
    .description('sign a vote on a justified decision as this sovereign (standard)')
    .argument('<justification>', 'the justification proof, with a proof_id; - for standard input')
    .addArgument(new Argument('<vote>', 'the vote').choices(['approve', 'reject']))
    .action(runVote);
  addOperatorOptions(addOutOption(CAST.addTo(vote)), [
    'mesh-na consensus vote justification.json approve --out vote-alpha.json',
  ]);

  const prove = consensus
    .command('prove')
    .description('assemble votes into a signed consensus proof (standard)')
    .argument('<justification>', 'the justification proof voted on, - for standard input')
    .argument('<vote...>', 'the signed votes')
    .action(runProve);
  addOperatorOptions(addOutOption(ASSEMBLED.addTo(prove)), [
    'mesh-na consensus prove justification.json vote-alpha.json vote-beta.json --validator alpha --validator beta --threshold 2',
  ]);

  const verify = consensus
    .command('verify')
    .description('verify a consensus proof; exit code 4 if it is rejected')
    .argument('<file>', 'the consensus proof, - for standard input')
    .requiredOption(
      '--validator-key <name=key>',
      'key of a validator (repeatable)',
      collectAs(validatorKey),
    )
    .action(runVerify);
  addVerificationOptions(VERIFIED.addTo(verify), [
    'mesh-na consensus verify consensus.json --validator-key alpha="$ALPHA_KEY" --validator-key beta="$BETA_KEY"',
  ]);
}

async function runVote(
  file: string,
  vote: string,
  options: OperatorOptions & RecordOptions,
): Promise<void> {
  const ballot = await operatorClient(options).castVote({
    justification_proof: await readJsonFile(file),
    vote: vote === 'approve',
    ...CAST.sentIn(options),
  });
  const { vote_id, validator_sovereign_id, decision_id } = ballot;
  const verb = ballot.vote ? 'approves' : 'rejects';
  deliverRecord(options, ballot, {
    made: `Vote ${vote_id} is cast`,
    about: `${validator_sovereign_id} ${verb} decision ${decision_id}.`,
  });
}

async function runProve(
  file: string,
  voteFiles: readonly string[],
  options: OperatorOptions & RecordOptions,
): Promise<void> {
  const sent = ASSEMBLED.sentIn(options);
  const [justification = {}, ...votes] = await readJsonFiles(file, ...voteFiles);
  const proof = await operatorClient(options).assembleConsensus({
    justification_proof: justification,
    votes,
    ...sent,
  });
  const { consensus_id, decision_id, required_threshold, expires_at } = proof;
  deliverRecord(options, proof, {
    made: `Consensus ${consensus_id} is reached`,
    about: `Decision ${decision_id}: ${required_threshold} of ${new Set(sent.validator_sovereign_ids).size} validators. Valid until ${expires_at}.`,
  });
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { validatorKey: keys } = options;
  const byValidator = Object.fromEntries(keys.map(({ validator, key }) => [validator, key]));
  if (Object.keys(byValidator).length < keys.length) {
    throw usageFailure('Two --validator-key options are for the same validator');
  }
  const verdict = await (await verifierOf(options)).verifyConsensus({
    proof: await readJsonFile(file),
    validator_public_keys: byValidator,
    ...VERIFIED.sentIn(options),
  });
  printVerdict(options, verdict, `consensus ${verdict.consensus_id}`);
}

function validatorKey(text: string): ValidatorKey {
  const { id, key } = namedKey(text);
  if (id) return { validator: id, key };
  throw new InvalidArgumentError(
    "It must have the form name=key, with a validator's name and public key.",
  );
}
