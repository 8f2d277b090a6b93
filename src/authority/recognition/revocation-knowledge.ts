/** What the state knows of revocations that concern an attestation or a treaty under verification. */
import type { RevocationKnowledge } from '../../protocol/contract/inputs.ts';
import type { Handler } from '../engine/admission.ts';
import { isRevokedHere } from './attestations.ts';
import { isTreatyRevoked } from './treaties.ts';

export const askRevocations: Handler<'askRevocations'> = (na, { attestation, treatyId }) => {
  const knowledge: RevocationKnowledge = {
    attestation_revoked_here: attestation !== null && isRevokedHere(na, attestation.id),
    attestation_revoked_by_feed:
      attestation !== null && na.recognition.isRevoked(attestation.issuer, attestation.id),
    treaty_revoked: treatyId !== null && isTreatyRevoked(na, treatyId),
  };
  return { ...knowledge };
};
