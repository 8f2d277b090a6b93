/** `mesh-na agreement` and `boundary`: agreements on capabilities, and decisions on requests under them. */

import type { Command, Option } from 'commander';
import { counted } from '../../base/counts.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { formatInstant, parseRequestTimestamp } from '../../base/timestamp.ts';
import type { AgreementTerms } from '../../protocol/records/agreement.ts';
import { routeCommand } from '../connection/route-command.ts';
import { type OptionsIn, option } from '../kernel/command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { notHolding } from '../kernel/files.ts';
import { hours, publicKey, timeAhead } from '../kernel/options.ts';
import { keysOf, partiesOf, signerKeyOption, verifyCommand } from './verification.ts';

/** How long an offer can be accepted by default. */
const OPEN_HOURS = 24;

export function addAgreementCommands(agreement: Command): void {
  routeCommand(agreement, 'offer', 'offerCapabilities', {
    about: 'sign an offer of capabilities to a sovereign (standard)',
    files: { scope: ['--scope <file>', 'JSON with the scope, - for standard input'] },
    values: {
      responder_sovereign_id: ['<responder>', 'sovereign that may accept'],
      capabilities: ['--capability <name>', 'capability to agree on'],
      expires_at: option('--expires-at <time>', 'deadline to accept (default: 24 hours from now)', {
        parse: timeAhead,
      }),
    },
    options: windowOptions(),
    examples: [
      'mesh-na agreement offer beta --capability read --capability write --out offer.json',
      'mesh-na agreement offer beta --capability read | mesh-na agreement accept - --out a.json',
    ],
    sent: (given, options) => ({
      ...given,
      ...windowOf(options),
      expires_at: given.expires_at ?? hoursFromNow(OPEN_HOURS),
    }),
    record(offer, { responder_sovereign_id: responder }) {
      const { offer_id, offerer_sovereign_id, requested_terms, expires_at } = offer;
      const { verdict, reason } = offer.offerer_evidence;
      const use = verdict === 'block' ? 'It cannot be accepted' : `Acceptable until ${expires_at}`;
      return {
        made: `Offer ${offer_id} created`,
        about: `${offerer_sovereign_id} offers ${responder} ${requested_terms.capabilities.join(', ')}. ${use}: evidence ${verdict}, ${reason}.`,
      };
    },
  });

  routeCommand(agreement, 'counter', 'counterOffer', {
    about: 'answer an offer with a signed counteroffer (standard)',
    files: {
      offer: ['<offer>', 'the signed offer, - for standard input'],
      scope: ['--scope <file>', 'JSON with the scope (default: as offered)'],
    },
    values: {
      capabilities: option(
        '--capability <name>',
        'capability to agree on (repeatable; default: all)',
        { many: true },
      ),
    },
    options: windowOptions({ from: 'as offered', until: 'as offered' }),
    examples: ['mesh-na agreement counter offer.json --capability read --out counter.json'],
    sent({ offer, capabilities, scope }, options, [file = '']) {
      const offered = offeredTerms(file, offer);
      return {
        offer,
        capabilities: capabilities ?? offered.capabilities,
        scope: scope ?? offered.scope ?? {},
        ...windowOf(options, offered),
      };
    },
    record: ({ offer_id, responder_sovereign_id, agreed_terms, expires_at }) => ({
      made: `Counter to offer ${offer_id} created`,
      about: `${responder_sovereign_id} would agree on ${agreed_terms.capabilities.join(', ')}. Acceptable until ${expires_at}.`,
    }),
  });

  routeCommand(agreement, 'accept', 'acceptAgreement', {
    about: 'sign an agreement: accept an offer, or a counter to our own offer (standard)',
    files: {
      offer: ['<offer>', 'the signed offer, - for standard input'],
      counter: ['--counter <file>', 'accept this counter to the offer instead'],
    },
    examples: [
      'mesh-na agreement accept offer.json --out agreement.json',
      'mesh-na agreement accept offer.json --counter counter.json --out agreement.json',
    ],
    sent: ({ offer, counter }) =>
      counter === undefined ? { offer } : { counter, original_offer: offer },
    record(agreed) {
      const { agreement_id, offerer_sovereign_id, responder_sovereign_id, agreed_terms } = agreed;
      const { capabilities, valid_until } = agreed_terms;
      return {
        made: `Agreement ${agreement_id} created`,
        about: `${offerer_sovereign_id} and ${responder_sovereign_id} agree on ${capabilities.join(', ')} until ${valid_until}. ${counted(agreed.signatures.length, 'signature')}.`,
      };
    },
  });

  verifyCommand(agreement, 'verifyAgreement', {
    about: 'verify the signatures of an agreement; exit code 4 if they are invalid',
    files: { agreement: ['<file>', 'the agreement, - for standard input'] },
    values: {
      offerer_public_keys: partyKeyOption('--offerer-key', 'the offerer'),
      responder_public_keys: partyKeyOption('--responder-key', 'the responder'),
    },
    notes: 'This checks neither its age nor its evidence.',
    examples: [
      'mesh-na agreement verify agreement.json',
      'mesh-na agreement verify agreement.json --offerer-key "$ALPHA_KEY" --responder-key "$BETA_KEY"',
    ],
    async sent(given, options, [file = '']) {
      const { offerer_sovereign_id: offerer, responder_sovereign_id: responder } = given.agreement;
      if (typeof offerer !== 'string' || typeof responder !== 'string') {
        throw notHolding(file, 'an agreement');
      }
      const { offerer_public_keys: ofOfferer, responder_public_keys: ofResponder } = given;
      if (ofOfferer !== undefined && ofResponder !== undefined) return given;
      const known = await partiesOf(options);
      return {
        ...given,
        offerer_public_keys: ofOfferer ?? keysOf(known, offerer, '--offerer-key'),
        responder_public_keys: ofResponder ?? keysOf(known, responder, '--responder-key'),
      };
    },
    finding: ({ agreement_id }) => ({ what: `agreement ${agreement_id}` }),
  });
}

type OfferedTerms = Pick<AgreementTerms, 'capabilities'> & Partial<AgreementTerms>;

/** Reads only the members that a counter copies; the authority validates the offer. */
function offeredTerms(file: string, { requested_terms: terms }: JsonObject): OfferedTerms {
  if (isJsonObject(terms) && Array.isArray(terms.capabilities)) return terms as OfferedTerms;
  throw notHolding(file, 'an offer');
}

function partyKeyOption(flag: string, who: string): Option {
  const fallback = "the authority's own, or those in its active treaties";
  const text = `key that ${who} must have signed with (repeatable; default: ${fallback})`;
  return option(`${flag} <key>`, text, { parse: publicKey, many: true });
}

export function addBoundaryCommands(boundary: Command): void {
  routeCommand(boundary, 'decide', 'decideBoundary', {
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

  verifyCommand(boundary, 'verifyDecision', {
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

const DEFAULT_HOURS = 168;
/** Ten years, as for certificates and treaties. */
const MOST_HOURS = 87_600;

type WindowOptions = OptionsIn<ReturnType<typeof windowOptions>>;

export interface ValidityWindow {
  readonly valid_from: string;
  readonly valid_until: string;
}

/** `defaults` describes the default ends of the window. */
export function windowOptions(defaults = { from: 'now', until: `${DEFAULT_HOURS} hours later` }) {
  return [
    option('--valid-from <time>', `when it begins (default: ${defaults.from})`, {
      parse: timeAhead,
    }),
    option('--valid-until <time>', `when it ends (default: ${defaults.until})`, {
      parse: timeAhead,
    }),
    option('--validity-hours <n>', 'hours, or a duration such as 7d, instead of --valid-until', {
      parse: hours(MOST_HOURS),
      conflicts: 'validUntil',
    }),
  ] as const;
}

/** The requested window; missing bounds come from `fallback`, or else the window begins now. */
export function windowOf(
  { validFrom, validUntil, validityHours }: WindowOptions,
  fallback: Partial<ValidityWindow> = {},
): ValidityWindow {
  const valid_from = validFrom ?? fallback.valid_from ?? hoursFromNow(0);
  const kept = validityHours === undefined ? fallback.valid_until : undefined;
  const valid_until = validUntil ?? kept ?? later(valid_from, validityHours ?? DEFAULT_HOURS);
  return { valid_from, valid_until };
}

function hoursFromNow(hours: number): string {
  return formatInstant(systemRuntime.now() + hours * HOUR_MS);
}

function later(start: string, hours: number): string {
  const instant = parseRequestTimestamp(start);
  if (instant === null)
    throw usageFailure('--valid-from is required: the offer has no readable one');
  return formatInstant(instant + hours * HOUR_MS);
}
