/** `mesh-na agreement`: agreements on capabilities between two sovereigns. */
import { type Command, Option } from 'commander';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import type { AgreementTerms } from '../../protocol/records/agreement.ts';
import { routeCommand } from '../connection/route-command.ts';
import { notHolding } from '../kernel/files.ts';
import { collect, collectAs, publicKey, timeAhead } from '../kernel/options.ts';
import { addWindowOptions, hoursFromNow, type WindowOptions, windowOf } from './validity.ts';
import { keysOf, partiesOf, verifyCommand } from './verification.ts';

/** How long an offer can be accepted by default. */
const OPEN_HOURS = 24;

export function addAgreementCommands(program: Command): void {
  const agreement = program
    .command('agreement')
    .description('agree on capabilities with another sovereign');

  routeCommand(agreement.command('offer'), 'offerCapabilities', {
    about: 'sign an offer of capabilities to a sovereign (standard)',
    files: { scope: ['--scope <file>', 'JSON with the scope, - for standard input'] },
    values: {
      responder_sovereign_id: ['<responder>', 'sovereign that may accept'],
      capabilities: ['--capability <name>', 'capability to agree on'],
      expires_at: new Option(
        '--expires-at <time>',
        'deadline to accept (default: 24 hours from now)',
      ).argParser(timeAhead),
    },
    more: addWindowOptions,
    examples: [
      'mesh-na agreement offer beta --capability read --capability write --out offer.json',
      'mesh-na agreement offer beta --capability read | mesh-na agreement accept - --out a.json',
    ],
    sent: (given, options: WindowOptions) => ({
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

  routeCommand(agreement.command('counter'), 'counterOffer', {
    about: 'answer an offer with a signed counteroffer (standard)',
    files: {
      offer: ['<offer>', 'the signed offer, - for standard input'],
      scope: ['--scope <file>', 'JSON with the scope (default: as offered)'],
    },
    values: {
      capabilities: new Option(
        '--capability <name>',
        'capability to agree on (repeatable; default: all)',
      ).argParser(collect),
    },
    more: (command) => addWindowOptions(command, { from: 'as offered', until: 'as offered' }),
    examples: ['mesh-na agreement counter offer.json --capability read --out counter.json'],
    sent({ offer, capabilities, scope }, options: WindowOptions, [file = '']) {
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

  routeCommand(agreement.command('accept'), 'acceptAgreement', {
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
        about: `${offerer_sovereign_id} and ${responder_sovereign_id} agree on ${capabilities.join(', ')} until ${valid_until}. Signatures: ${agreed.signatures.length}.`,
      };
    },
  });

  verifyCommand(agreement.command('verify'), 'verifyAgreement', {
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
  return new Option(`${flag} <key>`, text).argParser(collectAs(publicKey));
}
