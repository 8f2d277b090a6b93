/** Folders with a state to move, and places that fail while it is moved. */
import { cpSync } from 'node:fs';
import { after, before, type TestContext } from 'node:test';
import type { Place } from '../../src/maintenance/move/move.ts';
import type { HeldState, StateReceiver } from '../../src/store/stream/ports.ts';
import { startTestAuthority } from './authority.ts';
import { networkFolder } from './folders.ts';
import { emptyFolder } from './moves.ts';
import { joinedNode } from './requests.ts';

export interface Places {
  readonly from: Place;
  readonly to: Place;
}

/** For a suite: gives each test a folder of its own with the state of the same stopped authority. */
export function stoppedStates(): (t: TestContext) => string {
  let stopped: Awaited<ReturnType<typeof networkFolder>>;
  before(async () => {
    stopped = await networkFolder('alpha');
    await using na = await startTestAuthority({ dataDir: stopped.path });
    await joinedNode(na);
  });
  after(() => stopped[Symbol.asyncDispose]());
  return (t) => {
    const path = emptyFolder(t);
    cpSync(stopped.path, path, { recursive: true });
    return path;
  };
}

/** The place with other steps of its receiver. */
export function receiving(
  place: Place,
  changed: (receiver: StateReceiver) => Partial<StateReceiver>,
): Place {
  return {
    ...place,
    async receive() {
      const receiver = await place.receive();
      return { ...receiver, ...changed(receiver) };
    },
  };
}

/** The place with other steps of the state that it holds. */
export function holding(place: Place, changed: (held: HeldState) => Partial<HeldState>): Place {
  return {
    ...place,
    async hold() {
      const held = await place.hold();
      return { ...held, ...changed(held) };
    },
  };
}
