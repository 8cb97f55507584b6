/**
 * What model boxes and model hosts have in common: an agent with its proxy, as the manager's core sees it.
 * Orders wait for `work`, which puts rows in force and reports what is new. A test holds back, refuses or
 * makes up whatever it likes.
 */
import type {
  AgentHello,
  AgentOrder,
  AgentReport,
  BoxReport,
  HostReport,
} from '#proto/agent-messages';

/** The manager, as a model proxy reaches it. Numbers are those of streams. */
export interface ProxyHome {
  open(proxy: ModelProxy, hello: AgentHello): number;
  report(session: number, report: AgentReport): void;
  close(session: number): void;
}

/** What a pool drives of a proxy, of either kind. */
export interface ModelProxy {
  readonly id: string;
  /** Opens a stream and reports everything. */
  connect(): void;
  /** Carries out what was ordered and reports what is new; whether anything was to do. */
  work(): boolean;
  order(order: AgentOrder): void;
  /** The stream is gone; that of `session` alone where it is given. */
  lostStream(session?: number): void;
}

interface Row {
  readonly generation: number;
}

interface Slot {
  row: Row | undefined;
  state: string;
  reason: string;
}

/** `S` is what it knows of a slot, `R` what an order says of one, `P` what it reports. */
export abstract class CommonProxy<S extends Slot, R extends Row, P extends BoxReport | HostReport>
  implements ModelProxy
{
  readonly id: string;
  readonly slots = new Map<number, S>();
  instance = 1;
  session: number | undefined;
  applied = 0;
  refused = '';
  /** Keeps orders for later. */
  isDeaf = false;
  /** Keeps what changes to itself. */
  isMute = false;
  /** Orders with a row are refused with this. */
  refuses = '';
  /** Keeps the rows it has, and says so. */
  keepsRows = false;
  readonly orders: AgentOrder[] = [];
  /** By slot, as ordered; in force are those of the newest order that was not refused. */
  protected readonly rows = new Map<number, R>();
  readonly #pool: ProxyHome;
  /** Generations that were in force in this process. */
  readonly #used = new Set<number>();
  #pending: AgentOrder[] = [];
  #said = new Map<number, string>();
  #saidApplied = '';

  constructor(pool: ProxyHome, id: string) {
    this.#pool = pool;
    this.id = id;
  }

  abstract get hello(): AgentHello;
  /** A report that tells of nothing. */
  protected abstract readonly silence: P;
  /** Takes the rows of an order into `rows`. */
  protected abstract takeRows(order: AgentOrder): void;
  /** The row of a slot becomes this one. */
  protected abstract enforce(slot: number, state: S, row: R | undefined): void;
  /** What takes its time behind a row; whether anything was to do. */
  protected abstract goOn(): boolean;
  abstract reportOf(slot: number, state: S): P['slots'][number];

  slot(slot: number): S {
    return this.slots.get(slot) as S;
  }

  connect(): void {
    this.applied = 0;
    this.refused = '';
    this.#pending = [];
    this.session = this.#pool.open(this, this.hello);
    this.say(true);
  }

  disconnect(): void {
    if (this.session !== undefined) this.#pool.close(this.session);
    this.session = undefined;
  }

  lostStream(session = this.session): void {
    if (session === this.session) this.session = undefined;
  }

  /** Another process: no row and no stream. */
  restart(): void {
    this.disconnect();
    this.instance++;
    this.rows.clear();
    this.#used.clear();
  }

  contain(slot: number): void {
    Object.assign(this.slot(slot), { state: 'contained', reason: 'its link has ended' });
  }

  order(order: AgentOrder): void {
    this.orders.push(order);
    this.#pending.push(order);
  }

  work(): boolean {
    if (this.session === undefined) return false;
    let isBusy = false;
    if (!this.isDeaf) {
      for (const order of this.#pending.splice(0)) {
        this.#carryOut(order);
        isBusy = true;
      }
      if (this.#enforceAll()) isBusy = true;
      if (this.goOn()) isBusy = true;
    }
    return this.say(false) || isBusy;
  }

  /** Reports what is, or what is new of it. */
  say(whole: boolean): boolean {
    if (this.session === undefined || (this.isMute && !whole)) return false;
    if (whole) this.#said = new Map();
    const slots: P['slots'][number][] = [];
    for (const [slot, state] of this.slots) {
      const report = this.reportOf(slot, state);
      const text = JSON.stringify(report);
      if (this.#said.get(slot) === text) continue;
      this.#said.set(slot, text);
      slots.push(report);
    }
    const more = this.news(whole);
    const applied = `${this.applied} ${this.refused}`;
    const isSame = this.#saidApplied === applied && slots.length === 0 && more === undefined;
    if (!whole && isSame) return false;
    this.#saidApplied = applied;
    this.sayThis({ whole, slots, ...more } as Partial<P>);
    return true;
  }

  /** Any report at all. */
  sayThis(report: Partial<P>): void {
    const { applied, refused, session } = this;
    if (session === undefined) return;
    this.#pool.report(session, { ...this.silence, applied, refused, ...report });
  }

  /** What is new beside the slots. */
  protected news(_whole: boolean): Partial<P> | undefined {
    return undefined;
  }

  /** Whether `refuses` is about the rows there are. */
  protected isRefusal(): boolean {
    return this.rows.size > 0;
  }

  #carryOut(order: AgentOrder): void {
    if (order.whole) this.rows.clear();
    this.takeRows(order);
    if (this.refuses !== '' && this.isRefusal()) {
      this.refused = this.refuses;
      return;
    }
    this.refused = '';
    this.applied = order.revision;
  }

  #enforceAll(): boolean {
    let isBusy = false;
    for (const [slot, state] of this.slots) {
      const wanted = this.rows.get(slot);
      if (wanted?.generation === state.row?.generation || this.refused !== '') continue;
      // A generation is put in force once: what was lost stays lost.
      if (wanted !== undefined && this.#used.has(wanted.generation)) continue;
      if ((wanted === undefined && this.keepsRows) || state.state === 'quarantined') continue;
      if (wanted !== undefined) this.#used.add(wanted.generation);
      this.enforce(slot, state, wanted);
      isBusy = true;
    }
    return isBusy;
  }
}
