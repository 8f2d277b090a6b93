/** `mesh-na boundary`: decides whether requests stay within an agreement. */
import type { Command } from 'commander';
import { routeCommand } from '../connection/route-command.ts';
import { signerKeyOption } from '../kernel/options.ts';
import { verifyCommand } from './verification.ts';

export function addBoundaryCommands(program: Command): void {
  const boundary = program
    .command('boundary')
    .description('decide whether requests stay within an agreement');

  routeCommand(boundary.command('decide'), 'decideBoundary', {
    about: 'sign a decision on a request under an agreement (standard)',
    files: {
      agreement: ['<agreement>', 'the agreement, signed by both parties; - for standard input'],
      context: ['--context <file>', 'JSON with context_id, context_freshness_seq and so on'],
    },
    values: { requested_capability: ['<capability>', 'requested capability'] },
    notes: 'A denial is a signed decision, too, and exits with code 0.',
    examples: ['mesh-na boundary decide agreement.json read --out decision.json'],
    record(decision, { requested_capability: capability }) {
      const { decision_id, authorized, denial_reason, decision_valid_until } = decision;
      const verdict = authorized ? `${capability} is authorized` : `Denied (${denial_reason})`;
      return {
        made: `Decision ${decision_id} created`,
        about: `${verdict}. Valid until ${decision_valid_until}.`,
      };
    },
  });

  verifyCommand(boundary.command('verify'), 'verifyDecision', {
    about: 'verify a decision; exit code 4 unless it is genuine and authorizes the request',
    files: { decision: ['<file>', 'the decision, - for standard input'] },
    values: { operator_public_keys: signerKeyOption('--operator-key') },
    denial: 'a denial',
    examples: [
      'mesh-na boundary verify decision.json && echo allowed',
      'mesh-na boundary verify decision.json --operator-key "$BETA_KEY"',
    ],
    finding: ({ accepted, authorized, reason, decision_id }, _, acceptsDenial) => ({
      what: `decision ${decision_id}`,
      passed: accepted && (authorized || acceptsDenial),
      approval: authorized ? 'Accepted' : `Accepted (${reason})`,
    }),
  });
}
