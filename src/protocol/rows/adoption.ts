/** Which nodes and treaties have followed a change of the authority key [authority-keys-11]. */
import Type, { type Static } from 'typebox';
import { SUCCESSION_KINDS } from '../records/authority-succession.ts';
import { Datetime, nullable } from '../records/record.ts';
import { DescriptionMembers } from './node-description.ts';

export const ADOPTION_STATES = [
  /** Published, and not in force yet. */
  'staged',
  /** In force, and the key before still signs, too. */
  'overlap',
  /** In force, and only the current key signs. */
  'finished',
] as const;

const TALLY = {
  /** Nodes that reported within the active-node window. */
  active: Type.Integer(),
  /** Of those, nodes with a certificate that the key of the statement signed. */
  certified: Type.Integer(),
  /** Of those, nodes that know the statement. */
  informed: Type.Integer(),
  followed: Type.Integer(),
  /** Active nodes that have not followed. */
  laggards: Type.Integer(),
  /** Active nodes that have not sent a heartbeat since this process began to serve. */
  not_heard: Type.Integer(),
  silent: Type.Integer(),
};

export const FollowedSuccession = Type.Object({
  sequence: Type.Integer(),
  kind: Type.Enum([...SUCCESSION_KINDS]),
  state: Type.Enum([...ADOPTION_STATES]),
  to_key: Type.String(),
  activates_at: Datetime,
  overlap_until: Datetime,
});

export const AdoptionTally = Type.Object(TALLY);

export const RoleAdoption = Type.Object({ role: Type.String(), ...TALLY });

export const LaggardRow = Type.Object({
  cert_id: Type.String(),
  node_public_key: Type.String(),
  ...DescriptionMembers,
  roles: Type.Array(Type.String()),
  issued_at: Datetime,
  expires_at: Datetime,
  last_contact: Datetime,
  certified: Type.Boolean(),
  /** Null if the node has not sent a heartbeat since this process began to serve. */
  informed: nullable(Type.Boolean()),
});

export const PartnerAdoption = Type.Object({
  treaty_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  subject_sovereign_id: Type.String(),
  /** The last statement of the subject that another treaty has followed. */
  known_sequence: Type.Integer(),
  /** The last statement that this treaty has followed; 0 if none. */
  followed_sequence: Type.Integer(),
  accepts_stolen_key: Type.Boolean(),
});

export const Adoption = Type.Object({
  as_of: Datetime,
  succession: nullable(FollowedSuccession),
  known_from: nullable(Datetime),
  nodes: nullable(AdoptionTally),
  roles: Type.Array(RoleAdoption),
  laggards: Type.Array(LaggardRow),
  partners: Type.Array(PartnerAdoption),
});

export type AdoptionState = (typeof ADOPTION_STATES)[number];
export type FollowedSuccession = Static<typeof FollowedSuccession>;
export type AdoptionTally = Static<typeof AdoptionTally>;
export type RoleAdoption = Static<typeof RoleAdoption>;
export type LaggardRow = Static<typeof LaggardRow>;
export type PartnerAdoption = Static<typeof PartnerAdoption>;
export type Adoption = Static<typeof Adoption>;
