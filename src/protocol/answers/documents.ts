/** Answers that describe the network and the service [core-4-15]. */
import Type, { type Static } from 'typebox';
import { GenesisBlock } from '../records/genesis.ts';
import { Datetime } from '../records/record.ts';

export const SovereignDocument = Type.Object({
  sovereign_id: Type.String(),
  network_name: Type.String(),
  network_version: Type.String(),
  endpoint: Type.String(),
  network_authority: GenesisBlock.properties.network_authority,
  root_public_key: Type.String(),
  supported_surfaces: Type.Record(Type.String(), Type.String()),
  policy_manifest: GenesisBlock.properties.policy_manifest,
  bootstrap_anchor_count: Type.Integer(),
});

export const Liveness = Type.Object({ status: Type.Literal('ok') });

export const Readiness = Type.Object({
  status: Type.Literal('ready'),
  enrollment: Type.Enum(['open', 'insufficient_storage', 'signer_unavailable'], {
    description: 'Whether nodes may enroll, or what is missing: space, or the signer',
  }),
  accepts_signed_after: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'After a restore: every request signed up to this instant is refused',
    }),
  ),
  instance: Type.String({ description: 'A random id, new with each start of the authority' }),
  ha_mode: Type.Union([Type.Literal('single'), Type.Literal('standby'), Type.Literal('linked')], {
    description:
      'Whether other instances can replace this one, and whether they answer at the same time',
  }),
  role: Type.Optional(Type.Enum(['active', 'standby'])),
  term: Type.Optional(
    Type.Integer({
      description: 'The number of the term of the active instance: how many there have been so far',
    }),
  ),
  lag_revisions: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'How many revisions the standby state of the instance was behind at the last check; null while it has none',
    }),
  ),
  moving: Type.Optional(
    Type.Literal(true, {
      description:
        'A state is being moved into or out of the database: no standby becomes active until that has ended',
    }),
  ),
  database: Type.Object({
    backend: Type.String(),
    writable: Type.Boolean(),
    schema_version: Type.Integer(),
  }),
  signing_key: Type.Object({
    key_id: Type.String(),
    fingerprint: Type.String({ description: 'First 16 hex digits of SHA-256 of the public key' }),
  }),
});

export const Health = Type.Object({
  status: Type.Literal('healthy'),
  network: Type.String(),
  version: Type.String(),
  uptime_seconds: Type.Integer(),
  database: Type.Literal('ok'),
  migrations: Type.Literal('current'),
});

export type SovereignDocument = Static<typeof SovereignDocument>;
export type Liveness = Static<typeof Liveness>;
export type Readiness = Static<typeof Readiness>;
export type Health = Static<typeof Health>;

/** Events as readers receive them [events-3]. */

/** An entry of the audit log [core-4-16] without its hash; it may have members that this version does not know. */
export const LoggedEntry = Type.Object({
  event_id: Type.String(),
  event_type: Type.String(),
  details: Type.Record(Type.String(), Type.Unknown()),
  created_at: Datetime,
  /** The operator key that caused the event; absent if none did. */
  actor_key_id: Type.Optional(Type.String()),
  prev_hash: Type.String(),
});

export type LoggedEntry = Static<typeof LoggedEntry>;
