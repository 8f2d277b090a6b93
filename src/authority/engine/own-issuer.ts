import { Refusal, type RefusalName } from '../../base/refusal.ts';
import type { Authority } from './authority.ts';

/** Acting under another sovereign's name is allowed unless the settings refuse it [core-g11]. */
export function assertOwnIssuer(na: Authority, issuer: string, refusal: RefusalName): void {
  if (na.settings.refuseForeignIssuers && issuer !== na.settings.networkName) {
    throw new Refusal(refusal, { expected: na.settings.networkName });
  }
}
