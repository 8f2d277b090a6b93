/** The initial state of every history: enrolled nodes, and invites. */
import { createDocumentPublisher } from '../../../src/protocol/contract/documents.ts';
import { randomFrom } from '../../fuzz/random.ts';
import { type CallName, type CallOf, call, open } from '../authority-calls.ts';
import { KeyFolder } from '../key-folder.ts';
import { emptyDisk } from '../memory-disk.ts';
import { openMemoryStore } from '../memory-store.ts';
import { AUTHORITY, signer } from '../requests.ts';
import { asOperator, INVITE, joining } from './asking.ts';
import { BEGAN, randomness } from './machine-runtime.ts';

const HOUR = 3_600_000;
/** As many as a history can revoke. */
const NODES = 40;
const INVITES = 4;

async function seeded() {
  const now = BEGAN - HOUR;
  const disk = emptyDisk();
  const folder = new KeyFolder();
  const authority = await open({
    store: openMemoryStore(disk, 'at_once'),
    runtime: {
      now: () => now,
      elapsed: () => 0,
      pause: () => Promise.resolve(),
      ...randomness(randomFrom(0)),
    },
    publisher: createDocumentPublisher(),
    fatal(_where, cause) {
      throw cause;
    },
    signer: folder.signer(),
    folder,
  });
  let asked = 0;

  const asking = () => {
    asked += 1;
    const current = AUTHORITY.publicKey;
    return { now, nonce: `seed-${asked}`, authorityKeys: { current, audiences: [current] } };
  };

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
