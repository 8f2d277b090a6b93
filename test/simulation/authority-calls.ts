/** The one place that knows how the authority is opened and called. */

import {
  type AuthorityOptions,
  type OpenAuthority,
  openAuthority,
  type ReadyState,
} from '../../src/authority/open.ts';
import type { StateOptions } from '../../src/authority/state.ts';
import { REFUSALS, type RefusalName } from '../../src/base/refusal.ts';
import type { Runtime } from '../../src/base/runtime.ts';
import { createAuthoritySigner, heldHere } from '../../src/base/signer/authority-signer.ts';
import type { Answer } from '../../src/protocol/contract/answers.ts';
import type {
  CallInput,
  CallName,
  CallOf,
  OperatorCallName,
} from '../../src/protocol/contract/calls.ts';
import type { OperatorClaim } from '../../src/protocol/contract/claims.ts';
import type { DocumentPublisher } from '../../src/protocol/contract/publications.ts';
import { soleSigner } from '../../src/protocol/records/signed-record.ts';
import type { Store } from '../../src/store/store.ts';
import { unsignedGenesis } from '../support/unsigned-genesis.ts';
import { TOLERANCE } from './model/access.ts';
import { ACTIVE_WINDOW, FLUSH_INTERVAL } from './model/contacts.ts';
import { RENEWAL_GRACE, RETENTION } from './model/enrollment.ts';
import { AUTHORITY, NETWORK, OPERATORS } from './requests.ts';

export type { CallInput, CallName, CallOf, OpenAuthority, OperatorCallName };

/** An answer as its reader sees it. */
export type Reply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly refusal: string };

export interface Surroundings {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly publisher: DocumentPublisher;
  readonly fatal: AuthorityOptions['fatal'];
}

export async function open(
  { store, runtime, publisher, fatal }: Surroundings,
  ready: Promise<ReadyState> | null = null,
): Promise<OpenAuthority> {
  const options = {
    ...stateOptions(runtime, publisher),
    seen: null,
    retention: {
      certificate: RETENTION,
      renewedCertificate: RETENTION,
      invite: RETENTION,
      agent: RETENTION,
    },
    store,
    log: () => undefined,
    countRefusal: () => undefined,
    fatal,
  };
  return openAuthority(options, await ready);
}

export function stateOptions(runtime: Runtime, publisher: DocumentPublisher): StateOptions {
  return {
    settings: {
      networkName: NETWORK,
      networkVersion: '1',
      activeWindow: ACTIVE_WINDOW,
      renewalGrace: RENEWAL_GRACE,
      refuseForeignIssuers: false,
      commitWithinAgreement: false,
      genesis: unsignedGenesis(NETWORK, AUTHORITY.publicKey),
      firstPolicy: null,
      singleRefusals: { count: 3, windowMs: 60_000 },
    },
    operators: new Map(OPERATORS.map(({ keyId, tier }) => [keyId, { tier, publicKey: keyId }])),
    flushInterval: FLUSH_INTERVAL,
    clockTolerance: TOLERANCE,
    signer: createAuthoritySigner(
      heldHere(() => [AUTHORITY]),
      soleSigner(AUTHORITY),
    ),
    runtime,
    publisher,
  };
}

/** A promise when something has to be stored before the answer leaves. */
export function call<Name extends CallName>(
  { call: ask }: OpenAuthority,
  name: Name,
  given: CallOf<Name>,
): Reply | Promise<Reply> {
  const answer = ask(name, given);
  return answer instanceof Promise ? answer.then(replyOf) : replyOf(answer);
}

/** A body that is not well formed counts only once the operator was admitted. */
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
  if (!answer.ok) return { ok: false, refusal: titleOf(answer.refusal) };
  return { ok: true, value: answer.json === '' ? null : readJson(answer.json) };
}

/** Which check of a node's proof failed is a matter of the message alone. */
function titleOf(refusal: RefusalName): string {
  const { code } = REFUSALS[refusal];
  return code === 'node_auth_failed' ? code : refusal;
}

/** Pieces of a roster are members without braces. */
function readJson(text: string): unknown {
  return JSON.parse(text.startsWith('"') ? `{${text}}` : text);
}

/** The default policy that the first reader of a network without one finds. */
export const DEFAULT_POLICY = `policy-${NETWORK}-1`;
