/** `mesh-na evidence`: signed statements about trust decisions of one sovereign on another. */
import type { Command } from 'commander';
import { routeCommand } from '../connection/route-command.ts';
import { signerKeyOption } from '../kernel/options.ts';
import { verifyCommand } from './verification.ts';

/** Verdicts that let a request pass; `block`, `escalate` and unknown ones do not. */
const FAVORABLE: ReadonlySet<string> = new Set(['allow', 'warn']);

export function addEvidenceCommands(program: Command): void {
  const evidence = program
    .command('evidence')
    .description('sign and verify trust decisions as evidence');

  routeCommand(evidence.command('build'), 'buildEvidence', {
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

  verifyCommand(evidence.command('verify'), 'verifyEvidence', {
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
