/** Exports of `mesh-network-authority-client`: clients, keys, offline verification and errors. */

export type { Sha256, Signer, VerifySignature } from '../../base/crypto/primitives.ts';
export type * from '../../protocol/answers/documents.ts';
export type * from '../../protocol/answers/enrollment.ts';
export type * from '../../protocol/answers/operators.ts';
export type * from '../../protocol/answers/recognition.ts';
export type * from '../../protocol/answers/verdicts.ts';
export type * from '../../protocol/rows/graph.ts';
export type * from '../../protocol/rows/recognition.ts';
export type { AgentRecord, AgentStorage } from '../agent-storage.ts';
export {
  AuthorityError,
  type ErrorCode,
  isUnreachable,
  type RefusalCode,
} from '../authority-error.ts';
export type { Authority, AuthoritySigners } from '../authority-signers.ts';
export {
  BEFORE_FIRST,
  EventChainError,
  type EventOptions,
  type EventPlace,
  type EventProblem,
  type LoggedEvent,
  nextEvent,
} from '../events.ts';
export * from '../followed-keys.ts';
export { createHeartbeatSessions, type HeartbeatSessions } from '../heartbeat-sessions.ts';
export {
  keyFromSeed,
  newKey,
  newSeed,
  recordSigner,
  type SigningKey,
  verifyText,
} from '../keys.ts';
export * from '../node-agent.ts';
export * from '../node-client.ts';
export * from '../offline.ts';
export * from '../operator-client.ts';
export type {
  AnswerBody,
  CallOptions,
  Fetch,
  FetchAnswer,
  FetchRequest,
  ServerOptions,
  SigningOptions,
} from '../options.ts';
export * from '../public-client.ts';
export type { Received } from '../received.ts';
export { recordText } from '../received.ts';
export { portableSha256 } from '../sha256.ts';
export {
  type Agent,
  NODE_PROOF_HEADER,
  nodeProofHeader,
  operatorHeaders,
  signAgentDescriptor,
  signDeleteEnvelope,
  signNodeBody,
} from '../signing.ts';
export * from '../webhook.ts';
