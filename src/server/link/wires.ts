/** The transport between instances: connections that keep messages intact and in order. */
import type { FrameListener, Frames } from './frames.ts';

export interface LinkAddress {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

/** A connection between two instances that have proved possession of the same key. */
export interface Wire {
  /** Must be called at once. The connection is ended if nothing arrives for `silence` milliseconds. */
  open<Sent, Received>(silence: number, listener: FrameListener<Received>): Frames<Sent>;
  /** Ends the connection before it is opened. */
  end(): void;
}

export interface Listening {
  /** The address for other instances, as `host:port`. */
  readonly address: string;
  /** Ends the connections whose key is no longer accepted. */
  endUnaccepted(): void;
  /** Stops listening; existing connections stay. */
  close(): void;
}

/** Exactly one of these is called, once. */
export interface Connecting {
  opened(wire: Wire): void;
  ended(): void;
}

export interface Wires {
  /** Resolves once it is listening. */
  listen(address: LinkAddress, accept: (wire: Wire) => void): Promise<Listening>;
  /** `address` as `host:port`. The result ends the attempt. */
  connect(address: string, outcome: Connecting): { end(): void };
}
