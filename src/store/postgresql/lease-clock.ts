/** The clock of the holder; not that of the service, which tests may set. */
export interface LeaseClock {
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back once after this many milliseconds; returns what prevents it. */
  after(milliseconds: number, work: () => void): () => void;
}
