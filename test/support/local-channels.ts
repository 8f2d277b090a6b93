/** Two ends of a channel between peers on the same thread. */
import type { Channel, Message } from '../../src/server/threads/rpc.ts';

export interface LocalChannel extends Channel {
  /** What has arrived at this end. */
  readonly received: Message[];
}

/** What one end sends arrives at the other at once, as a copy. */
export function createLocalChannels(): readonly [LocalChannel, LocalChannel] {
  const ends: readonly [End, End] = [endOf(() => ends[1]), endOf(() => ends[0])];
  return [ends[0].channel, ends[1].channel];
}

interface End {
  readonly channel: LocalChannel;
  take(message: Message): void;
}

function endOf(other: () => End): End {
  const received: Message[] = [];
  const listeners: ((message: Message) => void)[] = [];
  return {
    channel: {
      received,
      postMessage: (message) => other().take(structuredClone(message)),
      on: (_event, listener) => listeners.push(listener),
    },
    take(message) {
      received.push(message);
      for (const listener of listeners) listener(message);
    },
  };
}
