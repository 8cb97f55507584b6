/** Surveys of a virtual slot's function, from link up to link down: on the bus it has, and on no other. */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { surveyFunction, type SurveyResult } from '#host/function-survey';
import type { SoftHost } from '#host/root-complex';
import { TaskScope } from '#host/task';
import type { VirtualPort } from '#host/virtual-port';

export interface SlotSurveyOptions {
  readonly soft: SoftHost;
  readonly port: VirtualPort;
  /** Not for a survey that was stopped. */
  readonly onEnd: (now: Nanos, result: SurveyResult) => void;
}

export class SlotSurvey {
  readonly #options: SlotSurveyOptions;
  #scope: TaskScope | undefined;
  #bus = 0;

  constructor(options: SlotSurveyOptions) {
    this.#options = options;
  }

  /** The function is on another bus than it is, or was, surveyed on: nothing is found there. */
  get isElsewhere(): boolean {
    return this.#scope !== undefined && this.#bus !== this.#options.port.routing.secondaryBus;
  }

  start(now: Nanos): void {
    const { soft, port, onEnd } = this.#options;
    const { virtualSlot, routing } = port;
    const scope = new TaskScope(`slot ${virtualSlot}`);
    this.#scope = scope;
    this.#bus = routing.secondaryBus;
    const survey = surveyFunction(soft, virtualSlot, this.#bus << 8);
    soft.tasks.run(
      now,
      survey,
      (then, outcome) => {
        if (this.#scope !== scope) return;
        if (!outcome.ok) throw outcome.error;
        onEnd(then, outcome.value);
      },
      scope,
    );
  }

  stop(now: Nanos, reason: string): void {
    const scope = this.#scope;
    this.#scope = undefined;
    scope?.end(now, new DxpuError('unavailable', reason));
  }
}
