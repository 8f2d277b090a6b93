/**
 * Every refusal that the service can return: its name, HTTP status, a message that is safe to show, what to do about
 * it, and its code on the wire where that is not the name. Names are unique; codes are not, because some have two
 * statuses (`certificate_not_found` is 403 to a node and 404 to an operator).
 */
import type { JsonObject } from '../base/json/value.ts';

interface Entry {
  readonly code?: string;
  readonly message: string;
  /** Sentences in the imperative, as Markdown of `docs/`. */
  readonly cure: string;
}

interface RefusalEntry<Code extends string> extends Entry {
  readonly status: number;
  readonly code: Code;
}

type Entries<Given extends Readonly<Record<string, Entry>>> = {
  readonly [Name in keyof Given & string]: RefusalEntry<
    Given[Name] extends { readonly code: infer Code extends string } ? Code : Name
  >;
};

function withStatus<const Given extends Readonly<Record<string, Entry>>>(
  status: number,
  given: Given,
): Entries<Given> {
  const entries = Object.entries(given).map(([name, entry]) => [
    name,
    { status, code: name, ...entry },
  ]);
  return Object.fromEntries(entries);
}

const COMPLETE =
  'Send the members that the message names; `details.cause` says which one is wrong.';
const AS_RECEIVED = 'Send the record exactly as received, with every member that its issuer signed';
const WHOLE_RECORD = `${AS_RECEIVED}; \`details.cause\` names the one that is wrong.`;
const SIGN_AGAIN = 'Sign the request again with the current time and a fresh nonce, and resend it.';
const OWN_CERTIFICATE = 'Use the `cert_id` of the newest certificate that this authority issued.';
const JOIN_AGAIN = 'Ask an operator for an invite and join again.';
const NEW_KEY = 'Create a new key, ask an operator for an invite, and join with them.';
const WHOLE_HOURS = 'Send a whole number of hours within the bounds in the message.';

export const REFUSALS = {
  ...withStatus(400, {
    invalid_limit: {
      message: 'limit must be a whole number from 1 to 1000',
      cure: 'Send a whole number from 1 to 1000, or omit `limit` to get the whole list.',
    },
    invalid_since: {
      message: 'since must be the sequence number of a revocation list',
      cure: 'Send the `sequence` of the list that you have, in decimal digits.',
    },
    invalid_after: {
      message: 'after must be the index of an event, or 0',
      cure: 'Send the `index` of the last event that you have, in decimal digits, or 0 for all events.',
    },
    invalid_follow: {
      message: 'follow must be 0 or 1',
      cure: 'Send `follow=0` for past events, or `follow=1` to keep receiving new ones.',
    },
    invalid_cursor: {
      message: 'The cursor is not valid',
      cure: 'Send the `next_cursor` of the previous page unchanged, or start over without it.',
    },
    bad_request: {
      message: 'The request path cannot be decoded',
      cure: 'Percent-encode the path as UTF-8.',
    },
    too_many_parameters: {
      code: 'bad_request',
      message: 'The query has more than 100 parameters',
      cure: 'Send at most 100 query parameters.',
    },
    repeated_parameter: {
      message: 'A query parameter that may be given once is given twice',
      cure: 'Send the parameter in details.parameter once.',
    },
    ambiguous_body: {
      code: 'bad_request',
      message: 'The length of the request body is ambiguous',
      cure: 'Send one `Content-Length`, or `Transfer-Encoding: chunked`; check the proxy.',
    },
    unknown_live_topic: {
      code: 'bad_request',
      message: 'topic must be dashboard or connectome',
      cure: 'Request `topic=dashboard` or `topic=connectome`.',
    },
    invalid_json: {
      message: 'The request body is not valid JSON',
      cure: 'Send strict JSON in UTF-8: no repeated names, no comments, no lone surrogates, at most 64 levels deep.',
    },
    invalid_json_object: {
      message: 'The request body must be a JSON object',
      cure: 'Send one JSON object; an empty body counts as `{}`.',
    },
    missing_node_public_key: {
      message: 'node_public_key is required',
      cure: 'Send `node_public_key`: the base64 public key of the node.',
    },
    missing_invite_token: {
      message: 'invite_token is required',
      cure: 'Send `invite_token`, which an operator creates with `mesh-na invite create`.',
    },
    invalid_validity_hours: {
      message: 'validity_hours must be a whole number of at least 1',
      cure: WHOLE_HOURS,
    },
    invalid_max_validity_hours: {
      message: 'max_validity_hours must be a whole number from 1 to 87600',
      cure: WHOLE_HOURS,
    },
    invalid_token_expiry_hours: {
      message: 'token_expiry_hours must be a whole number from 1 to 8760',
      cure: WHOLE_HOURS,
    },
    invalid_count: {
      message: 'count must be an integer from 1 to 1000',
      cure: 'Request 1 to 1000 tokens at a time.',
    },
    invalid_batch: {
      message: 'batch must be 1 to 64 printable ASCII characters without a blank at either end',
      cure: 'Send a label of the form that the message describes.',
    },
    invalid_name: {
      message: 'name must be 1 to 64 printable characters without a blank at either end',
      cure: 'Send a name of the form that the message describes.',
    },
    invalid_labels: {
      message:
        'labels must be at most 16 pairs of a key of 1 to 63 of a-z 0-9 . _ / - and a value of at most 63 printable characters',
      cure: 'Send labels of the form that the message describes.',
    },
    invalid_hostname: {
      message: 'hostname must be 1 to 253 letters, digits and . _ -',
      cure: 'Send a host name of the form that the message describes, or none.',
    },
    invalid_recipient_public_key: {
      message: 'recipient_public_key must be base64 of 32 bytes',
      cure: 'Send the public key of the node in canonical base64.',
    },
    invalid_role: {
      message: 'roles must be a list of role names this network allows',
      cure: 'Use role names that begin with one of `MESH_ROLE_PREFIXES`.',
    },
    too_many_roles: {
      code: 'invalid_role',
      message: 'At most 16 roles can be searched for',
      cure: 'Send role at most 16 times.',
    },
    missing_certificate_identity: {
      message: 'cert_id and node_public_key are required',
      cure: 'Send `cert_id` and `node_public_key`.',
    },
    invalid_certificate_status: {
      code: 'invalid_status',
      message: 'status must be active, silent, renewed, superseded, expired or revoked',
      cure: 'Request one of the statuses that the message lists.',
    },
    invalid_invite_status: {
      code: 'invalid_status',
      message: 'status must be unused, consumed, expired or withdrawn',
      cure: 'Request one of the statuses that the message lists.',
    },
    invalid_operator_key_id: {
      code: 'invalid_key_id',
      message:
        'key_id must be 1 to 128 letters, digits and . _ - @, and begin with a letter, a digit, _ or @',
      cure: 'Choose an id of 1 to 128 of the characters that the message lists.',
    },
    invalid_operator_public_key: {
      code: 'invalid_public_key',
      message: 'public_key must be base64 of 32 bytes',
      cure: 'Send the Ed25519 public key of the operator in canonical base64.',
    },
    private_key_given: {
      message:
        'What was given as a public key is the private key of a key that is known here: nothing was done',
      cure: 'Send the public key from the `.pub` file. Replace the key pair if others may have seen the request with the private key.',
    },
    invalid_operator_tier: {
      code: 'invalid_tier',
      message: 'tier must be standard or privileged',
      cure: 'Send `standard` or `privileged`.',
    },
    invalid_expires_before: {
      message: 'expires_before must be a timestamp',
      cure: 'Send an ISO 8601 time, and percent-encode its `+`.',
    },
    invalid_silent_since: {
      message: 'silent_since must be a timestamp',
      cure: 'Send an ISO 8601 timestamp, or leave it out.',
    },
    invalid_node_key: {
      code: 'invalid_key',
      message: 'The node key must be base64 of 32 bytes',
      cure: 'Send the public key of the node in canonical base64; percent-encode `+` and `/` in a query.',
    },
    missing_cert_id: {
      message: 'cert_id is required, or node_public_key in its place',
      cure: 'Send the `cert_id` of the certificate to revoke, or `node_public_key` to revoke all certificates of a node key.',
    },
    invalid_revocation_reason: {
      message: 'reason must be key_compromise, cessation_of_operation, superseded or unspecified',
      cure: 'Choose one of the reasons that the message lists.',
    },
    invalid_agent_descriptor: {
      message: 'The body is not a valid agent descriptor',
      cure: 'Send every member of a descriptor, within its bounds, with `expires_at` after `registered_at`.',
    },
    descriptor_expired: {
      message: 'The descriptor is not valid at this time',
      cure: 'Sign a descriptor that is valid now: `registered_at` at most five minutes ahead, `expires_at` in the future.',
    },
    descriptor_superseded: {
      message: 'A newer descriptor of this key, or its removal, is already known',
      cure: 'Sign a descriptor with a later `registered_at`.',
    },
    descriptor_network_mismatch: {
      message: 'The descriptor names another network',
      cure: 'Put the name of this network, `details.expected`, into the descriptor.',
    },
    invalid_signed_at: {
      message: 'signed_at is not a timestamp',
      cure: 'Send `signed_at` as an ISO 8601 time, and sign the same text.',
    },
    invalid_delete_version: {
      message: 'version must be v1',
      cure: 'Send `version` as `v1`, or omit it.',
    },
    invalid_succession: {
      message: 'The body is not a succession that the root key has signed',
      cure: 'Send the file that `mesh-na authority-key sign` wrote, unchanged.',
    },
    missing_policy_id: {
      message: 'policy_id is required',
      cure: 'Send the `policy_id` of a version from `mesh-na policy list`.',
    },
    missing_attestation_subject: {
      message: 'subject_id and roles are required',
      cure: 'Send `subject_id` and a list of `roles` that is not empty.',
    },
    attestation_issuer_mismatch: {
      message: 'Attestations are issued in the name of this sovereign only',
      cure: 'Omit `issuer_sovereign_id`, or allow other names with `MESH_FOREIGN_ISSUER=allow`.',
    },
    missing_treaty_subject: {
      message: 'subject_sovereign_id and a list of subject_public_keys are required',
      cure: 'Send `subject_sovereign_id` and a list of `subject_public_keys`.',
    },
    empty_subject_public_keys: {
      message: 'subject_public_keys must not be empty',
      cure: 'Name at least one key of the other sovereign.',
    },
    invalid_endpoint: {
      message: 'endpoint must be an http or https URL without user, query, fragment and blanks',
      cure: 'Send the base URL of the authority of the other sovereign, such as `https://na.beta.example`.',
    },
    invalid_authority_keys: {
      message: 'authority_keys must be an object with a list of successions',
      cure: 'Send what `/authority-keys` of the other sovereign answers, or its list of `successions`, in `authority_keys`.',
    },
    invalid_sovereign_revocation_feed: {
      message: 'feed is not a valid revocation feed',
      cure: 'Fetch the feed again from its issuer, and raise `MESH_MAX_FEED_ENTRIES` if it is long.',
    },
    missing_issuer_public_keys: {
      message: 'No public key of the feed issuer was given or is known',
      cure: 'Send `issuer_public_keys`, or issue a treaty with that sovereign first.',
    },
    invalid_public_keys: {
      message: 'Public keys must be a list of strings, or an object of strings',
      cure: 'Send keys as a list of base64 strings, or as an object of id and key.',
    },
    invalid_keys_of_others: {
      code: 'invalid_public_keys',
      message: 'Each public key of another sovereign must be base64 of 32 bytes',
      cure: 'Send each key in canonical base64, as the other sovereign publishes it.',
    },
    wrong_issuer: {
      message: 'The issuer is not the expected one',
      cure: 'Check the issuer of the record against the expected one.',
    },
    missing_feed_signature: {
      code: 'missing_signature',
      message: 'The feed is not signed',
      cure: 'Fetch the feed from its issuer; one without a signature is never accepted.',
    },
    invalid_feed_signature: {
      code: 'invalid_signature',
      message: 'The feed is not signed by a key of its issuer',
      cure: 'Check that the keys are the current keys of the issuer, and fetch the feed again.',
    },
    feed_issuer_mismatch: {
      message: 'Only the feed of this sovereign is served',
      cure: 'Request the feed of this sovereign, or get the other feed from its issuer.',
    },
    missing_recognition_policy: {
      message: 'recognition_policy is required',
      cure: 'Send `recognition_policy`, or set one with `mesh-na recognition-policy set`.',
    },
    missing_attestation: {
      message: 'attestation is required',
      cure: 'Send the attestation to verify in `attestation`.',
    },
    missing_treaty: {
      message: 'treaty is required',
      cure: 'Send the treaty to verify in `treaty`.',
    },
    missing_trust_path_parameters: {
      message: 'from and to are required',
      cure: 'Send both `from` and `to`.',
    },
    invalid_explain: { message: 'explain must be 0 or 1', cure: 'Send `explain=1`, or omit it.' },
    invalid_without: {
      message: 'without may name 16 treaties at most',
      cure: 'List fewer treaties in `without`.',
    },
    invalid_series: {
      message: 'series must name one to twelve series of the history, separated by commas',
      cure: 'Send names of series, such as `heartbeats,active_nodes`.',
    },
    invalid_step: {
      message: 'step must be 1m, 5m, 15m, 1h, 6h or 1d',
      cure: 'Send one of the steps that the message lists, or omit it.',
    },
    invalid_time_range: {
      message: 'from and to must be timestamps, from before to, and at most 1500 steps apart',
      cure: 'Send an earlier `from` or a later `to`, or a longer `step`.',
    },
    invalid_as_of: {
      message: 'as_of must be a timestamp that is not in the future',
      cure: 'Send `as_of` as a timestamp in the past, such as `2026-01-31T12:00:00Z`.',
    },
    missing_offer_fields: {
      message: 'responder_sovereign_id and a list of capabilities are required',
      cure: COMPLETE,
    },
    missing_counter_fields: {
      message: 'offer, a list of capabilities and a valid window are required',
      cure: COMPLETE,
    },
    missing_accept_fields: {
      message: 'Either offer, or counter and original_offer are required',
      cure: 'Send `offer`, or both `counter` and `original_offer`.',
    },
    missing_boundary_fields: {
      message: 'agreement and requested_capability are required, and context must be valid',
      cure: COMPLETE,
    },
    missing_decision: { message: 'decision is required', cure: 'Send the decision in `decision`.' },
    missing_commit_fields: {
      message: 'A list of capabilities and a valid agreement are required',
      cure: COMPLETE,
    },
    missing_proof: {
      message: 'A valid proof is required',
      cure: 'Send the complete proof in `proof`.',
    },
    missing_vote_fields: {
      message: 'justification_proof and a boolean vote are required',
      cure: COMPLETE,
    },
    missing_proof_fields: {
      message:
        'justification_proof, votes, validators and a threshold are required and must be valid',
      cure: COMPLETE,
    },
    missing_policy_fields: {
      message: 'licensee_sovereign_id, allowed_source_ids and allowed_access_types are required',
      cure: COMPLETE,
    },
    missing_intent_fields: {
      message: 'Lists of sources and access_types are required',
      cure: COMPLETE,
    },
    missing_agreement: {
      message: 'agreement is required',
      cure: 'Send the agreement in `agreement`.',
    },
    missing_evidence: { message: 'evidence is required', cure: 'Send the evidence in `evidence`.' },
    missing_prove_fields: {
      message: 'capability, capabilities, commitment and prover_sovereign_id are required',
      cure: COMPLETE,
    },
    missing_verify_fields: { message: 'Both records to verify are required', cure: COMPLETE },
    missing_validator_public_keys: {
      message: 'validator_public_keys must map each validator to its key',
      cure: 'Send an object that maps the id of each validator to its key.',
    },
    invalid_timestamps: {
      message: 'Timestamps must be valid and in order',
      cure: 'Send ISO 8601 times, with the start before the end.',
    },
    invalid_offer: { message: 'offer is not a valid capability offer', cure: WHOLE_RECORD },
    invalid_agreement: {
      message: 'agreement, or a list of keys, is not valid',
      cure: WHOLE_RECORD,
    },
    invalid_decision: { message: 'decision, or a list of keys, is not valid', cure: WHOLE_RECORD },
    invalid_evidence: { message: 'evidence, or a list of keys, is not valid', cure: WHOLE_RECORD },
    invalid_justification: { message: 'justification_proof is not valid', cure: WHOLE_RECORD },
    invalid_source: {
      message: 'sources must be descriptors of data sources',
      cure: 'Describe each source by `source_id`, `source_type` and `owner_sovereign_id`.',
    },
    invalid_commitment: {
      message: 'commitment is not a valid capability commitment',
      cure: WHOLE_RECORD,
    },
    invalid_input: { message: 'A record, or a list of keys, is not valid', cure: WHOLE_RECORD },
    invalid_proof: { message: 'proof, or a list of keys, is not valid', cure: WHOLE_RECORD },
  }),
  ...withStatus(401, {
    admin_auth_failed: {
      message: 'Admin authentication failed',
      cure: 'Check the clock, the key and the signed text ([Signing requests](signing.md)); the audit log names the failed check.',
    },
    unknown_admin_key: {
      code: 'admin_auth_failed',
      message: 'Unknown admin key',
      cure: 'Use the id of a configured operator key that is not revoked (`X-Admin-Key-Id`).',
    },
    node_auth_failed: { message: 'Node authentication failed', cure: SIGN_AGAIN },
    node_missing_fields: {
      code: 'node_auth_failed',
      message: 'Node authentication failed: timestamp, nonce or signature is missing',
      cure: 'Send `timestamp`, `nonce` and `signature`, or the header `X-Mesh-Node-Proof`.',
    },
    node_invalid_timestamp: {
      code: 'node_auth_failed',
      message: 'Node authentication failed: the timestamp is not valid',
      cure: 'Send `timestamp` as ISO 8601 text, and sign the same text.',
    },
    node_stale_timestamp: {
      code: 'node_auth_failed',
      message: 'Node authentication failed: the timestamp is too old, or too far ahead',
      cure: 'Correct the clock of the node, then sign the request again.',
    },
    node_nonce_replay: {
      code: 'node_auth_failed',
      message: 'Node authentication failed: the nonce was used before',
      cure: SIGN_AGAIN,
    },
    node_invalid_signature: {
      code: 'node_auth_failed',
      message: 'Node authentication failed: the signature is not valid',
      cure: 'Sign the canonical JSON of the body without `signature`, using the key in `node_public_key`.',
    },
    session_ended: {
      message:
        'The heartbeat session has ended, or this heartbeat does not belong to it: sign the heartbeat',
      cure: 'Sign this heartbeat, with `session_public_key` for [another session](wire/core.md#core-3-4).',
    },
    descriptor_signature_required: {
      message: 'The descriptor must be signed by its node key',
      cure: 'Sign the descriptor with the key of the node.',
    },
    invalid_agent_signature: {
      code: 'invalid_signature',
      message: 'The signature does not verify under the node key',
      cure: 'Sign with the key in `node_public_key`.',
    },
    delete_signature_required: {
      message: 'signature and signed_at are required',
      cure: 'Send `signed_at` and `signature`, or the header `X-Mesh-Node-Proof`.',
    },
    signed_at_outside_window: {
      message: 'signed_at is too old or too far ahead',
      cure: 'Correct the clock of the node, then sign the removal again.',
    },
  }),
  ...withStatus(403, {
    foreign_origin: {
      message: 'Live pages are sent to pages of this site only',
      cure: 'Open the page at the address of the authority; behind a proxy, set `MESH_PUBLIC_URL`.',
    },
    insufficient_operator_tier: {
      message: 'This action requires a privileged operator key',
      cure: 'Sign with a key of the tier `privileged`; `details` or the message names the required tier.',
    },
    invalid_invite_token: {
      message: 'The invite token is not valid',
      cure: 'Ask an operator for a new invite: a token works only once, until it expires, and only for its recipient.',
    },
    node_key_compromised: {
      message: 'A certificate of this node key was revoked for key compromise',
      cure: NEW_KEY,
    },
    unknown_certificate: {
      code: 'certificate_not_found',
      message: 'The certificate is unknown',
      cure: OWN_CERTIFICATE,
    },
    certificate_key_mismatch: {
      message: 'The certificate belongs to another node key',
      cure: 'Use the certificate together with the key that it was issued to.',
    },
    certificate_revoked: { message: 'The certificate is revoked', cure: JOIN_AGAIN },
    certificate_not_yet_valid: {
      message: 'The certificate is not yet valid',
      cure: 'Wait until `valid_from`, and check the clocks.',
    },
    certificate_expired: { message: 'The certificate has expired', cure: JOIN_AGAIN },
    certificate_superseded: {
      message: 'The certificate was superseded by a newer one of its node key',
      cure: OWN_CERTIFICATE,
    },
    renewal_role_change_forbidden: {
      message: 'A renewal cannot change roles',
      cure: 'Omit `roles`; for other roles, ask an operator for a new invite.',
    },
    node_has_no_active_certificate: {
      message: 'The node key owns no active certificate',
      cure: 'Join or renew first, then register the agent.',
    },
    node_key_revoked: {
      message: 'A certificate of this node key was revoked for key compromise',
      cure: NEW_KEY,
    },
  }),
  ...withStatus(404, {
    not_found: {
      message: 'The path does not exist',
      cure: 'Check the path; `/api-reference` lists all of them.',
    },
    certificate_not_found: {
      message: 'The certificate is unknown',
      cure: 'Check the `cert_id`; it may have been removed after its retention period.',
    },
    invite_not_found: {
      message: 'No invite has this fingerprint',
      cure: 'Get the fingerprint from `mesh-na invite list`.',
    },
    batch_not_found: {
      message: 'No invite has this batch',
      cure: 'Get the batch from `mesh-na invite list`; a batch disappears when its last invite reaches the end of its retention period.',
    },
    node_not_found: {
      message: 'No certificate of this node key is known',
      cure: 'Check the node key; `mesh-na certificate list` shows those that are known.',
    },
    policy_not_found: {
      message: 'The policy version does not exist',
      cure: 'Choose a `policy_id` from `mesh-na policy list`.',
    },
    agent_not_registered: {
      message: 'The node key has no registration',
      cure: 'Register the agent, or check the key in the path.',
    },
    attestation_not_found: {
      message: 'The attestation does not exist',
      cure: 'Choose an id from `mesh-na attestation list`.',
    },
    treaty_not_found: {
      message: 'The treaty does not exist',
      cure: 'Choose an id from `mesh-na treaty list`.',
    },
    recognition_policy_not_configured: {
      message: 'No recognition policy is set',
      cure: 'Set one with `mesh-na recognition-policy set`.',
    },
    unknown_operator_key: {
      message: 'There is no such operator key',
      cure: 'Choose an id from `mesh-na operator-key list`.',
    },
    no_policy: {
      message: 'No data-license policy is in force',
      cure: 'Create one with `mesh-na data-usage license`; a restart discards it.',
    },
  }),
  ...withStatus(405, {
    method_not_allowed: {
      message: 'The path does not allow this method',
      cure: 'Use one of the methods in the `Allow` header.',
    },
  }),
  ...withStatus(408, {
    request_timeout: {
      message: 'The request body took too long to arrive',
      cure: 'Resend the request without pauses in the body.',
    },
  }),
  ...withStatus(409, {
    already_done: {
      message: 'The request was carried out when it first arrived, and its answer is not kept',
      cure: 'Consider it done; `details` contains what can be shown of the answer. Withdraw invites whose tokens were lost.',
    },
    since_ahead: {
      message: 'No revocation list of that sequence has been issued',
      cure: 'Check the key and the address of the authority: it did not issue the list that you have, so it may be another authority, or its state may have been rolled back.',
    },
    after_ahead: {
      message: 'The audit log has no entry of that index yet',
      cure: 'Check the key and the address of the authority: its log is shorter than what you have read, so it may be another authority, or its state may have been rolled back.',
    },
    too_many_live_certificates: {
      message: 'The node key has the maximum number of live certificates',
      cure: 'Revoke certificates of this node key, or wait until some expire or are superseded.',
    },
    invite_consumed: {
      message: 'A node has joined with the invite',
      cure: 'Revoke the certificate of the node that joined with it.',
    },
    too_many_labels: {
      message: 'A node has at most 16 labels',
      cure: 'Remove labels of the node that are no longer needed.',
    },
    last_active_operator_key: {
      message: 'The last usable operator key cannot be revoked',
      cure: 'Add another privileged key first.',
    },
    last_privileged_operator_key: {
      message: 'No other privileged operator key is usable',
      cure: 'Add another privileged key first; otherwise only a restart with a configured privileged key restores privileged access.',
    },
    operator_key_exists: {
      message: 'The id or the public key belongs, or belonged, to another operator key',
      cure: 'Choose another id and create a new key: neither can be reused.',
    },
    operator_key_configured: {
      message: 'The configuration of the authority says which tier this key has',
      cure: 'Change the tier in the configuration, and restart the authority.',
    },
    operator_key_revoked: {
      message: 'The operator key is revoked',
      cure: 'Add a new key under another id.',
    },
    succession_staged: {
      message: 'A succession is staged already',
      cure: 'Cancel the staged succession with `mesh-na authority-key cancel`, or wait until it is activated.',
    },
    succession_not_staged: {
      message: 'No succession is staged',
      cure: 'See with `mesh-na authority-key status` whether it has already taken over; otherwise stage one with `mesh-na authority-key stage`.',
    },
    activation_too_early: {
      message: 'The staged succession takes effect later',
      cure: 'Wait until `details.activates_at`; it happens then by itself.',
    },
    authority_key_not_held: {
      message:
        'This authority, or an instance linked to it, does not hold the private key that would sign',
      cure: 'Put the key into `keys/na.next.key` of every instance, or restart the signer with it as `--next-key`; the authority needs no restart.',
    },
    roll_back_impossible: {
      message: 'The key of the authority cannot be rolled back',
      cure: 'Prepare and sign a succession to another key; `details.cause` says why there is no way back.',
    },
    no_overlap: {
      message: 'Only the current key signs',
      cure: 'Do nothing: no overlap is left to finish.',
    },
    nodes_have_not_followed: {
      message: 'Some nodes have not followed the change of the key',
      cure: 'Wait for these nodes, which `mesh-na authority-key status` names, or finish despite them with their number, `details.count`: `mesh-na authority-key finish --despite <number>`.',
    },
    treaty_revoked: {
      message: 'The treaty is revoked, or was replaced by another one',
      cure: 'Follow the treaty that replaced it, or issue a new one.',
    },
    treaty_expired: {
      message: 'The treaty has expired',
      cure: 'Issue a new treaty with the present keys of the other sovereign.',
    },
    nothing_to_follow: {
      message: 'No change of the key is in force that the treaty has not followed',
      cure: 'No action needed: nothing was changed. If `details.activates_at` is not null, follow again after that time.',
    },
    stale_sequence: {
      message: 'The sequence of the feed is not newer than the imported one',
      cure: 'No action needed: a feed that is at least as new has already been imported.',
    },
  }),
  ...withStatus(410, {
    delta_unavailable: {
      message: 'That revocation list is too old to be continued: read the whole list',
      cure: 'Read `/crl` without `since`.',
    },
  }),
  ...withStatus(413, {
    request_entity_too_large: {
      message: 'The request body is too large',
      cure: 'Send less; `/swagger.json` has the limit of each route, and `MESH_MAX_REQUEST_BYTES` may lower it.',
    },
  }),
  ...withStatus(422, {
    request_validation_failed: {
      message: 'The request body does not have the expected form',
      cure: 'Correct the members that `details.errors` or `details.cause` name.',
    },
    invalid_recognition_policy: {
      message: 'recognition_policy does not have the expected form',
      cure: `${AS_RECEIVED}.`,
    },
    invalid_treaty_scope: {
      message: 'scope does not have the expected form',
      cure: 'Send `allowed_roles` and `accepted_statuses` as lists, and `claims` as an object.',
    },
    chain_rejected: {
      message: 'The chain of authority keys cannot be followed from the keys of the treaty',
      cure: 'Do as `details.problem` says. If the key of the other sovereign was stolen, name its root key, which you have compared with its operators.',
    },
    invalid_recognition_treaty: {
      message: 'treaty is not a valid recognition treaty',
      cure: `${AS_RECEIVED}.`,
    },
    invalid_attestation_or_policy: {
      message: 'attestation or recognition_policy does not have the expected form',
      cure: `${AS_RECEIVED}.`,
    },
    invalid_attestation_or_treaty: {
      message: 'attestation or treaty does not have the expected form',
      cure: `${AS_RECEIVED}.`,
    },
    succession_rejected: {
      message: 'The succession does not follow the keys of this authority',
      cure: 'Do what `details.message` says; `details.cause` names what is wrong.',
    },
    offer_rejected: {
      message: 'The offer cannot be built',
      cure: 'Issue a treaty with the responder if `details.cause` says so, and correct the terms.',
    },
    counter_rejected: {
      message: 'The offer cannot be countered like this',
      cure: 'Counter an offer that is addressed to this sovereign, signed and not expired, with some of its capabilities.',
    },
    accept_rejected: {
      message: 'The offer or counter cannot be accepted',
      cure: 'Accept a signed, unexpired offer or counter between the same two sovereigns; `details.cause` says what is wrong.',
    },
    boundary_eval_failed: {
      message: 'The request cannot be judged under this agreement',
      cure: 'Decide under an agreement that both parties signed, this authority and one whose treaty is in force; `details.cause` says what is wrong.',
    },
    evidence_build_failed: {
      message: 'Evidence of the decision cannot be built',
      cure: 'Correct the decision as `details.cause` says.',
    },
    commit_failed: {
      message: 'The capabilities cannot be committed to',
      cure: 'Commit to capabilities of an agreement that both parties signed (see `MESH_COMMIT_SUBSET`); `details.cause` says what is wrong.',
    },
    nullifier_failed: {
      message: 'The proof cannot be nullified',
      cure: 'Send a valid proof that has no nullifier yet; `details.cause` says what is wrong.',
    },
    vote_failed: {
      message: 'The vote cannot be cast',
      cure: 'Correct the vote as `details.cause` says.',
    },
    proof_assembly_failed: {
      message: 'The votes do not reach a consensus',
      cure: 'Collect enough approving votes from the named validators, cast independently of each other, on a justification that its issuer signed; `details.cause` says what is wrong.',
    },
    intent_create_failed: {
      message: 'The intent cannot be declared',
      cure: 'Correct the intent as `details.cause` says.',
    },
    prove_failed: {
      message: 'The capability cannot be proven to be in the list',
      cure: 'Prove a capability that is in the list.',
    },
  }),
  ...withStatus(426, {
    upgrade_required: {
      message: 'This path requires a WebSocket upgrade',
      cure: 'Open a WebSocket, and have the proxy forward the upgrade.',
    },
  }),
  ...withStatus(429, {
    rate_limit_exceeded: {
      message: 'Too many requests; try again later',
      cure: 'Wait for the seconds in `Retry-After`; operators change limits with `MESH_RATE_LIMIT_<BUCKET>`.',
    },
    admin_auth_throttled: {
      message: 'Too many requests failed operator authentication; try again later',
      cure: 'Wait for the seconds in `Retry-After`, and correct the signature before retrying.',
    },
  }),
  ...withStatus(500, {
    internal_server_error: {
      message: 'An unexpected error occurred',
      cure: 'Look up `request_id` in the log of the authority, and report the error.',
    },
  }),
  ...withStatus(503, {
    authority_unavailable: {
      message:
        'Another instance serves this network, or is about to, or none can: nothing was done',
      cure: 'Nothing was done. Resend the request after the seconds in `Retry-After`, to this instance or another.',
    },
    signer_unavailable: {
      message: 'The signer that holds the key of the authority is unavailable: nothing was done',
      cure: 'Nothing was done. Start or repair the signer (the log and `mesh-na doctor` say what is wrong), then resend the request.',
    },
    outcome_unknown: {
      message:
        'The instance that writes was lost before it answered: the request was carried out, or it was not',
      cure: 'Resend the same bytes with `X-Mesh-Retry: 1`, or look up the outcome; for a heartbeat, sign a new one.',
    },
    restore_pending: {
      message:
        'The state of the authority is older than what it has published, and has to be restored',
      cure: 'Report to the operators that the state was rolled back. `/readyz` says how far; `mesh-na restore` recovers the newer state.',
    },
    restored_recently: {
      message:
        'The state was restored, and a request that was signed before then may have been accepted already: sign a new one later',
      cure: 'Nothing was done. Wait for the seconds in `Retry-After`, until `details.accepts_signed_after`, and sign the request again; `--wait` does this.',
    },
    too_many_event_readers: {
      message: 'Too many event readers are connected; try again later',
      cure: 'Wait for the seconds in `Retry-After`; stop readers that are not needed, or raise `MESH_EVENT_READERS`.',
    },
    service_not_ready: {
      message: 'The service is not ready',
      cure: 'Try again later; `/readyz` and the log say what is missing.',
    },
    overloaded: {
      message: 'More requests are waiting than can be answered in time',
      cure: 'Nothing was done. Resend the same request after the seconds in `Retry-After`; agents and the client library do this.',
    },
    shutting_down: {
      message: 'The service is shutting down',
      cure: 'Try again once the authority has restarted.',
    },
  }),
  ...withStatus(507, {
    insufficient_storage: {
      message: 'The disk of the authority is nearly full, and nothing new is enrolled',
      cure: 'Free up disk space for the data folder (see `MESH_MIN_FREE_MB`), and resend the request; a refused token stays usable.',
    },
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
