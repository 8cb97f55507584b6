/** Surveys of a virtual slot's function, from link up to link down: on the bus it has, and on no other. */
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { surveyFunction, type SurveyResult } from '#host/function-survey';
import type { SoftHost } from '#host/root-complex';
import { TaskScope } from '#host/task';
import type { VirtualPort } from '#host/virtual-port';

export class SlotSurvey {
  readonly #soft: SoftHost;
  readonly #port: VirtualPort;
  readonly #onEnd: (now: Nanos, result: SurveyResult) => void;
  #scope: TaskScope | undefined;
  #bus = 0;

  /** `onEnd` is not called for a survey that was stopped. */
  constructor(
    soft: SoftHost,
    port: VirtualPort,
    onEnd: (now: Nanos, result: SurveyResult) => void,
  ) {
    this.#soft = soft;
    this.#port = port;
    this.#onEnd = onEnd;
  }

  /** The function is on another bus than it is, or was, surveyed on: nothing is found there. */
  get isElsewhere(): boolean {
    return this.#scope !== undefined && this.#bus !== this.#port.routing.secondaryBus;
  }

  start(now: Nanos): void {
    const { virtualSlot, routing } = this.#port;
    const scope = new TaskScope(`slot ${virtualSlot}`);
    this.#scope = scope;
    this.#bus = routing.secondaryBus;
    const survey = surveyFunction(this.#soft, virtualSlot, this.#bus << 8);
    this.#soft.tasks.run(
      now,
      survey,
      (then, outcome) => {
        if (this.#scope !== scope) return;
        if (!outcome.ok) throw outcome.error;
        this.#onEnd(then, outcome.value);
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
