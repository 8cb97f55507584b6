import { assert } from '#base/assert';
import { Tlp } from '#pcie/tlp';

/**
 * Records for TLPs under way. An effect may call back into the proxy that caused it, so a proxy
 * borrows a record for each nested call and gives it back in reverse order.
 */
export class ScratchTlps {
  readonly #records: Tlp[] = [];
  #borrowed = 0;

  borrow(): Tlp {
    let record = this.#records[this.#borrowed];
    if (record === undefined) {
      record = new Tlp();
      this.#records.push(record);
    }
    this.#borrowed++;
    return record;
  }

  giveBack(record: Tlp): void {
    this.#borrowed--;
    assert(this.#records[this.#borrowed] === record, 'records come back in reverse order');
  }
}
