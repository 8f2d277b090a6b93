/**
 * Client requests, signed for the current key as the edge of an instance knows it, in the form that this edge forwards.
 */
import type { Signer } from '../../../src/base/crypto/primitives.ts';
import type { KnownAuthorityKeys } from '../../../src/edge/auth/known-keys.ts';
import type { CallInput, CallOf, OperatorCallName } from '../authority-calls.ts';
import { OPERATORS, STRANGER, signAsNode, signAsOperator } from '../requests.ts';

export interface Asking {
  readonly now: number;
  /** Used only once. */
  readonly nonce: string;
  readonly authorityKeys: Pick<KnownAuthorityKeys, 'audiences' | 'current'>;
}

export function asOperator<Name extends OperatorCallName>(
  name: Name,
  given: CallInput<Name>,
  asking: Asking,
): CallOf<Name> {
  const { now, authorityKeys } = asking;
  const stamp = { ...asking, audience: authorityKeys.current };
  const body = { given: JSON.stringify(given) };
  const signed = signAsOperator(OPERATORS[0] ?? STRANGER, `/admin/${name}`, body, stamp, 'none');
  const input = { ok: true, value: given };
  return { operator: signed.judge(now), input } as unknown as CallOf<Name>;
}

export function joining(inviteToken: string, key: Signer, asking: Asking): CallOf<'join'> {
  const stamp = { ...asking, audience: asking.authorityKeys.current };
  const signed = signAsNode(key, '/join', { invite_token: inviteToken }, stamp, 'none');
  return {
    node: signed.judge(asking.now),
    invite_token: inviteToken,
    validity_hours: 24,
    hostname: null,
  };
}

export const INVITE = {
  roles: [],
  max_validity_hours: 48,
  token_expiry_hours: 48,
  recipient_public_key: null,
  count: null,
  batch: null,
  name: null,
  labels: null,
};
