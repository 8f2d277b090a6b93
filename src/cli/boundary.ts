/** `mesh-na boundary`: decides whether requests stay within an agreement. */
import type { Command } from 'commander';
import { verifyDecision } from '../protocol/api/verifications.ts';
import { readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { acceptDenialOption, signerKeyOption } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

interface DecideOptions extends OperatorOptions, RecordOptions {
  readonly context?: string;
}

interface VerifyOptions extends VerificationOptions {
  readonly acceptDenial?: boolean;
}

const VERIFIED = routeOptions(verifyDecision, {
  operator_public_keys: signerKeyOption('--operator-key'),
});

export function addBoundaryCommands(program: Command): void {
  const boundary = program
    .command('boundary')
    .description('decide whether requests stay within an agreement');

  const decide = boundary
    .command('decide')
    .description('sign a decision on a request under an agreement (standard)')
    .argument('<agreement>', 'the agreement, signed by both parties; - for standard input')
    .argument('<capability>', 'requested capability')
    .option('--context <file>', 'JSON with context_id, context_freshness_seq and so on')
    .addHelpText('after', '\nA denial is a signed decision, too, and exits with code 0.')
    .action(runDecide);
  addOperatorOptions(addOutOption(decide), [
    'mesh-na boundary decide agreement.json read --out decision.json',
  ]);

  const verify = boundary
    .command('verify')
    .description('verify a decision; exit code 4 unless it is genuine and authorizes the request')
    .argument('<file>', 'the decision, - for standard input')
    .addOption(acceptDenialOption('a denial'))
    .action(runVerify);
  addVerificationOptions(VERIFIED.addTo(verify), [
    'mesh-na boundary verify decision.json && echo allowed',
    'mesh-na boundary verify decision.json --operator-key "$BETA_KEY"',
  ]);
}

async function runDecide(file: string, capability: string, options: DecideOptions): Promise<void> {
  const [agreement, context] = await readJsonFiles(file, options.context);
  const decision = await operatorClient(options).decideBoundary({
    agreement,
    requested_capability: capability,
    context,
  });
  const { decision_id, authorized, denial_reason, decision_valid_until } = decision;
  const verdict = authorized ? `${capability} is authorized` : `Denied (${denial_reason})`;
  deliverRecord(options, decision, {
    made: `Decision ${decision_id} created`,
    about: `${verdict}. Valid until ${decision_valid_until}.`,
  });
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { acceptDenial = false } = options;
  const verdict = await (await verifierOf(options)).verifyDecision({
    decision: await readJsonFile(file),
    ...VERIFIED.sentIn(options),
  });
  const { accepted, authorized, reason, decision_id } = verdict;
  printVerdict(options, verdict, `decision ${decision_id}`, {
    passed: accepted && (authorized || acceptDenial),
    approval: authorized ? 'Accepted' : `Accepted (${reason})`,
  });
}
