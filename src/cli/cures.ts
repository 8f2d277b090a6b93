/** What to do about each error of an authority, and about other errors: one sentence in the imperative. */

import { REFUSALS, type RefusalName } from '../base/refusal.ts';
import type { AuthorityError } from '../client/authority-error.ts';

const COMPLETE =
  'Send the members that the message names; `details.cause` says which one is wrong.';
const WHOLE_RECORD =
  'Send the record exactly as received, with every member that its issuer signed; `details.cause` names the one that is wrong.';
const SIGN_AGAIN = 'Sign the request again with the current time and a fresh nonce, and resend it.';
const OWN_CERTIFICATE = 'Use the `cert_id` of the newest certificate that this authority issued.';
const JOIN_AGAIN = 'Ask an operator for an invite and join again.';
const NEW_KEY = 'Create a new key, ask an operator for an invite, and join with them.';
const WHOLE_HOURS = 'Send a whole number of hours within the bounds in the message.';

export const CURES: Readonly<Record<RefusalName, string>> = {
  invalid_limit: 'Send a whole number from 1 to 1000, or omit `limit` to get the whole list.',
  already_done:
    'Consider it done; `details` contains what can be shown of the answer. Withdraw invites whose tokens were lost.',
  invalid_since: 'Send the `sequence` of the list that you have, in decimal digits.',
  since_ahead:
    'Check the key and the address of the authority: it did not issue the list that you have, so it may be another authority, or its state may have been rolled back.',
  delta_unavailable: 'Read `/crl` without `since`.',
  invalid_after:
    'Send the `index` of the last event that you have, in decimal digits, or 0 for all events.',
  invalid_follow: 'Send `follow=0` for past events, or `follow=1` to keep receiving new ones.',
  after_ahead:
    'Check the key and the address of the authority: its log is shorter than what you have read, so it may be another authority, or its state may have been rolled back.',
  invalid_cursor:
    'Send the `next_cursor` of the previous page unchanged, or start over without it.',
  bad_request: 'Percent-encode the path as UTF-8.',
  too_many_parameters: 'Send at most 100 query parameters.',
  repeated_parameter: 'Send the parameter in details.parameter once.',
  too_many_roles: 'Send role at most 16 times.',
  ambiguous_body: 'Send one `Content-Length`, or `Transfer-Encoding: chunked`; check the proxy.',
  unknown_live_topic: 'Request `topic=dashboard` or `topic=connectome`.',
  foreign_origin:
    'Open the page at the address of the authority; behind a proxy, set `MESH_PUBLIC_URL`.',
  upgrade_required: 'Open a WebSocket, and have the proxy forward the upgrade.',
  invalid_json:
    'Send strict JSON in UTF-8: no repeated names, no comments, no lone surrogates, at most 64 levels deep.',
  invalid_json_object: 'Send one JSON object; an empty body counts as `{}`.',
  missing_node_public_key: 'Send `node_public_key`: the base64 public key of the node.',
  missing_invite_token:
    'Send `invite_token`, which an operator creates with `mesh-na invite create`.',
  invalid_validity_hours: WHOLE_HOURS,
  invalid_max_validity_hours: WHOLE_HOURS,
  invalid_token_expiry_hours: WHOLE_HOURS,
  invalid_count: 'Request 1 to 1000 tokens at a time.',
  invalid_silent_since: 'Send an ISO 8601 timestamp, or leave it out.',
  invalid_name: 'Send a name of the form that the message describes.',
  invalid_labels: 'Send labels of the form that the message describes.',
  invalid_hostname: 'Send a host name of the form that the message describes, or none.',
  invalid_batch: 'Send a label of the form that the message describes.',
  invalid_recipient_public_key: 'Send the public key of the node in canonical base64.',
  invalid_role: 'Use role names that begin with one of `MESH_ROLE_PREFIXES`.',
  missing_certificate_identity: 'Send `cert_id` and `node_public_key`.',
  invalid_certificate_status: 'Request one of the statuses that the message lists.',
  invalid_invite_status: 'Request one of the statuses that the message lists.',
  invalid_operator_key_id: 'Choose an id of 1 to 128 of the characters that the message lists.',
  invalid_operator_public_key: 'Send the Ed25519 public key of the operator in canonical base64.',
  private_key_given:
    'Send the public key from the `.pub` file. Replace the key pair if others may have seen the request with the private key.',
  invalid_operator_tier: 'Send `standard` or `privileged`.',
  invalid_expires_before: 'Send an ISO 8601 time, and percent-encode its `+`.',
  invalid_node_key:
    'Send the public key of the node in canonical base64; percent-encode `+` and `/` in a query.',
  missing_cert_id:
    'Send the `cert_id` of the certificate to revoke, or `node_public_key` to revoke all certificates of a node key.',
  invalid_revocation_reason: 'Choose one of the reasons that the message lists.',

  invalid_agent_descriptor:
    'Send every member of a descriptor, within its bounds, with `expires_at` after `registered_at`.',
  descriptor_expired:
    'Sign a descriptor that is valid now: `registered_at` at most five minutes ahead, `expires_at` in the future.',
  descriptor_superseded: 'Sign a descriptor with a later `registered_at`.',
  descriptor_network_mismatch:
    'Put the name of this network, `details.expected`, into the descriptor.',
  invalid_signed_at: 'Send `signed_at` as an ISO 8601 time, and sign the same text.',
  invalid_delete_version: 'Send `version` as `v1`, or omit it.',
  invalid_succession: 'Send the file that `mesh-na authority-key sign` wrote, unchanged.',
  succession_staged:
    'Cancel the staged succession with `mesh-na authority-key cancel`, or wait until it is activated.',
  succession_not_staged:
    'See with `mesh-na authority-key status` whether it has already taken over; otherwise stage one with `mesh-na authority-key stage`.',
  activation_too_early: 'Wait until `details.activates_at`; it happens then by itself.',
  authority_key_not_held:
    'Put the key into `keys/na.next.key` of every instance, or restart the signer with it as `--next-key`; the authority needs no restart.',
  roll_back_impossible:
    'Prepare and sign a succession to another key; `details.cause` says why there is no way back.',
  no_overlap: 'Do nothing: no overlap is left to finish.',
  nodes_have_not_followed:
    'Wait for these nodes, which `mesh-na authority-key status` names, or name their number, `details.count`, in `despite`.',
  succession_rejected: 'Do what `details.message` says; `details.cause` names what is wrong.',
  missing_policy_id: 'Send the `policy_id` of a version from `mesh-na policy list`.',
  missing_attestation_subject: 'Send `subject_id` and a list of `roles` that is not empty.',
  attestation_issuer_mismatch:
    'Omit `issuer_sovereign_id`, or allow other names with `MESH_FOREIGN_ISSUER=allow`.',
  missing_treaty_subject: 'Send `subject_sovereign_id` and a list of `subject_public_keys`.',
  empty_subject_public_keys: 'Name at least one key of the other sovereign.',
  invalid_authority_keys:
    'Send what `/authority-keys` of the other sovereign answers, or its list of `successions`, in `authority_keys`.',
  invalid_sovereign_revocation_feed:
    'Fetch the feed again from its issuer, and raise `MESH_MAX_FEED_ENTRIES` if it is long.',
  missing_issuer_public_keys:
    'Send `issuer_public_keys`, or issue a treaty with that sovereign first.',
  invalid_public_keys: 'Send keys as a list of base64 strings, or as an object of id and key.',
  invalid_keys_of_others: 'Send each key in canonical base64, as the other sovereign publishes it.',
  wrong_issuer: 'Check the issuer of the record against the expected one.',
  missing_feed_signature:
    'Fetch the feed from its issuer; one without a signature is never accepted.',
  invalid_feed_signature:
    'Check that the keys are the current keys of the issuer, and fetch the feed again.',
  feed_issuer_mismatch:
    'Request the feed of this sovereign, or get the other feed from its issuer.',
  missing_recognition_policy:
    'Send `recognition_policy`, or set one with `mesh-na recognition-policy set`.',
  missing_attestation: 'Send the attestation to verify in `attestation`.',
  missing_treaty: 'Send the treaty to verify in `treaty`.',
  missing_trust_path_parameters: 'Send both `from` and `to`.',
  invalid_explain: 'Send `explain=1`, or omit it.',
  invalid_without: 'List fewer treaties in `without`.',
  invalid_as_of: 'Send `as_of` as a timestamp in the past, such as `2026-01-31T12:00:00Z`.',

  invalid_series: 'Send names of series, such as `heartbeats,active_nodes`.',
  invalid_step: 'Send one of the steps that the message lists, or omit it.',
  invalid_time_range: 'Send an earlier `from` or a later `to`, or a longer `step`.',

  missing_offer_fields: COMPLETE,
  missing_counter_fields: COMPLETE,
  missing_accept_fields: 'Send `offer`, or both `counter` and `original_offer`.',
  missing_boundary_fields: COMPLETE,
  missing_decision: 'Send the decision in `decision`.',
  missing_commit_fields: COMPLETE,
  missing_proof: 'Send the complete proof in `proof`.',
  missing_vote_fields: COMPLETE,
  missing_proof_fields: COMPLETE,
  missing_policy_fields: COMPLETE,
  missing_intent_fields: COMPLETE,
  missing_agreement: 'Send the agreement in `agreement`.',
  missing_evidence: 'Send the evidence in `evidence`.',
  missing_prove_fields: COMPLETE,
  missing_verify_fields: COMPLETE,
  missing_validator_public_keys: 'Send an object that maps the id of each validator to its key.',
  invalid_timestamps: 'Send ISO 8601 times, with the start before the end.',
  invalid_offer: WHOLE_RECORD,
  invalid_agreement: WHOLE_RECORD,
  invalid_decision: WHOLE_RECORD,
  invalid_evidence: WHOLE_RECORD,
  invalid_justification: WHOLE_RECORD,
  invalid_source: 'Describe each source by `source_id`, `source_type` and `owner_sovereign_id`.',
  invalid_commitment: WHOLE_RECORD,
  invalid_input: WHOLE_RECORD,
  invalid_proof: WHOLE_RECORD,

  admin_auth_failed:
    'Check the clock, the key and the signed text ([Signing requests](signing.md)); the audit log names the failed check.',
  unknown_admin_key:
    'Use the id of a configured operator key that is not revoked (`X-Admin-Key-Id`).',
  node_auth_failed: SIGN_AGAIN,
  node_missing_fields:
    'Send `timestamp`, `nonce` and `signature`, or the header `X-Mesh-Node-Proof`.',
  node_invalid_timestamp: 'Send `timestamp` as ISO 8601 text, and sign the same text.',
  node_stale_timestamp: 'Correct the clock of the node, then sign the request again.',
  node_nonce_replay: SIGN_AGAIN,
  node_invalid_signature:
    'Sign the canonical JSON of the body without `signature`, using the key in `node_public_key`.',
  session_ended:
    'Sign this heartbeat, with `session_public_key` for [another session](wire/core.md#core-3-4).',
  descriptor_signature_required: 'Sign the descriptor with the key of the node.',
  invalid_agent_signature: 'Sign with the key in `node_public_key`.',
  delete_signature_required: 'Send `signed_at` and `signature`, or the header `X-Mesh-Node-Proof`.',
  signed_at_outside_window: 'Correct the clock of the node, then sign the removal again.',

  insufficient_operator_tier:
    'Sign with a key of the tier `privileged`; `details` or the message names the required tier.',
  invalid_invite_token:
    'Ask an operator for a new invite: a token works only once, until it expires, and only for its recipient.',
  node_key_compromised: NEW_KEY,
  unknown_certificate: OWN_CERTIFICATE,
  certificate_key_mismatch: 'Use the certificate together with the key that it was issued to.',
  certificate_revoked: JOIN_AGAIN,
  certificate_not_yet_valid: 'Wait until `valid_from`, and check the clocks.',
  certificate_expired: JOIN_AGAIN,
  certificate_superseded: OWN_CERTIFICATE,
  renewal_role_change_forbidden: 'Omit `roles`; for other roles, ask an operator for a new invite.',
  node_has_no_active_certificate: 'Join or renew first, then register the agent.',
  node_key_revoked: NEW_KEY,

  not_found: 'Check the path; `/api-reference` lists all of them.',
  certificate_not_found:
    'Check the `cert_id`; it may have been removed after its retention period.',
  policy_not_found: 'Choose a `policy_id` from `mesh-na policy list`.',
  agent_not_registered: 'Register the agent, or check the key in the path.',
  attestation_not_found: 'Choose an id from `mesh-na attestation list`.',
  treaty_not_found: 'Choose an id from `mesh-na treaty list`.',
  recognition_policy_not_configured: 'Set one with `mesh-na recognition-policy set`.',
  invite_not_found: 'Get the fingerprint from `mesh-na invite list`.',
  node_not_found: 'Check the node key; `mesh-na certificate list` shows those that are known.',
  too_many_labels: 'Remove labels of the node that are no longer needed.',
  batch_not_found:
    'Get the batch from `mesh-na invite list`; a batch disappears when its last invite reaches the end of its retention period.',
  invite_consumed: 'Revoke the certificate of the node that joined with it.',
  unknown_operator_key: 'Choose an id from `mesh-na operator-key list`.',
  no_policy: 'Create one with `mesh-na data-usage license`; a restart discards it.',
  method_not_allowed: 'Use one of the methods in the `Allow` header.',
  too_many_live_certificates:
    'Revoke certificates of this node key, or wait until some expire or are superseded.',
  last_active_operator_key: 'Add another privileged key first.',
  last_privileged_operator_key:
    'Add another privileged key first; otherwise only a restart with a configured privileged key restores privileged access.',
  operator_key_exists: 'Choose another id and create a new key: neither can be reused.',
  operator_key_configured: 'Change the tier in the configuration, and restart the authority.',
  operator_key_revoked: 'Add a new key under another id.',
  treaty_revoked: 'Follow the treaty that replaced it, or issue a new one.',
  treaty_expired: 'Issue a new treaty with the present keys of the other sovereign.',
  nothing_to_follow:
    'No action needed: nothing was changed. If `details.activates_at` is not null, follow again after that time.',
  stale_sequence: 'No action needed: a feed that is at least as new has already been imported.',
  request_timeout: 'Resend the request without pauses in the body.',
  request_entity_too_large:
    'Send less; `/swagger.json` has the limit of each route, and `MESH_MAX_REQUEST_BYTES` may lower it.',
  request_validation_failed: 'Correct the members that `details.errors` or `details.cause` name.',
  invalid_recognition_policy: WHOLE_RECORD,
  invalid_treaty_scope:
    'Send `allowed_roles` and `accepted_statuses` as lists, and `claims` as an object.',
  chain_rejected:
    'Do as `details.problem` says. If the key of the other sovereign was stolen, name its root key, which you have compared with its operators.',
  invalid_recognition_treaty: WHOLE_RECORD,
  invalid_attestation_or_policy: WHOLE_RECORD,
  invalid_attestation_or_treaty: WHOLE_RECORD,
  offer_rejected:
    'Issue a treaty with the responder if `details.cause` says so, and correct the terms.',
  counter_rejected:
    'Counter an offer that is addressed to this sovereign, signed and not expired, with some of its capabilities.',
  accept_rejected:
    'Accept a signed, unexpired offer or counter between the same two sovereigns; `details.cause` says what is wrong.',
  boundary_eval_failed:
    'Decide under an agreement that both parties signed, this authority and one whose treaty is in force; `details.cause` says what is wrong.',
  evidence_build_failed: 'Correct the decision as `details.cause` says.',
  commit_failed:
    'Commit to capabilities of an agreement that both parties signed (see `MESH_COMMIT_SUBSET`); `details.cause` says what is wrong.',
  nullifier_failed:
    'Send a valid proof that has no nullifier yet; `details.cause` says what is wrong.',
  vote_failed: 'Correct the vote as `details.cause` says.',
  proof_assembly_failed:
    'Collect enough approving votes from the named validators, cast independently of each other, on a justification that its issuer signed; `details.cause` says what is wrong.',
  intent_create_failed: 'Correct the intent as `details.cause` says.',
  prove_failed: 'Prove a capability that is in the list.',
  rate_limit_exceeded:
    'Wait for the seconds in `Retry-After`; operators change limits with `MESH_RATE_LIMIT_<BUCKET>`.',
  admin_auth_throttled:
    'Wait for the seconds in `Retry-After`, and correct the signature before retrying.',
  internal_server_error: 'Look up `request_id` in the log of the authority, and report the error.',
  restore_pending:
    'Report to the operators that the state was rolled back. `/readyz` says how far; `mesh-na restore` recovers the newer state.',
  restored_recently:
    'Nothing was done. Wait for the seconds in `Retry-After`, until `details.accepts_signed_after`, and sign the request again; `--wait` does this.',
  authority_unavailable:
    'Nothing was done. Resend the request after the seconds in `Retry-After`, to this instance or another.',
  signer_unavailable:
    'Nothing was done. Start or repair the signer (the log and `mesh-na doctor` say what is wrong), then resend the request.',
  too_many_event_readers:
    'Wait for the seconds in `Retry-After`; stop readers that are not needed, or raise `MESH_EVENT_READERS`.',
  outcome_unknown:
    'Resend the same bytes with `X-Mesh-Retry: 1`, or look up the outcome; for a heartbeat, sign a new one.',
  service_not_ready: 'Try again later; `/readyz` and the log say what is missing.',
  overloaded:
    'Nothing was done. Resend the same request after the seconds in `Retry-After`; agents and the client library do this.',
  shutting_down: 'Try again once the authority has restarted.',
  insufficient_storage:
    'Free up disk space for the data folder (see `MESH_MIN_FREE_MB`), and resend the request; a refused token stays usable.',
};

const LINK = /\[([^\]]+)\]\(([^)]+)\)/g;

/** Returns what to do about an error, as plain text; null for an unknown code. */
export function cureOf({ status, wireCode, message }: AuthorityError): string | null {
  const names = (Object.keys(REFUSALS) as RefusalName[]).filter(
    (name) => REFUSALS[name].status === status && REFUSALS[name].code === wireCode,
  );
  const name = names.find((one) => REFUSALS[one].message === message) ?? names[0];
  if (name === undefined) return null;
  return CURES[name].replace(LINK, '$1: docs/$2').replaceAll('`', '');
}

const NOT_TRUSTED =
  'Trust the issuer of its certificate with --ca, or install a certificate that is valid for this name.';

const SILENCE: { readonly [code: string]: string } = {
  ENOTFOUND: 'The host is unknown: correct the name in the address, or fix the resolver.',
  EAI_AGAIN: 'The resolver does not answer: check the network of this machine.',
  ECONNREFUSED: 'Nothing listens there: start the authority, or correct the host and port.',
  ECONNRESET:
    'The server closed the connection: try https:// if it uses TLS; otherwise, check its log.',
  EPROTO: 'The server does not use TLS: use http://, or enable TLS there.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'The server does not use TLS: use http://, or enable TLS there.',
  EHOSTUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ENETUNREACH: 'There is no route to the host: check the network, or correct the address.',
  ETIMEDOUT: 'The host does not answer: check firewalls, or correct the address.',
  DEPTH_ZERO_SELF_SIGNED_CERT: NOT_TRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: NOT_TRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: NOT_TRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: NOT_TRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: NOT_TRUSTED,
  CERT_HAS_EXPIRED: 'Renew the certificate of the server, or correct the clock of this machine.',
};

/** Returns what to do when no answer arrived, or an answer that is not from an authority. */
export function cureOfSilence({ code, cause }: AuthorityError): string | null {
  if (code === 'unreadable_answer') {
    return 'Another server answers there: correct the address, or check the proxy in front of the authority.';
  }
  if (code === 'timeout')
    return 'Try again; if the problem persists, check the log of the authority.';
  const reason = cause instanceof Error ? cause.cause : undefined;
  const known = reason instanceof Error && 'code' in reason ? SILENCE[String(reason.code)] : null;
  return known ?? null;
}

const SYSTEM: { readonly [code: string]: string } = {
  ENOENT: 'The file or folder does not exist: correct the path.',
  EACCES: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EPERM: 'Permission denied: run this as the owner of the file, or correct the permissions.',
  EISDIR: 'This is a folder: give the path of a file.',
  ENOTDIR: 'A part of the path is a file: correct the path.',
  EEXIST: 'It already exists: choose another name.',
  ENOSPC: 'The disk is full: free up space.',
  EROFS: 'The file system is read-only: choose another place.',
};

export function cureOfSystemError(code: string): string | null {
  return SYSTEM[code] ?? null;
}
