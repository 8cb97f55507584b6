/**
 * The transaction ordering rules of PCIe 5.0 base (2.4.1, table 2-40) as code: which TLP may overtake
 * which on its way through a port. Rows (the later TLP) and columns (the earlier one) have the names
 * of the table: A, B, C, D against 2, 3, 4, 5. TLP prefixes are not supported, so the PASID half of
 * the ID-based rules does not arise.
 *
 * The rules hold within one traffic class; TLPs of different classes have no ordering.
 */
import { ATTR_ID_BASED_ORDERING, ATTR_RELAXED_ORDERING, TlpKind } from './tlp.ts';

/** The four kinds of row and column; the numbers index arrays. */
export const OrderingClass = {
  /** A, 2: memory writes and messages. */
  POSTED: 0,
  /** B, 3: memory, I/O and configuration reads. */
  READ: 1,
  /** C, 4: non-posted requests with data: I/O and configuration writes, atomics. */
  NON_POSTED_WITH_DATA: 2,
  /** D, 5. */
  COMPLETION: 3,
} as const;
export type OrderingClass = (typeof OrderingClass)[keyof typeof OrderingClass];

export const Pass = {
  /** "No": must not overtake. */
  NO: 0,
  /** "Y/N": may overtake or wait, either is right. */
  MAY: 1,
  /** "Yes": must be able to overtake when the earlier one is stuck, or the fabric can deadlock. */
  MUST: 2,
} as const;
export type Pass = (typeof Pass)[keyof typeof Pass];

/** What the table looks at in a TLP. */
export interface OrderingSubject {
  readonly ordering: OrderingClass;
  /** Attr[2:0], as in `Tlp`. */
  readonly attributes: number;
  /**
   * Who sent it, as ID-based ordering compares it: the requester ID of a request, the completer ID
   * of a completion.
   */
  readonly sourceId: number;
  /** Requester ID << 10 | tag: completions of one request stay in order (D5b). Completions only. */
  readonly transactionId: number;
  /** A completion of an I/O or configuration write (D2b). False when not known: that is the strict side. */
  readonly completesIoOrConfigWrite: boolean;
}

export function orderingClassOf(kind: TlpKind): OrderingClass {
  switch (kind) {
    case TlpKind.MWr32:
    case TlpKind.MWr64:
    case TlpKind.Msg:
    case TlpKind.MsgD:
      return OrderingClass.POSTED;
    case TlpKind.MRd32:
    case TlpKind.MRd64:
    case TlpKind.IORd:
    case TlpKind.CfgRd0:
    case TlpKind.CfgRd1:
      return OrderingClass.READ;
    case TlpKind.Cpl:
    case TlpKind.CplD:
      return OrderingClass.COMPLETION;
    default:
      return OrderingClass.NON_POSTED_WITH_DATA;
  }
}

/** Whether `later` may, must or must not overtake `earlier`, both going the same way through a port. */
export function mayPass(later: OrderingSubject, earlier: OrderingSubject): Pass {
  switch (earlier.ordering) {
    case OrderingClass.POSTED:
      // Column 2. Everything stays behind a posted request unless its own attributes free it.
      return passesPosted(
        later.ordering,
        later.attributes,
        later.completesIoOrConfigWrite,
        later.sourceId,
        earlier.sourceId,
      )
        ? Pass.MAY
        : Pass.NO;
    case OrderingClass.READ:
    case OrderingClass.NON_POSTED_WITH_DATA:
      // A3, A4, D3, D4: waiting here is the classic deadlock. B3, B4, C3, C4: free.
      return later.ordering === OrderingClass.POSTED || later.ordering === OrderingClass.COMPLETION
        ? Pass.MUST
        : Pass.MAY;
    default:
      // D5b: the completions of one request arrive in address order. Everything else is free:
      // A5a (A5b, "must", is for bridges to PCI and PCI-X alone), B5, C5, D5a.
      return later.ordering === OrderingClass.COMPLETION &&
        later.transactionId === earlier.transactionId
        ? Pass.NO
        : Pass.MAY;
  }
}

/**
 * Column 2 of the table without objects, for queues: A2b, B2b, C2b and D2b. `sourceId` and
 * `postedRequesterId` as in `OrderingSubject`.
 */
export function passesPosted(
  later: OrderingClass,
  attributes: number,
  completesIoOrConfigWrite: boolean,
  sourceId: number,
  postedRequesterId: number,
): boolean {
  // IDO frees every row when the two come from different functions.
  if ((attributes & ATTR_ID_BASED_ORDERING) !== 0 && sourceId !== postedRequesterId) return true;
  // B2: relaxed ordering does not free a read.
  if (later === OrderingClass.READ) return false;
  if (completesIoOrConfigWrite && later === OrderingClass.COMPLETION) return true;
  return (attributes & ATTR_RELAXED_ORDERING) !== 0;
}
