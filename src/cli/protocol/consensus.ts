/** `mesh-na consensus`: several validators independently approve a justified decision. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { routeCommand } from '../connection/route-command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { readJsonFiles } from '../kernel/files.ts';
import { namedKey, repeatable, signerKeyOption } from '../kernel/options.ts';
import { verifyCommand } from './verification.ts';

export function addConsensusCommands(program: Command): void {
  const consensus = program
    .command('consensus')
    .description('vote on decisions, and prove that enough validators approved');

  routeCommand(consensus.command('vote'), 'castVote', {
    about: 'sign a vote on a justified decision as this sovereign (standard)',
    files: {
      justification_proof: [
        '<justification>',
        'the justification proof, with a proof_id; - for standard input',
      ],
    },
    values: { reason: ['--reason <text>', 'reason for the vote'] },
    more: (command) =>
      command.addArgument(new Argument('<vote>', 'the vote').choices(['approve', 'reject'])),
    examples: ['mesh-na consensus vote justification.json approve --out vote-alpha.json'],
    sent: (given, _, [, vote]) => ({ ...given, vote: vote === 'approve' }),
    record(ballot) {
      const { vote_id, validator_sovereign_id, decision_id } = ballot;
      const verb = ballot.vote ? 'approves' : 'rejects';
      return {
        made: `Vote ${vote_id} is cast`,
        about: `${validator_sovereign_id} ${verb} decision ${decision_id}.`,
      };
    },
  });

  routeCommand(consensus.command('prove'), 'assembleConsensus', {
    about: 'assemble votes into a signed consensus proof (standard)',
    values: {
      validator_sovereign_ids: ['--validator <name>', 'validator whose vote counts'],
      required_threshold: ['--threshold <n>', 'number of approvals required'],
    },
    more: (command) =>
      command
        .argument('<justification>', 'the justification proof voted on, - for standard input')
        .argument('<vote...>', 'the signed votes'),
    examples: [
      'mesh-na consensus prove justification.json vote-alpha.json vote-beta.json --validator alpha --validator beta --threshold 2',
    ],
    async sent(given, _, files) {
      const [justification_proof = {}, ...votes] = await readJsonFiles(...files);
      return { ...given, justification_proof, votes };
    },
    record: (
      { consensus_id, decision_id, required_threshold, expires_at },
      { validator_sovereign_ids: validators },
    ) => ({
      made: `Consensus ${consensus_id} is reached`,
      about: `Decision ${decision_id}: ${required_threshold} of ${new Set(validators).size} validators. Valid until ${expires_at}.`,
    }),
  });

  verifyCommand(consensus.command('verify'), 'verifyConsensus', {
    about: 'verify a consensus proof; exit code 4 if it is rejected',
    files: { proof: ['<file>', 'the consensus proof, - for standard input'] },
    values: {
      validator_public_keys: validatorKeyOption(),
      assembler_public_keys: signerKeyOption('--assembler-key'),
    },
    examples: [
      'mesh-na consensus verify consensus.json --validator-key alpha="$ALPHA_KEY" --validator-key beta="$BETA_KEY"',
    ],
    finding: ({ consensus_id }) => ({ what: `consensus ${consensus_id}` }),
  });
}

type ValidatorKeys = Readonly<Record<string, string>>;

function validatorKeyOption(): Option {
  return new Option('--validator-key <name=key>', 'key of a validator (repeatable)')
    .argParser(
      repeatable((text: string, earlier: ValidatorKeys = {}): ValidatorKeys => {
        const { id: validator, key } = namedKey(text);
        if (!validator) {
          throw new InvalidArgumentError(
            "It must have the form name=key, with a validator's name and public key.",
          );
        }
        if (!Object.hasOwn(earlier, validator)) return { ...earlier, [validator]: key };
        throw usageFailure('Two --validator-key options are for the same validator');
      }),
    )
    .makeOptionMandatory();
}
