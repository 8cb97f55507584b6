/** Test only: each makes an agent lie, or do less than it was told. Never set outside tests. */
export interface AgentFaults {
  /** Reports the row that was ordered in place of the one the proxy shows, and that all is well. */
  readonly reportsWhatShouldBe?: boolean;
  /** Rows stay in force when they are ordered away. */
  readonly keepsOldRow?: boolean;
  /** Takes orders that do not follow their predecessor, as one that was late. */
  readonly appliesStaleOrder?: boolean;
  /** Counts an order that the proxy refused as one in force. */
  readonly claimsRefusedOrder?: boolean;
}
