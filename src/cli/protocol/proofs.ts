/** `mesh-na evidence`, `disclosure` and `consensus`: proofs of a trust decision, of one capability, and of enough votes. */

import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { counted } from '../../base/counts.ts';
import { areTexts, isJsonObject, isList, type JsonObject } from '../../base/json/value.ts';
import { routeCommand } from '../connection/route-command.ts';
import { option } from '../kernel/command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { notHolding, readJsonFile, readJsonFiles } from '../kernel/files.ts';
import { namedKey, repeatable } from '../kernel/options.ts';
import { signerKeyOption, verifyCommand } from './verification.ts';

/** Verdicts that let a request pass; `block`, `escalate` and unknown ones do not. */
const FAVORABLE: ReadonlySet<string> = new Set(['allow', 'warn']);

export function addEvidenceCommands(evidence: Command): void {
  routeCommand(evidence, 'build', 'buildEvidence', {
    about: 'sign a trust decision without reevaluating it (standard)',
    files: { decision: ['<decision>', 'JSON with the trust decision, - for standard input'] },
    values: {
      graph_digest: [
        '--graph-digest <text>',
        "digest of the graph behind the decision (default: the authority's graph)",
      ],
    },
    notes: 'The decision must have source_sovereign_id, target_sovereign_id and verdict.',
    examples: ['mesh-na evidence build trust-decision.json --out evidence.json'],
    record(built) {
      const { evidence_id, issuer_sovereign_id, source_sovereign_id, target_sovereign_id } = built;
      return {
        made: `Evidence ${evidence_id} is signed`,
        about: `Issuer: ${issuer_sovereign_id}. Verdict of ${source_sovereign_id} on ${target_sovereign_id}: ${built.verdict}.`,
      };
    },
  });

  verifyCommand(evidence, 'verifyEvidence', {
    about: 'verify evidence; exit code 4 unless it is genuine and its verdict is allow or warn',
    files: { evidence: ['<file>', 'the evidence, - for standard input'] },
    values: {
      issuer_public_keys: signerKeyOption('--issuer-key'),
      expected_graph_digest: [
        '--expect-graph-digest <text>',
        'reject evidence that does not name this graph',
      ],
    },
    denial: 'a block or an escalation',
    notes: 'Evidence does not expire.',
    examples: [
      'mesh-na evidence verify evidence.json',
      'mesh-na evidence verify evidence.json --issuer-key "$BETA_KEY"',
    ],
    finding({ accepted, reason, evidence_id, issuer_sovereign_id, verdict }, _, acceptsDenial) {
      return {
        what: `evidence ${evidence_id} of ${issuer_sovereign_id}, ${verdict}`,
        passed: accepted && (FAVORABLE.has(verdict) || acceptsDenial),
        reason: accepted ? verdict : reason,
      };
    },
  });
}

interface CommittedOptions {
  readonly committed?: readonly string[];
  readonly agreement?: string;
}

export function addDisclosureCommands(disclosure: Command): void {
  routeCommand(disclosure, 'commit', 'commitCapabilities', {
    about: 'sign a commitment to capabilities of an agreement (standard)',
    files: {
      agreement: ['<agreement>', 'the agreement, signed by both parties; - for standard input'],
    },
    values: {
      capabilities: option(
        '--capability <name>',
        'capability to commit to (repeatable; default: all)',
        { many: true },
      ),
    },
    examples: ['mesh-na disclosure commit agreement.json --out commitment.json'],
    sent: ({ agreement, capabilities }, _, [file = '']) => ({
      agreement,
      capabilities: capabilities ?? agreedCapabilities(file, agreement),
    }),
    record: ({ commitment_id, capability_count, agreement_id }) => ({
      made: `Commitment ${commitment_id} created`,
      about: `It covers ${counted(capability_count, 'capability', 'capabilities')} of agreement ${agreement_id}.`,
    }),
  });

  routeCommand(disclosure, 'prove', 'proveMembership', {
    about: 'prove that a commitment includes a capability',
    values: { prover_sovereign_id: ['--prover <name>', 'sovereign that proves it'] },
    args: [
      ['<commitment>', 'the commitment, - for standard input'],
      ['<capability>', 'capability to prove'],
    ],
    options: [
      option('--committed <name>', 'capability in the commitment (repeatable)', { many: true }),
      option('--agreement <file>', 'use all capabilities of this agreement instead', {
        conflicts: 'committed',
      }),
    ],
    examples: [
      'mesh-na disclosure prove commitment.json read --agreement agreement.json --prover beta',
    ],
    sent: async (given, options, [file = '', capability = '']) => ({
      capability,
      ...(await committedIn(file, options)),
      ...given,
    }),
    record: (proof) => ({
      made: `Proof ${proof.proof_id} created`,
      about: `It proves ${proof.revealed_capability} in commitment ${proof.commitment_id}.`,
    }),
  });

  verifyCommand(disclosure, 'verifyMembership', {
    about: 'verify a proof; exit code 4 if it is rejected',
    files: {
      proof: ['<proof>', 'the membership proof, - for standard input'],
      commitment: ['<commitment>', 'the commitment, - for standard input'],
    },
    values: { issuer_public_keys: signerKeyOption('--issuer-key', 'the commitment') },
    examples: ['mesh-na disclosure verify proof.json commitment.json'],
    finding: ({ commitment_id }, { proof }) => ({
      what: `proof of ${proof.revealed_capability} in commitment ${commitment_id}`,
    }),
  });

  routeCommand(disclosure, 'nullify', 'nullifyProof', {
    about: 'issue the one-time nullifier of a membership proof (standard)',
    files: { proof: ['<proof>', 'the membership proof, - for standard input'] },
    examples: ['mesh-na disclosure nullify proof.json --out nullifier.json'],
    record: ({ nullifier_id, proof_id, expires_at }) => ({
      made: `Nullifier ${nullifier_id} is issued`,
      about: `Proof ${proof_id} is used. Present the nullifier by ${expires_at}.`,
    }),
  });
}

/** Returns the commitment with its full list of capabilities, which the commitment itself does not contain. */
async function committedIn(
  file: string,
  { committed, agreement: agreementFile }: CommittedOptions,
) {
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

export function addConsensusCommands(consensus: Command): void {
  routeCommand(consensus, 'vote', 'castVote', {
    about: 'sign a vote on a justified decision as this sovereign (standard)',
    files: {
      justification_proof: [
        '<justification>',
        'the justification proof, with a proof_id; - for standard input',
      ],
    },
    values: { reason: ['--reason <text>', 'reason for the vote'] },
    args: [new Argument('<vote>', 'the vote').choices(['approve', 'reject'])],
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

  routeCommand(consensus, 'prove', 'assembleConsensus', {
    about: 'assemble votes into a signed consensus proof (standard)',
    values: {
      validator_sovereign_ids: ['--validator <name>', 'validator whose vote counts'],
      required_threshold: ['--threshold <n>', 'number of approvals required'],
    },
    args: [
      ['<justification>', 'the justification proof voted on, - for standard input'],
      ['<vote...>', 'the signed votes'],
    ],
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

  verifyCommand(consensus, 'verifyConsensus', {
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
