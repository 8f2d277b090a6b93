/** The edge of a process: the keys and sessions by which it judges requests. */
import type { Runtime } from '../../src/base/runtime.ts';
import type { AuthoritySigner } from '../../src/base/signer/authority-signer.ts';
import { publishedAuthorityKeys } from '../../src/edge/auth/known-keys.ts';
import { createHeartbeatSessions, type HeartbeatSessions } from '../../src/edge/auth/session.ts';
import {
  createDocumentCache,
  type DocumentPublisher,
} from '../../src/protocol/contract/documents.ts';
import type { GenesisBlock } from '../../src/protocol/records/genesis.ts';
import { followSessionSecret } from '../../src/server/upkeep.ts';
import { SESSION_LASTS } from './session-beats.ts';

export interface EdgeOptions {
  readonly publisher: DocumentPublisher;
  readonly signer: AuthoritySigner;
  readonly genesis: GenesisBlock;
  readonly runtime: Runtime;
  /** Plants a defect. */
  readonly sessions?: ((sessions: HeartbeatSessions) => HeartbeatSessions) | undefined;
}

export function edgeOf({ publisher, signer, genesis, runtime, sessions: planted }: EdgeOptions) {
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const { public_key } = genesis.network_authority;
  const authorityKeys = publishedAuthorityKeys(genesis, public_key, documents);
  const created = createHeartbeatSessions({ lastsMs: SESSION_LASTS, runtime });
  const sessions = planted?.(created) ?? created;
  const { use } = sessions;
  const deriveSecret = followSessionSecret({ signer, genesis, publisher, use });
  return { documents, authorityKeys, sessions, deriveSecret };
}
