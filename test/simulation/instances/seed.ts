/** The initial state of every history: enrolled nodes, and invites. */
import {
  createDocumentCache,
  createDocumentPublisher,
} from '../../../src/protocol/contract/documents.ts';
import { randomFrom } from '../../fuzz/random.ts';
import { type CallName, type CallOf, call, open } from '../authority-calls.ts';
import { KeyFolder } from '../key-folder.ts';
import { emptyDisk, type MemoryDisk } from '../memory-disk.ts';
import { openMemoryStore } from '../memory-store.ts';
import { AUTHORITY, signer } from '../requests.ts';
import { type Asking, asOperator, INVITE, joining } from './asking.ts';
import { BEGAN, randomness } from './machine-runtime.ts';

const HOUR = 3_600_000;
/** As many as a history can revoke. */
const NODES = 40;
const INVITES = 4;

/** An authority whose clock stands still, and which stores at once. */
export async function openStill(disk: MemoryDisk, folder: KeyFolder, now: number, seed: number) {
  const publisher = createDocumentPublisher();
  const documents = createDocumentCache(publisher.versions);
  publisher.follow(documents.take);
  const runtime = {
    now: () => now,
    elapsed: () => 0,
    pause: () => Promise.resolve(),
    ...randomness(randomFrom(seed)),
  };
  const authority = await open({
    store: openMemoryStore(disk, 'at_once'),
    runtime,
    publisher,
    fatal(_where, cause) {
      throw cause;
    },
    signer: folder.signer(),
    folder,
  });
  let asked = 0;
  return {
    authority,
    documents,
    uuid: runtime.uuid,
    /** A request of now, for the first key. */
    asking(): Asking {
      asked += 1;
      const current = AUTHORITY.publicKey;
      return {
        now,
        nonce: `asked-${now}-${asked}`,
        authorityKeys: { current, audiences: [current] },
      };
    },
  };
}

async function seeded() {
  const disk = emptyDisk();
  const { authority, asking } = await openStill(disk, new KeyFolder(), BEGAN - HOUR, 0);

  async function answer<Name extends CallName>(name: Name, given: CallOf<Name>, member: string) {
    const reply = await call(authority, name, given);
    if (!reply.ok) throw new Error(`${name}: ${reply.refusal}`);
    return String((reply.value as { readonly [member: string]: unknown })[member]);
  }

  const invited = () =>
    answer('createInvites', asOperator('createInvites', INVITE, asking()), 'token_id');

  const certificates: string[] = [];
  for (let i = 0; i < NODES; i += 1) {
    const given = joining(await invited(), signer(`seed ${i}`), asking());
    certificates.push(await answer('join', given, 'cert_id'));
  }
  const invites: string[] = [];
  for (let i = 0; i < INVITES; i += 1) invites.push(await invited());
  await authority.close();
  return { disk, certificates, invites };
}

/** The initial state, with its invites by token. */
export const SEED = await seeded();
