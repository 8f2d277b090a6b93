/** Attestations and treaties, as listed, with the lifecycle of a treaty at the time of the answer [core-4-11], [core-4-13], [core-6-1]. */
import Type, { type Static } from 'typebox';
import { AuthorityKey } from '../records/authority-chain.ts';
import { MembershipAttestation, RecognitionTreaty } from '../records/recognition.ts';
import { Datetime } from '../records/record.ts';

export const AttestationRow = Type.Object({
  attestation: MembershipAttestation,
  /** The stored status; time does not change it. */
  status: Type.Enum(['active', 'revoked']),
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
});

export type AttestationRow = Static<typeof AttestationRow>;

/** From most to least important. */
export const LIFECYCLE_STATES = [
  'active',
  'expiring_soon',
  'expired',
  'revoked',
  'replaced',
] as const;
export const LifecycleState = Type.Enum([...LIFECYCLE_STATES]);
export const ExpiryRisk = Type.Enum(['none', 'low', 'medium', 'high', 'expired']);
/** The stored status; time does not change it. */
export const TreatyStatus = Type.Enum(['active', 'revoked']);

export const Lifecycle = Type.Object({
  state: LifecycleState,
  expiry_risk: ExpiryRisk,
  seconds_until_expiry: Type.Union([Type.Integer(), Type.Null()]),
  expires_at: Datetime,
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
  replacement_treaty_id: Type.Union([Type.String(), Type.Null()]),
});

const MaybeInstant = Type.Union([Datetime, Type.Null()]);

/** How the authority of a partner was fetched by the instance that is active now. */
export const FetchState = Type.Object({
  fetched_at: Type.Union([Datetime, Type.Null()], {
    description: 'When its keys and its feed were last fetched, and nothing was wrong with them',
  }),
  imported_at: Type.Union([Datetime, Type.Null()], {
    description: 'When a feed of it was last imported, by whomever',
  }),
  failing_since: MaybeInstant,
  problem: Type.Union([Type.String(), Type.Null()]),
});

export const TreatyRow = Type.Object({
  treaty: RecognitionTreaty,
  status: TreatyStatus,
  revoked_at: MaybeInstant,
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
  lifecycle: Lifecycle,
  endpoint: Type.Optional(
    Type.String({ description: 'Only if the authority of the subject is fetched from there' }),
  ),
  fetch: Type.Optional(FetchState),
  followed: Type.Optional(
    Type.Object(
      {
        root_public_key: Type.String(),
        sequence: Type.Integer(),
        keys: Type.Array(AuthorityKey),
      },
      { description: 'Only if the treaty followed its subject to another authority key' },
    ),
  ),
});

export type LifecycleState = Static<typeof LifecycleState>;
export type ExpiryRisk = Static<typeof ExpiryRisk>;
export type TreatyStatus = Static<typeof TreatyStatus>;
export type Lifecycle = Static<typeof Lifecycle>;
export type FetchState = Static<typeof FetchState>;
export type TreatyRow = Static<typeof TreatyRow>;
