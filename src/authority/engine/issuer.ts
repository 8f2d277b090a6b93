/** Issues records on behalf of this sovereign. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { Refusal, type RefusalName, refuse } from '../../base/refusal.ts';
import type { BuildFailure, Issuer } from '../../protocol/records/issuer.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { Authority } from './authority.ts';

export function issuerOf(
  { settings, signer, authorityKeys, runtime }: Authority,
  { at }: UnitOfWork,
): Issuer {
  const { current, trusted } = authorityKeys.chain();
  return {
    sovereignId: settings.networkName,
    keyId: signer.keyId,
    signer,
    previous: signer.previous,
    isRolledBack: signer.isRolledBack ?? false,
    ...(current !== null && { trusted }),
    sha256: SHA256,
    now: at,
    uuid: () => runtime.uuid(),
  };
}

/** Returns the record, or throws a refusal with the reason why it could not be built. */
export function built<T extends object>(result: T | BuildFailure<string>, refusal: RefusalName): T {
  return 'unbuilt' in result ? refuse(refusal, result.unbuilt) : result;
}

/** Acting under another sovereign's name is allowed unless the settings forbid it [core-g11]. */
export function assertOwnIssuer(na: Authority, issuer: string, refusal: RefusalName): void {
  if (na.settings.refuseForeignIssuers && issuer !== na.settings.networkName) {
    throw new Refusal(refusal, { expected: na.settings.networkName });
  }
}
