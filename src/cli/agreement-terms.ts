import type { Command } from 'commander';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import type { AgreementTerms } from '../protocol/records/agreement.ts';
import { notHolding, readJsonFile, readJsonFiles } from './json-file.ts';
import { type OperatorOptions, operatorClient } from './operator-connection.ts';
import { collect } from './options.ts';
import { deliverRecord, type RecordOptions } from './record-output.ts';
import { addWindowOptions, hoursFromNow, type WindowOptions, windowOf } from './validity.ts';

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

/** Terms of a counter; a term that is not given is taken from the offer. */
export function addTermsOptions(command: Command): Command {
  command
    .option('--capability <name>', 'capability to agree on (repeatable; default: all)', collect)
    .option('--scope <file>', 'JSON with the scope (default: that of the offer)');
  return addWindowOptions(command, { from: 'as offered', until: 'as offered' });
}

/** `agreement offer`. */
export async function runOffer(responder: string, options: OfferOptions): Promise<void> {
  const { capability, scope, expiresAt } = options;
  const offer = await operatorClient(options).offerCapabilities({
    responder_sovereign_id: responder,
    capabilities: capability,
    ...(scope !== undefined && { scope: await readJsonFile(scope) }),
    ...windowOf(options),
    expires_at: expiresAt ?? hoursFromNow(OPEN_HOURS),
  });
  const { offer_id, offerer_sovereign_id, requested_terms, expires_at } = offer;
  const { verdict, reason } = offer.offerer_evidence;
  const use = verdict === 'block' ? 'It cannot be accepted' : `Acceptable until ${expires_at}`;
  deliverRecord(
    options,
    offer,
    `Offer ${offer_id} created`,
    `${offerer_sovereign_id} offers ${responder} ${requested_terms.capabilities.join(', ')}. ${use}: evidence ${verdict}, ${reason}.`,
  );
}

/** `agreement counter`. */
export async function runCounter(file: string, options: CounterOptions): Promise<void> {
  const [offer, scope] = await offerAndScope(file, options.scope);
  const offered = offeredTerms(file, offer);
  const counter = await operatorClient(options).counterOffer({
    offer,
    capabilities: options.capability ?? offered.capabilities,
    scope: scope ?? offered.scope ?? {},
    ...windowOf(options, offered),
  });
  const { offer_id, responder_sovereign_id, agreed_terms, expires_at } = counter;
  deliverRecord(
    options,
    counter,
    `Counter to offer ${offer_id} created`,
    `${responder_sovereign_id} would agree on ${agreed_terms.capabilities.join(', ')}. Acceptable until ${expires_at}.`,
  );
}

async function offerAndScope(file: string, scope: string | undefined) {
  return scope === undefined ? [await readJsonFile(file)] : readJsonFiles(file, scope);
}

type OfferedTerms = Pick<AgreementTerms, 'capabilities'> & Partial<AgreementTerms>;

/** Reads only the members that a counter copies; the authority judges the offer. */
function offeredTerms(file: string, { requested_terms: terms }: JsonObject): OfferedTerms {
  if (isJsonObject(terms) && Array.isArray(terms.capabilities)) return terms as OfferedTerms;
  throw notHolding(file, 'an offer');
}
