/** `mesh-na agreement`: agreements on capabilities between two sovereigns. */
import { type Command, Option } from 'commander';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import type { AgreementTerms } from '../protocol/records/agreement.ts';
import { notHolding, readJsonFile, readJsonFiles } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { collect, collectAs, publicKey, timeAhead } from './options.ts';
import { printVerdict } from './output.ts';
import { addOutOption, deliverRecord, type RecordOptions } from './record-output.ts';
import { addWindowOptions, hoursFromNow, type WindowOptions, windowOf } from './validity.ts';
import {
  addVerificationOptions,
  keysOf,
  partiesOf,
  type VerificationOptions,
  verifierOf,
} from './verification.ts';

/** How long an offer can be accepted by default. */
const OPEN_HOURS = 24;

interface OfferOptions extends OperatorOptions, RecordOptions, WindowOptions {
  readonly capability: readonly string[];
  readonly scope?: string;
  readonly expiresAt?: string;
}

interface CounterOptions extends OperatorOptions, RecordOptions, WindowOptions {
  readonly capability?: readonly string[];
  readonly scope?: string;
}

interface AcceptOptions extends OperatorOptions, RecordOptions {
  readonly counter?: string;
}

interface VerifyOptions extends VerificationOptions {
  readonly offererKey?: readonly string[];
  readonly responderKey?: readonly string[];
}

export function addAgreementCommands(program: Command): void {
  const agreement = program
    .command('agreement')
    .description('agree on capabilities with another sovereign');

  const offer = agreement
    .command('offer')
    .description('sign an offer of capabilities to a sovereign (standard)')
    .argument('<responder>', 'sovereign that may accept')
    .requiredOption('--capability <name>', 'capability to agree on (repeatable)', collect)
    .option('--scope <file>', 'JSON with the scope, - for standard input')
    .option('--expires-at <time>', 'deadline to accept (default: 24 hours from now)', timeAhead)
    .action(runOffer);
  addOperatorOptions(addOutOption(addWindowOptions(offer)), [
    'mesh-na agreement offer beta --capability read --capability write --out offer.json',
    'mesh-na agreement offer beta --capability read | mesh-na agreement accept - --out a.json',
  ]);

  const counter = agreement
    .command('counter')
    .description('answer an offer with a signed counteroffer (standard)')
    .argument('<offer>', 'the signed offer, - for standard input')
    .option('--capability <name>', 'capability to agree on (repeatable; default: all)', collect)
    .option('--scope <file>', 'JSON with the scope (default: as offered)')
    .action(runCounter);
  const asOffered = addWindowOptions(counter, { from: 'as offered', until: 'as offered' });
  addOperatorOptions(addOutOption(asOffered), [
    'mesh-na agreement counter offer.json --capability read --out counter.json',
  ]);

  const accept = agreement
    .command('accept')
    .description('sign an agreement: accept an offer, or a counter to our own offer (standard)')
    .argument('<offer>', 'the signed offer, - for standard input')
    .option('--counter <file>', 'accept this counter to the offer instead')
    .action(runAccept);
  addOperatorOptions(addOutOption(accept), [
    'mesh-na agreement accept offer.json --out agreement.json',
    'mesh-na agreement accept offer.json --counter counter.json --out agreement.json',
  ]);

  const verify = agreement
    .command('verify')
    .description('verify the signatures of an agreement; exit code 4 if they are invalid')
    .argument('<file>', 'the agreement, - for standard input')
    .addOption(partyKeyOption('--offerer-key', 'the offerer'))
    .addOption(partyKeyOption('--responder-key', 'the responder'))
    .addHelpText('after', '\nThis checks neither its age nor its evidence.')
    .action(runVerify);
  addVerificationOptions(verify, [
    'mesh-na agreement verify agreement.json',
    'mesh-na agreement verify agreement.json --offerer-key "$ALPHA_KEY" --responder-key "$BETA_KEY"',
  ]);
}

async function runOffer(responder: string, options: OfferOptions): Promise<void> {
  const { capability, scope, expiresAt } = options;
  const offer = await operatorClient(options).offerCapabilities({
    responder_sovereign_id: responder,
    capabilities: capability,
    scope: scope === undefined ? undefined : await readJsonFile(scope),
    ...windowOf(options),
    expires_at: expiresAt ?? hoursFromNow(OPEN_HOURS),
  });
  const { offer_id, offerer_sovereign_id, requested_terms, expires_at } = offer;
  const { verdict, reason } = offer.offerer_evidence;
  const use = verdict === 'block' ? 'It cannot be accepted' : `Acceptable until ${expires_at}`;
  deliverRecord(options, offer, {
    made: `Offer ${offer_id} created`,
    about: `${offerer_sovereign_id} offers ${responder} ${requested_terms.capabilities.join(', ')}. ${use}: evidence ${verdict}, ${reason}.`,
  });
}

async function runCounter(file: string, options: CounterOptions): Promise<void> {
  const [offer, scope] = await readJsonFiles(file, options.scope);
  const offered = offeredTerms(file, offer);
  const counter = await operatorClient(options).counterOffer({
    offer,
    capabilities: options.capability ?? offered.capabilities,
    scope: scope ?? offered.scope ?? {},
    ...windowOf(options, offered),
  });
  const { offer_id, responder_sovereign_id, agreed_terms, expires_at } = counter;
  deliverRecord(options, counter, {
    made: `Counter to offer ${offer_id} created`,
    about: `${responder_sovereign_id} would agree on ${agreed_terms.capabilities.join(', ')}. Acceptable until ${expires_at}.`,
  });
}

type OfferedTerms = Pick<AgreementTerms, 'capabilities'> & Partial<AgreementTerms>;

/** Reads only the members that a counter copies; the authority validates the offer. */
function offeredTerms(file: string, { requested_terms: terms }: JsonObject): OfferedTerms {
  if (isJsonObject(terms) && Array.isArray(terms.capabilities)) return terms as OfferedTerms;
  throw notHolding(file, 'an offer');
}

async function runAccept(file: string, options: AcceptOptions): Promise<void> {
  const [offer, counter] = await readJsonFiles(file, options.counter);
  const agreement = await operatorClient(options).acceptAgreement(
    counter === undefined ? { offer } : { counter, original_offer: offer },
  );
  const { agreement_id, offerer_sovereign_id, responder_sovereign_id, agreed_terms } = agreement;
  const { capabilities, valid_until } = agreed_terms;
  deliverRecord(options, agreement, {
    made: `Agreement ${agreement_id} created`,
    about: `${offerer_sovereign_id} and ${responder_sovereign_id} agree on ${capabilities.join(', ')} until ${valid_until}. Signatures: ${agreement.signatures.length}.`,
  });
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const agreement = await readJsonFile(file);
  const { offerer_sovereign_id: offerer, responder_sovereign_id: responder } = agreement;
  if (typeof offerer !== 'string' || typeof responder !== 'string') {
    throw notHolding(file, 'an agreement');
  }
  let { offererKey, responderKey } = options;
  if (offererKey === undefined || responderKey === undefined) {
    const known = await partiesOf(options);
    offererKey ??= keysOf(known, offerer, '--offerer-key');
    responderKey ??= keysOf(known, responder, '--responder-key');
  }
  const verdict = await (await verifierOf(options)).verifyAgreement({
    agreement,
    offerer_public_keys: offererKey,
    responder_public_keys: responderKey,
  });
  printVerdict(options, verdict, `agreement ${verdict.agreement_id}`);
}

function partyKeyOption(flag: string, who: string): Option {
  const fallback = "the authority's own, or those in its active treaties";
  const text = `key that ${who} must have signed with (repeatable; default: ${fallback})`;
  return new Option(`${flag} <key>`, text).argParser(collectAs(publicKey));
}
