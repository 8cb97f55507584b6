/**
 * The best of many places (hosts of a group, or groups) for each kind of demand, kept up to date
 * place by place: a ranking reads what it has missed when it is next asked.
 */
import { type ChangeLog, type LogReader, NOTHING_READ } from './change-log.ts';
import type { Demand } from './demand.ts';
import { Tournament } from './tournament.ts';

/** The score of a place that has no room. */
export const NO_ROOM = -Infinity;

/** `shares`: for a part of a GPU that is shared out already. */
export type Score = (place: number, demand: Demand, shares: boolean) => number;

interface Ranking extends LogReader {
  readonly tournament: Tournament;
}

export class Ranks {
  readonly #count: number;
  readonly #log: ChangeLog;
  readonly #score: Score;
  readonly #rankings: [Map<Demand, Ranking>, Map<Demand, Ranking>] = [new Map(), new Map()];

  /**
   * `log` is to be told of every place whose score may have changed. `score` may depend on nothing but
   * the place and the demand.
   */
  constructor(count: number, log: ChangeLog, score: Score) {
    this.#count = count;
    this.#log = log;
    this.#score = score;
  }

  /** The best place and its score, the first of equals; `undefined` if none has room. */
  best(demand: Demand, shares: boolean): { place: number; score: number } | undefined {
    const tournament = this.#tournament(demand, shares);
    const place = tournament.best();
    return place < 0 ? undefined : { place, score: tournament.score(place) };
  }

  #tournament(demand: Demand, shares: boolean): Tournament {
    const rankings = this.#rankings[shares ? 1 : 0];
    let ranking = rankings.get(demand);
    if (ranking === undefined) {
      ranking = { tournament: new Tournament(this.#count), read: NOTHING_READ };
      rankings.set(demand, ranking);
    }
    const { tournament } = ranking;
    this.#log.catchUp(ranking, (place) =>
      tournament.set(place, this.#score(place, demand, shares)),
    );
    return tournament;
  }
}
