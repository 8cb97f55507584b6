/** Arrivals without departures, until a share of GPU capacity has been asked for. */
import { askedMilli, type Demand } from './demand.ts';
import { Curve, type CurvePoint } from './curve.ts';
import { type Design, noneUnplaced, type UnplacedReason } from './design.ts';

export interface FillResult {
  readonly curve: readonly CurvePoint[];
  readonly arrivedMilli: number;
  readonly allocatedMilli: number;
  readonly requests: number;
  readonly placed: number;
  /** Requests that found no place, by reason. */
  readonly unplaced: Readonly<Record<UnplacedReason, number>>;
}

/** Puts the arrivals to the design one by one. A request that is refused never comes again. */
export function fill(design: Design, kinds: readonly Demand[], arrivals: Uint32Array): FillResult {
  const curve = new Curve(design.capacityMilli);
  const unplaced = noneUnplaced();
  let arrivedMilli = 0;
  let allocatedMilli = 0;
  let placed = 0;
  for (let i = 0; i < arrivals.length; i++) {
    const demand = kinds[arrivals[i] as number] as Demand;
    const asked = askedMilli(demand);
    arrivedMilli += asked;
    if (design.place(demand) === undefined) {
      unplaced[design.whyNot(demand)] += 1;
    } else {
      allocatedMilli += asked;
      placed += 1;
    }
    curve.add(arrivedMilli, allocatedMilli);
  }
  return {
    curve: curve.points(),
    arrivedMilli,
    allocatedMilli,
    requests: arrivals.length,
    placed,
    unplaced,
  };
}
