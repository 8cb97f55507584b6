/** Round trips that count as recent: two seconds of them, at four pings a second. */
const RECENT = 8;

/** What a link counts; every number only grows, except the round trips. Indexed by `FlowClass`. */
type PerClass = [number, number, number];

export class DirectionCounters {
  frames = 0;
  /** Whole frames, headers included; retransmissions too. */
  frameBytes = 0;
  tlps: PerClass = [0, 0, 0];
  /** Encoded TLPs, without entry and frame headers. */
  tlpBytes: PerClass = [0, 0, 0];
  slotStates = 0;
}

export class LinkCounters {
  readonly out = new DirectionCounters();
  readonly in = new DirectionCounters();
  /** Frames that carried acknowledgement and credits alone. */
  controlFrames = 0;
  /** Frames sent again. */
  replayedFrames = 0;
  naksSent = 0;
  naksReceived = 0;
  /**
   * Times the peer was asked, by a ping, what has arrived, as its acknowledgement was late. Harmless
   * by itself: where frames were lost, `naksReceived` and `replayedFrames` follow.
   */
  ackQuestions = 0;
  duplicatesDropped = 0;
  outOfOrderDropped = 0;
  /** Times a TLP found no credit of its class. */
  creditStalls: PerClass = [0, 0, 0];
  /** Times no frame could be begun, as the replay buffer was full. */
  replayStalls = 0;
  sessions = 0;
  /** Sessions that ended, for whatever reason. */
  sessionsLost = 0;
  /** Connections lost while a session lived. */
  connectionsLost = 0;
  /** Connections that a session went on with. */
  resumes = 0;
  connectFailures = 0;
  refusals = 0;
  protocolErrors = 0;
  deadPeers = 0;
  /** Round trips measured by ping, in nanoseconds; 0 while there is none. */
  rttLastNs = 0;
  rttMinNs = 0;
  rttSumNs = 0;
  rttCount = 0;
  /** The last `RECENT` round trips, each at its number modulo that. */
  readonly #recent = new Float64Array(RECENT).fill(Infinity);

  /** Smallest of the recent round trips over the connection in use, in nanoseconds; 0 while there is none. */
  get rttRecentNs(): number {
    const least = Math.min(...this.#recent);
    return least === Infinity ? 0 : least;
  }

  get rttMeanNs(): number {
    return this.rttCount === 0 ? 0 : this.rttSumNs / this.rttCount;
  }

  addRtt(rttNs: number): void {
    this.rttLastNs = rttNs;
    this.#recent[this.rttCount % RECENT] = rttNs;
    this.rttMinNs = this.rttCount === 0 ? rttNs : Math.min(this.rttMinNs, rttNs);
    this.rttSumNs += rttNs;
    this.rttCount++;
  }

  /** The connection is another one: earlier round trips say nothing of it. */
  forgetRecent(): void {
    this.#recent.fill(Infinity);
  }
}
