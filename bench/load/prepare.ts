/** Enrolls a fleet: invites in large batches, joins in parallel. An interrupted one continues where it stopped. */
import { SEED_BYTES, signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import { errorCode, type Lane, openLane, textIn } from './connection.ts';
import { addToFleet, type StoredNode } from './fleet-folder.ts';
import { bytesOf, joinRequest, type Place } from './requests.ts';

export interface PreparePlan {
  readonly folder: string;
  readonly place: Place;
  /** How many nodes to add to the folder. */
  readonly count: number;
  readonly connections: number;
  readonly validityHours: number;
  /** Returns this number of new invite tokens. */
  invite(count: number): Promise<readonly string[]>;
  /** Called when this number of nodes is in the folder. */
  progress(enrolled: number): void;
  /** Called once, when the authority limits joins. */
  onLimited(): void;
  readonly stopped: AbortSignal;
}

/** The most tokens of one invite request. */
const MAX_INVITES = 1000;
/** A node whose line is not yet written is lost if the process is killed. */
const LINES_AT_ONCE = 50;

export async function prepareFleet(plan: PreparePlan): Promise<void> {
  const { folder, place, count, stopped } = plan;
  const lanes = await Promise.all(
    Array.from({ length: Math.min(plan.connections, count) }, () => openLane(place.target)),
  );
  let unsaved: StoredNode[] = [];
  let enrolled = 0;
  let isLimited = false;

  function save(): void {
    if (unsaved.length === 0) return;
    addToFleet(folder, unsaved);
    unsaved = [];
    plan.progress(enrolled);
  }

  async function enrollOn(lane: Lane, tokens: Iterable<string>): Promise<void> {
    for (const token of tokens) {
      const node = await joined(lane, token);
      if (node === null) return;
      enrolled += 1;
      unsaved.push(node);
      if (unsaved.length >= LINES_AT_ONCE) save();
    }
  }

  /** Null if it was stopped while the authority limited joins. */
  async function joined(lane: Lane, token: string): Promise<StoredNode | null> {
    const seed = systemRuntime.randomBytes(SEED_BYTES);
    const key = signerFromSeed(seed);
    while (!stopped.aborted) {
      const request = joinRequest(key, token, { validity_hours: plan.validityHours });
      const { status, text, retryAfter } = await lane.ask(bytesOf(request, place.site));
      const body = Buffer.from(text);
      const certId = textIn(body, 'cert_id');
      if (status === 200 && certId !== null) {
        return { seed: seed.toString('base64'), cert_id: certId };
      }
      if (status !== 429 && status !== 503) {
        throw new Error(`A join was answered ${errorCode(status, body)}`);
      }
      if (status === 429 && !isLimited) plan.onLimited();
      isLimited ||= status === 429;
      await systemRuntime.pause((retryAfter ?? 1) * 1000);
    }
    return null;
  }

  try {
    for (let left = count; left > 0 && !stopped.aborted; left -= MAX_INVITES) {
      // The lanes take them from one iterator.
      const tokens = (await plan.invite(Math.min(left, MAX_INVITES))).values();
      await Promise.all(lanes.map((lane) => enrollOn(lane, tokens)));
    }
  } finally {
    save();
    for (const { close } of lanes) close();
  }
}
