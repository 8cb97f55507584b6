/**
 * The best of many places (hosts of a group, or groups) for each kind of demand, kept up to date
 * place by place. A change to a place is written into a log; a ranking reads what it has missed when
 * it is next asked, each place once however often it changed meanwhile.
 */
import type { Demand } from './demand.ts';
import { Tournament } from './tournament.ts';

/** The score of a place that has no room. */
export const NO_ROOM = -Infinity;

/** `shares`: for a part of a GPU that is shared out already. */
export type Score = (place: number, demand: Demand, shares: boolean) => number;

interface Ranking {
  readonly tournament: Tournament;
  /** How much of the log it has read; -1 before the first time. */
  read: number;
}

export class Ranks {
  readonly #count: number;
  readonly #score: Score;
  readonly #rankings: [Map<Demand, Ranking>, Map<Demand, Ranking>] = [new Map(), new Map()];
  /** Places as they changed; `#forgotten` entries before the first are gone. */
  readonly #log: number[] = [];
  #forgotten = 0;
  /** Where in the log, counted from its very beginning, a place stands last; -1 if nowhere. */
  readonly #last: Float64Array;

  /** `score` may depend on nothing but the place and the demand. */
  constructor(count: number, score: Score) {
    this.#count = count;
    this.#score = score;
    this.#last = new Float64Array(count).fill(-1);
  }

  /** To be told of every place whose score may have changed. */
  changed(place: number): void {
    this.#last[place] = this.#forgotten + this.#log.length;
    this.#log.push(place);
    if (this.#log.length > 4 * this.#count + 1024) {
      this.#forgotten += this.#log.length;
      this.#log.length = 0;
    }
  }

  /** The best place and its score, the first of equals; `undefined` if none has room. */
  best(demand: Demand, shares: boolean): { place: number; score: number } | undefined {
    const { tournament } = this.#ranking(demand, shares);
    const place = tournament.best();
    return place < 0 ? undefined : { place, score: tournament.score(place) };
  }

  #ranking(demand: Demand, shares: boolean): Ranking {
    const rankings = this.#rankings[shares ? 1 : 0];
    let ranking = rankings.get(demand);
    if (ranking === undefined) {
      ranking = { tournament: new Tournament(this.#count), read: -1 };
      rankings.set(demand, ranking);
    }
    const { read, tournament } = ranking;
    const end = this.#forgotten + this.#log.length;
    if (read < this.#forgotten || end - read > this.#count) {
      // Looking through all places is shorter than reading, or all there is.
      for (let place = 0; place < this.#count; place++) {
        if (read >= 0 && (this.#last[place] as number) < read) continue;
        tournament.set(place, this.#score(place, demand, shares));
      }
    } else {
      for (let i = read; i < end; i++) {
        const place = this.#log[i - this.#forgotten] as number;
        if (this.#last[place] !== i) continue;
        tournament.set(place, this.#score(place, demand, shares));
      }
    }
    ranking.read = end;
    return ranking;
  }
}
