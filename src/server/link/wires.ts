/** How instances reach each other: connections that keep messages whole and in order. */
import type { FrameListener, Frames } from './frames.ts';

export interface LinkAddress {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** A connection between two who have proved that they hold the same key. */
export interface Wire {
  /** Call at once. `silence` ends the connection when nothing has arrived for this long, in milliseconds. */
  open<Sent, Received>(silence: number, listener: FrameListener<Received>): Frames<Sent>;
  /** Ends it before it was opened. */
  end(): void;
}

export interface Listening {
  /** Where others find it, as `host:port`. */
  readonly address: string;
  /** Connections stay. */
  close(): void;
}

/** Called once, with a connection or without. */
export interface Connecting {
  opened(wire: Wire): void;
  ended(): void;
}

export interface Wires {
  /** Resolves when it listens. */
  listen(address: LinkAddress, accept: (wire: Wire) => void): Promise<Listening>;
  /** `address` as `host:port`. The result ends the attempt. */
  connect(address: string, outcome: Connecting): { end(): void };
}
