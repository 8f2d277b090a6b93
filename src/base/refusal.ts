/**
 * Every refusal that the service can return: its internal name, HTTP status, code on the wire and a message that is
 * safe to show. Names are unique; codes are not, because some have two statuses (`certificate_not_found` is 403 to a
 * node and 404 to an operator).
 */
import type { JsonObject } from './json/value.ts';

interface RefusalEntry<Code extends string> {
  readonly status: number;
  readonly code: Code;
  readonly message: string;
}

/** A message whose code is not the name of the refusal. */
interface Coded<Code extends string> {
  readonly code: Code;
  readonly message: string;
}

type Messages = Readonly<Record<string, string | Coded<string>>>;

type Entries<Given extends Messages> = {
  readonly [Name in keyof Given & string]: RefusalEntry<
    Given[Name] extends Coded<infer Code> ? Code : Name
  >;
};

function coded<Code extends string>(code: Code, message: string): Coded<Code> {
  return { code, message };
}

function withStatus<Given extends Messages>(status: number, given: Given): Entries<Given> {
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    typeof value === 'string' ? { status, code: name, message: value } : { status, ...value },
  ]);
  return Object.fromEntries(entries);
}

export const REFUSALS = {
  ...withStatus(400, {
    invalid_limit: 'limit must be a whole number from 1 to 1000',
    invalid_since: 'since must be the sequence number of a revocation list',
    invalid_after: 'after must be the index of an event, or 0',
    invalid_follow: 'follow must be 0 or 1',
    invalid_cursor: 'The cursor is not valid',
    bad_request: 'The request path cannot be decoded',
    too_many_parameters: coded('bad_request', 'The query has more than 100 parameters'),
    repeated_parameter: 'A query parameter that may be given once is given twice',
    ambiguous_body: coded('bad_request', 'The length of the request body is ambiguous'),
    unknown_live_topic: coded('bad_request', 'topic must be dashboard or connectome'),
    invalid_json: 'The request body is not valid JSON',
    invalid_json_object: 'The request body must be a JSON object',
    missing_node_public_key: 'node_public_key is required',
    missing_invite_token: 'invite_token is required',
    invalid_validity_hours: 'validity_hours must be a whole number of at least 1',
    invalid_max_validity_hours: 'max_validity_hours must be a whole number from 1 to 87600',
    invalid_token_expiry_hours: 'token_expiry_hours must be a whole number from 1 to 8760',
    invalid_count: 'count must be an integer from 1 to 1000',
    invalid_batch: 'batch must be 1 to 64 printable ASCII characters without a blank at either end',
    invalid_name: 'name must be 1 to 64 printable characters without a blank at either end',
    invalid_labels:
      'labels must be at most 16 pairs of a key of 1 to 63 of a-z 0-9 . _ / - and a value of at most 63 printable characters',
    invalid_hostname: 'hostname must be 1 to 253 letters, digits and . _ -',
    invalid_recipient_public_key: 'recipient_public_key must be base64 of 32 bytes',
    invalid_role: 'roles must be a list of role names this network allows',
    too_many_roles: coded('invalid_role', 'At most 16 roles can be searched for'),
    missing_certificate_identity: 'cert_id and node_public_key are required',
    invalid_certificate_status: coded(
      'invalid_status',
      'status must be active, silent, renewed, superseded, expired or revoked',
    ),
    invalid_invite_status: coded(
      'invalid_status',
      'status must be unused, consumed, expired or withdrawn',
    ),
    invalid_operator_key_id: coded(
      'invalid_key_id',
      'key_id must be 1 to 128 letters, digits and . _ - @, and begin with a letter, a digit, _ or @',
    ),
    invalid_operator_public_key: coded(
      'invalid_public_key',
      'public_key must be base64 of 32 bytes',
    ),
    private_key_given:
      'What was given as a public key is the private key of a key that is known here: nothing was done',
    invalid_operator_tier: coded('invalid_tier', 'tier must be standard or privileged'),
    invalid_expires_before: 'expires_before must be a timestamp',
    invalid_silent_since: 'silent_since must be a timestamp',
    invalid_node_key: coded('invalid_key', 'The node key must be base64 of 32 bytes'),
    missing_cert_id: 'cert_id is required, or node_public_key in its place',
    invalid_revocation_reason:
      'reason must be key_compromise, cessation_of_operation, superseded or unspecified',
    invalid_agent_descriptor: 'The body is not a valid agent descriptor',
    descriptor_expired: 'The descriptor is not valid at this time',
    descriptor_superseded: 'A newer descriptor of this key, or its removal, is already known',
    descriptor_network_mismatch: 'The descriptor names another network',
    invalid_signed_at: 'signed_at is not a timestamp',
    invalid_delete_version: 'version must be v1',
    invalid_succession: 'The body is not a succession that the root key has signed',
    missing_policy_id: 'policy_id is required',
    missing_attestation_subject: 'subject_id and roles are required',
    attestation_issuer_mismatch: 'Attestations are issued in the name of this sovereign only',
    missing_treaty_subject: 'subject_sovereign_id and a list of subject_public_keys are required',
    empty_subject_public_keys: 'subject_public_keys must not be empty',
    invalid_authority_keys: 'authority_keys must be an object with a list of successions',
    invalid_sovereign_revocation_feed: 'feed is not a valid revocation feed',
    missing_issuer_public_keys: 'No public key of the feed issuer was given or is known',
    invalid_public_keys: 'Public keys must be a list of strings, or an object of strings',
    invalid_keys_of_others: coded(
      'invalid_public_keys',
      'Each public key of another sovereign must be base64 of 32 bytes',
    ),
    wrong_issuer: 'The issuer is not the expected one',
    missing_feed_signature: coded('missing_signature', 'The feed is not signed'),
    invalid_feed_signature: coded(
      'invalid_signature',
      'The feed is not signed by a key of its issuer',
    ),
    feed_issuer_mismatch: 'Only the feed of this sovereign is served',
    missing_recognition_policy: 'recognition_policy is required',
    missing_attestation: 'attestation is required',
    missing_treaty: 'treaty is required',
    missing_trust_path_parameters: 'from and to are required',
    invalid_explain: 'explain must be 0 or 1',
    invalid_without: 'without may name 16 treaties at most',
    invalid_series: 'series must name one to twelve series of the history, separated by commas',
    invalid_step: 'step must be 1m, 5m, 15m, 1h, 6h or 1d',
    invalid_time_range:
      'from and to must be timestamps, from before to, and at most 1500 steps apart',
    invalid_as_of: 'as_of must be a timestamp that is not in the future',
    missing_offer_fields: 'responder_sovereign_id and a list of capabilities are required',
    missing_counter_fields: 'offer, a list of capabilities and a valid window are required',
    missing_accept_fields: 'Either offer, or counter and original_offer are required',
    missing_boundary_fields:
      'agreement and requested_capability are required, and context must be valid',
    missing_decision: 'decision is required',
    missing_commit_fields: 'A list of capabilities and a valid agreement are required',
    missing_proof: 'A valid proof is required',
    missing_vote_fields: 'justification_proof and a boolean vote are required',
    missing_proof_fields:
      'justification_proof, votes, validators and a threshold are required and must be valid',
    missing_policy_fields:
      'licensee_sovereign_id, allowed_source_ids and allowed_access_types are required',
    missing_intent_fields: 'Lists of sources and access_types are required',
    missing_agreement: 'agreement is required',
    missing_evidence: 'evidence is required',
    missing_prove_fields:
      'capability, capabilities, commitment and prover_sovereign_id are required',
    missing_verify_fields: 'Both records to verify are required',
    missing_validator_public_keys: 'validator_public_keys must map each validator to its key',
    invalid_timestamps: 'Timestamps must be valid and in order',
    invalid_offer: 'offer is not a valid capability offer',
    invalid_agreement: 'agreement, or a list of keys, is not valid',
    invalid_decision: 'decision, or a list of keys, is not valid',
    invalid_evidence: 'evidence, or a list of keys, is not valid',
    invalid_justification: 'justification_proof is not valid',
    invalid_source: 'sources must be descriptors of data sources',
    invalid_commitment: 'commitment is not a valid capability commitment',
    invalid_input: 'A record, or a list of keys, is not valid',
    invalid_proof: 'proof, or a list of keys, is not valid',
  }),
  ...withStatus(401, {
    admin_auth_failed: 'Admin authentication failed',
    unknown_admin_key: coded('admin_auth_failed', 'Unknown admin key'),
    node_auth_failed: 'Node authentication failed',
    node_missing_fields: coded(
      'node_auth_failed',
      'Node authentication failed: timestamp, nonce or signature is missing',
    ),
    node_invalid_timestamp: coded(
      'node_auth_failed',
      'Node authentication failed: the timestamp is not valid',
    ),
    node_stale_timestamp: coded(
      'node_auth_failed',
      'Node authentication failed: the timestamp is too old, or too far ahead',
    ),
    node_nonce_replay: coded(
      'node_auth_failed',
      'Node authentication failed: the nonce was used before',
    ),
    node_invalid_signature: coded(
      'node_auth_failed',
      'Node authentication failed: the signature is not valid',
    ),
    session_ended:
      'The heartbeat session has ended, or this heartbeat does not belong to it: sign the heartbeat',
    descriptor_signature_required: 'The descriptor must be signed by its node key',
    invalid_agent_signature: coded(
      'invalid_signature',
      'The signature does not verify under the node key',
    ),
    delete_signature_required: 'signature and signed_at are required',
    signed_at_outside_window: 'signed_at is too old or too far ahead',
  }),
  ...withStatus(403, {
    foreign_origin: 'Live pages are sent to pages of this site only',
    insufficient_operator_tier: 'This action requires a privileged operator key',
    invalid_invite_token: 'The invite token is not valid',
    node_key_compromised: 'A certificate of this node key was revoked for key compromise',
    unknown_certificate: coded('certificate_not_found', 'The certificate is unknown'),
    certificate_key_mismatch: 'The certificate belongs to another node key',
    certificate_revoked: 'The certificate is revoked',
    certificate_not_yet_valid: 'The certificate is not yet valid',
    certificate_expired: 'The certificate has expired',
    certificate_superseded: 'The certificate was superseded by a newer one of its node key',
    renewal_role_change_forbidden: 'A renewal cannot change roles',
    node_has_no_active_certificate: 'The node key owns no active certificate',
    node_key_revoked: 'A certificate of this node key was revoked for key compromise',
  }),
  ...withStatus(404, {
    not_found: 'The path does not exist',
    certificate_not_found: 'The certificate is unknown',
    invite_not_found: 'No invite has this fingerprint',
    batch_not_found: 'No invite has this batch',
    node_not_found: 'No certificate of this node key is known',
    policy_not_found: 'The policy version does not exist',
    agent_not_registered: 'The node key has no registration',
    attestation_not_found: 'The attestation does not exist',
    treaty_not_found: 'The treaty does not exist',
    recognition_policy_not_configured: 'No recognition policy is set',
    unknown_operator_key: 'There is no such operator key',
    no_policy: 'No data-license policy is in force',
  }),
  ...withStatus(405, {
    method_not_allowed: 'The path does not allow this method',
  }),
  ...withStatus(408, {
    request_timeout: 'The request body took too long to arrive',
  }),
  ...withStatus(409, {
    already_done: 'The request was carried out when it first arrived, and its answer is not kept',
    since_ahead: 'No revocation list of that sequence has been issued',
    after_ahead: 'The audit log has no entry of that index yet',
    too_many_live_certificates: 'The node key has the maximum number of live certificates',
    invite_consumed: 'A node has joined with the invite',
    too_many_labels: 'A node has at most 16 labels',
    last_active_operator_key: 'The last usable operator key cannot be revoked',
    last_privileged_operator_key: 'No other privileged operator key is usable',
    operator_key_exists: 'The id or the public key belongs, or belonged, to another operator key',
    operator_key_configured: 'The configuration of the authority says which tier this key has',
    operator_key_revoked: 'The operator key is revoked',
    succession_staged: 'A succession is staged already',
    succession_not_staged: 'No succession is staged',
    activation_too_early: 'The staged succession takes effect later',
    authority_key_not_held:
      'This authority, or an instance linked to it, does not hold the private key that would sign',
    roll_back_impossible: 'The key of the authority cannot be rolled back',
    no_overlap: 'Only the current key signs',
    nodes_have_not_followed: 'Some nodes have not followed the change of the key',
    treaty_revoked: 'The treaty is revoked, or was replaced by another one',
    treaty_expired: 'The treaty has expired',
    nothing_to_follow: 'No change of the key is in force that the treaty has not followed',
    stale_sequence: 'The sequence of the feed is not newer than the imported one',
  }),
  ...withStatus(410, {
    delta_unavailable: 'That revocation list is too old to be continued: read the whole list',
  }),
  ...withStatus(413, {
    request_entity_too_large: 'The request body is too large',
  }),
  ...withStatus(422, {
    request_validation_failed: 'The request body does not have the expected form',
    invalid_recognition_policy: 'recognition_policy does not have the expected form',
    invalid_treaty_scope: 'scope does not have the expected form',
    chain_rejected: 'The chain of authority keys cannot be followed from the keys of the treaty',
    invalid_recognition_treaty: 'treaty is not a valid recognition treaty',
    invalid_attestation_or_policy:
      'attestation or recognition_policy does not have the expected form',
    invalid_attestation_or_treaty: 'attestation or treaty does not have the expected form',
    succession_rejected: 'The succession does not follow the keys of this authority',
    offer_rejected: 'The offer cannot be built',
    counter_rejected: 'The offer cannot be countered like this',
    accept_rejected: 'The offer or counter cannot be accepted',
    boundary_eval_failed: 'The request cannot be judged under this agreement',
    evidence_build_failed: 'Evidence of the decision cannot be built',
    commit_failed: 'The capabilities cannot be committed to',
    nullifier_failed: 'The proof cannot be nullified',
    vote_failed: 'The vote cannot be cast',
    proof_assembly_failed: 'The votes do not reach a consensus',
    intent_create_failed: 'The intent cannot be declared',
    prove_failed: 'The capability cannot be proven to be in the list',
  }),
  ...withStatus(426, {
    upgrade_required: 'This path requires a WebSocket upgrade',
  }),
  ...withStatus(429, {
    rate_limit_exceeded: 'Too many requests; try again later',
    admin_auth_throttled: 'Too many requests failed operator authentication; try again later',
  }),
  ...withStatus(500, {
    internal_server_error: 'An unexpected error occurred',
  }),
  ...withStatus(503, {
    authority_unavailable:
      'Another instance serves this network, or is about to, or none can: nothing was done',
    signer_unavailable:
      'The signer that holds the key of the authority is unavailable: nothing was done',
    outcome_unknown:
      'The instance that writes was lost before it answered: the request was carried out, or it was not',
    restore_pending:
      'The state of the authority is older than what it has published, and has to be restored',
    restored_recently:
      'The state was restored, and a request that was signed before then may have been accepted already: sign a new one later',
    too_many_event_readers: 'Too many event readers are connected; try again later',
    service_not_ready: 'The service is not ready',
    overloaded: 'More requests are waiting than can be answered in time',
    shutting_down: 'The service is shutting down',
  }),
  ...withStatus(507, {
    insufficient_storage: 'The disk of the authority is nearly full, and nothing new is enrolled',
  }),
};

export type RefusalName = keyof typeof REFUSALS;

/** The only typed error: thrown anywhere below the edge, turned into the error envelope at the edge. */
export class Refusal extends Error {
  readonly refusal: RefusalName;
  readonly details: JsonObject;

  constructor(refusal: RefusalName, details: JsonObject = {}) {
    super(REFUSALS[refusal].message);
    this.refusal = refusal;
    this.details = details;
  }
}

/** Refuses with a cause more specific than the code of the refusal; the cause goes into the details. */
export function refuse(refusal: RefusalName, cause?: string): never {
  throw new Refusal(refusal, cause === undefined ? {} : { cause });
}

/** Refuses unless a member passed its check. */
export function demand(passed: boolean, refusal: RefusalName, cause: string): asserts passed {
  if (!passed) refuse(refusal, cause);
}

/** Whether the failure is that no signature could be obtained. */
export function isSignerUnavailable(cause: unknown): boolean {
  return cause instanceof Refusal && cause.refusal === 'signer_unavailable';
}
