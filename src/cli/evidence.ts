/** `mesh-na evidence`: signed statements about trust decisions of one sovereign on another. */
import type { Command } from 'commander';
import { buildEvidence } from '../protocol/api/evidence.ts';
import { verifyEvidence } from '../protocol/api/verifications.ts';
import { readJsonFile } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { acceptDenialOption, signerKeyOption } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

interface VerifyOptions extends VerificationOptions {
  readonly acceptDenial?: boolean;
}

const BUILT = routeOptions(buildEvidence, {
  graph_digest: [
    '--graph-digest <text>',
    "digest of the graph behind the decision (default: the authority's graph)",
  ],
});

const VERIFIED = routeOptions(verifyEvidence, {
  issuer_public_keys: signerKeyOption('--issuer-key'),
  expected_graph_digest: [
    '--expect-graph-digest <text>',
    'reject evidence that does not name this graph',
  ],
});

/** Verdicts that let a request pass; `block`, `escalate` and unknown ones do not. */
const FAVORABLE: ReadonlySet<string> = new Set(['allow', 'warn']);

export function addEvidenceCommands(program: Command): void {
  const evidence = program
    .command('evidence')
    .description('sign and verify trust decisions as evidence');

  const build = evidence
    .command('build')
    .description('sign a trust decision without reevaluating it (standard)')
    .argument('<decision>', 'JSON with the trust decision, - for standard input')
    .addHelpText(
      'after',
      '\nThe decision must have source_sovereign_id, target_sovereign_id and verdict.',
    )
    .action(runBuild);
  addOperatorOptions(addOutOption(BUILT.addTo(build)), [
    'mesh-na evidence build trust-decision.json --out evidence.json',
  ]);

  const verify = evidence
    .command('verify')
    .description(
      'verify evidence; exit code 4 unless it is genuine and its verdict is allow or warn',
    )
    .argument('<file>', 'the evidence, - for standard input')
    .addOption(acceptDenialOption('a block or an escalation'))
    .addHelpText('after', '\nEvidence does not expire.')
    .action(runVerify);
  addVerificationOptions(VERIFIED.addTo(verify), [
    'mesh-na evidence verify evidence.json',
    'mesh-na evidence verify evidence.json --issuer-key "$BETA_KEY"',
  ]);
}

async function runBuild(file: string, options: OperatorOptions & RecordOptions): Promise<void> {
  const evidence = await operatorClient(options).buildEvidence({
    decision: await readJsonFile(file),
    ...BUILT.sentIn(options),
  });
  const { evidence_id, issuer_sovereign_id, source_sovereign_id, target_sovereign_id } = evidence;
  deliverRecord(options, evidence, {
    made: `Evidence ${evidence_id} is signed`,
    about: `Issuer: ${issuer_sovereign_id}. Verdict of ${source_sovereign_id} on ${target_sovereign_id}: ${evidence.verdict}.`,
  });
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { acceptDenial = false } = options;
  const answer = await (await verifierOf(options)).verifyEvidence({
    evidence: await readJsonFile(file),
    ...VERIFIED.sentIn(options),
  });
  const { accepted, reason, evidence_id, issuer_sovereign_id, verdict } = answer;
  printVerdict(options, answer, `evidence ${evidence_id} of ${issuer_sovereign_id}, ${verdict}`, {
    passed: accepted && (FAVORABLE.has(verdict) || acceptDenial),
    reason: accepted ? verdict : reason,
  });
}
