/** The only module that knows how to open and call the authority. */

import {
  type AuthorityOptions,
  type OpenAuthority,
  openAuthority,
  type ReadyState,
} from '../../src/authority/open.ts';
import type { StateOptions } from '../../src/authority/state.ts';
import type { JsonObject } from '../../src/base/json/value.ts';
import type { Runtime } from '../../src/base/runtime.ts';
import type { AuthoritySigner } from '../../src/base/signer/authority-signer.ts';
import type {
  Answer,
  CallInput,
  CallName,
  CallOf,
  OperatorCallName,
} from '../../src/protocol/contract/calls.ts';
import type { OperatorClaim } from '../../src/protocol/contract/claims.ts';
import type { DocumentPublisher } from '../../src/protocol/contract/documents.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import { REFUSALS, type RefusalName } from '../../src/protocol/refusals.ts';
import type { Store } from '../../src/store/store.ts';
import type { KeyFolder } from './key-folder.ts';
import { TOLERANCE } from './model/access.ts';
import { ACTIVE_WINDOW, FLUSH_INTERVAL } from './model/contacts.ts';
import { RENEWAL_GRACE, RETENTION } from './model/enrollment.ts';
import { NETWORK, OPERATORS } from './requests.ts';

export type { CallInput, CallName, CallOf, OpenAuthority, OperatorCallName };

/** An answer as its reader sees it. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly refusal: string; readonly details: JsonObject };

export interface Surroundings extends Partial<Pick<AuthorityOptions, 'seen' | 'hostStatus'>> {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly publisher: DocumentPublisher;
  readonly fatal: AuthorityOptions['fatal'];
  /** The signer of this process; its state may have been followed with it. */
  readonly signer: AuthoritySigner;
  readonly folder: KeyFolder;
}

export async function open(
  { store, runtime, publisher, fatal, signer, folder, seen = null, hostStatus }: Surroundings,
  ready: Promise<ReadyState> | null = null,
): Promise<OpenAuthority> {
  const options = {
    ...stateOptions({ runtime, publisher, signer, folder }),
    seen,
    ...(hostStatus && { hostStatus }),
    retention: {
      certificate: RETENTION,
      renewedCertificate: RETENTION,
      invite: RETENTION,
      agent: RETENTION,
    },
    store,
    log: () => undefined,
    countRefusal: () => undefined,
    keysSettled: async (genesis: GenesisBlock, former: readonly string[]) =>
      folder.settle(genesis, former),
    fatal,
  };
  return openAuthority(options, await ready);
}

export function stateOptions({
  runtime,
  publisher,
  signer,
  folder,
}: Pick<Surroundings, 'runtime' | 'publisher' | 'signer' | 'folder'>): StateOptions {
  return {
    settings: {
      networkName: NETWORK,
      networkVersion: '1',
      activeWindow: ACTIVE_WINDOW,
      renewalGrace: RENEWAL_GRACE,
      refuseForeignIssuers: false,
      commitWithinAgreement: false,
      genesis: folder.genesis,
      firstPolicy: null,
      singleRefusals: { count: 3, windowMs: 60_000 },
    },
    operators: new Map(
      OPERATORS.map(({ keyId, tier, key }) => [keyId, { tier, publicKey: key.publicKey }]),
    ),
    flushInterval: FLUSH_INTERVAL,
    clockTolerance: TOLERANCE,
    signer,
    runtime,
    publisher,
  };
}

/** Returns a promise when something must be stored before the answer is sent. */
export function call<Name extends CallName>(
  { call: ask }: OpenAuthority,
  name: Name,
  given: CallOf<Name>,
): Reply | Promise<Reply> {
  const answer = ask(name, given);
  return answer instanceof Promise ? answer.then(replyOf) : replyOf(answer);
}

/** A malformed body matters only after the operator has been authenticated. */
export function callAsOperator<Name extends OperatorCallName>(
  authority: OpenAuthority,
  name: Name,
  operator: OperatorClaim,
  given: CallInput<Name>,
  isWellFormed: boolean,
): Reply | Promise<Reply> {
  const input = isWellFormed
    ? { ok: true, value: given }
    : { ok: false, refusal: 'request_validation_failed', details: {} };
  return call(authority, name, { operator, input } as unknown as CallOf<Name>);
}

function replyOf(answer: Answer): Reply {
  if (!answer.ok) {
    const { refusal, details } = answer;
    return { ok: false, refusal: titleOf(refusal, details), details };
  }
  return { ok: true, value: answer.json === '' ? null : readJson(answer.json) };
}

const WITH_CAUSE: ReadonlySet<RefusalName> = new Set<RefusalName>([
  'succession_rejected',
  'roll_back_impossible',
]);

/** Which check of a node's proof failed shows only in the message, so the model does not predict it. */
function titleOf(refusal: RefusalName, details: JsonObject): string {
  const { code } = REFUSALS[refusal];
  if (WITH_CAUSE.has(refusal)) return `${refusal}: ${details.cause}`;
  return code === 'node_auth_failed' ? code : refusal;
}

/** Pieces of a roster are members without the surrounding braces. */
function readJson(text: string): unknown {
  return JSON.parse(text.startsWith('"') ? `{${text}}` : text);
}

/** The default policy, which the first read of a network without a policy creates. */
export const DEFAULT_POLICY = `policy-${NETWORK}-1`;
