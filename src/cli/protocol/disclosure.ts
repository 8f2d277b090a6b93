/** `mesh-na disclosure`: proves one capability of an agreement without revealing the others. */
import { type Command, Option } from 'commander';
import { areTexts, isJsonObject, isList, type JsonObject } from '../../base/json/value.ts';
import { routeCommand } from '../connection/route-command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { notHolding, readJsonFile, readJsonFiles } from '../kernel/files.ts';
import { collect, signerKeyOption } from '../kernel/options.ts';
import { verifyCommand } from './verification.ts';

interface CommittedOptions {
  readonly committed?: readonly string[];
  readonly agreement?: string;
}

export function addDisclosureCommands(program: Command): void {
  const disclosure = program
    .command('disclosure')
    .description('prove one capability of an agreement without revealing the others');

  routeCommand(disclosure.command('commit'), 'commitCapabilities', {
    about: 'sign a commitment to capabilities of an agreement (standard)',
    files: {
      agreement: ['<agreement>', 'the agreement, signed by both parties; - for standard input'],
    },
    values: {
      capabilities: new Option(
        '--capability <name>',
        'capability to commit to (repeatable; default: all)',
      ).argParser(collect),
    },
    examples: ['mesh-na disclosure commit agreement.json --out commitment.json'],
    sent: ({ agreement, capabilities }, _, [file = '']) => ({
      agreement,
      capabilities: capabilities ?? agreedCapabilities(file, agreement),
    }),
    record: ({ commitment_id, capability_count, agreement_id }) => ({
      made: `Commitment ${commitment_id} created`,
      about: `It covers ${capability_count} capabilities of agreement ${agreement_id}.`,
    }),
  });

  routeCommand(disclosure.command('prove'), 'proveMembership', {
    about: 'prove that a commitment includes a capability',
    values: { prover_sovereign_id: ['--prover <name>', 'sovereign that proves it'] },
    more: (command) =>
      command
        .argument('<commitment>', 'the commitment, - for standard input')
        .argument('<capability>', 'capability to prove')
        .option('--committed <name>', 'capability in the commitment (repeatable)', collect)
        .addOption(
          new Option(
            '--agreement <file>',
            'use all capabilities of this agreement instead',
          ).conflicts('committed'),
        ),
    examples: [
      'mesh-na disclosure prove commitment.json read --agreement agreement.json --prover beta',
    ],
    sent: async (given, options: CommittedOptions, [file = '', capability = '']) => ({
      capability,
      ...(await committedIn(file, options)),
      ...given,
    }),
    record: (proof) => ({
      made: `Proof ${proof.proof_id} created`,
      about: `It proves ${proof.revealed_capability} in commitment ${proof.commitment_id}.`,
    }),
  });

  verifyCommand(disclosure.command('verify'), 'verifyMembership', {
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

  routeCommand(disclosure.command('nullify'), 'nullifyProof', {
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
