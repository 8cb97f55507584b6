/** The best of many places for each kind of demand, kept up to date place by place. */
import { ChangeLog, UNREAD } from './change-log.ts';
import type { Demand } from './demand.ts';
import { Tournament } from './tournament.ts';

/** The score of a place that has no room. */
export const NO_ROOM = -Infinity;

/** `shares`: for a part of a GPU that is shared out already. */
export type Score = (place: number, demand: Demand, shares: boolean) => number;

interface Ranking {
  readonly tournament: Tournament;
  readonly look: (place: number) => void;
  read: number;
}

export class Ranks {
  readonly #count: number;
  readonly #score: Score;
  readonly #rankings: [Map<Demand, Ranking>, Map<Demand, Ranking>] = [new Map(), new Map()];
  readonly #log: ChangeLog;

  /** `score` may depend on nothing but the place and the demand. */
  constructor(count: number, score: Score) {
    this.#count = count;
    this.#score = score;
    this.#log = new ChangeLog(count);
  }

  /** To be told of every place whose score may have changed. */
  changed(place: number): void {
    this.#log.changed(place);
  }

  /** The best place and its score, the first of equals; `undefined` if none has room. */
  best(demand: Demand, shares: boolean): { place: number; score: number } | undefined {
    const ranking = this.#ranking(demand, shares);
    ranking.read = this.#log.catchUp(ranking.read, ranking.look);
    const { tournament } = ranking;
    const place = tournament.best();
    return place < 0 ? undefined : { place, score: tournament.score(place) };
  }

  #ranking(demand: Demand, shares: boolean): Ranking {
    const rankings = this.#rankings[shares ? 1 : 0];
    const known = rankings.get(demand);
    if (known !== undefined) return known;
    const tournament = new Tournament(this.#count);
    const look = (place: number): void => tournament.set(place, this.#score(place, demand, shares));
    const ranking = { tournament, look, read: UNREAD };
    rankings.set(demand, ranking);
    return ranking;
  }
}
