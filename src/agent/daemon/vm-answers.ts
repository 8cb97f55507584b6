/** What QEMU's answers to questions about a VM say. */
import type { QmpAnswer } from '#vm/qmp-session';

/** Of `query-memdev`: why DMA would reach a copy of the guest's memory, of which nobody would be told. */
export function memoryProblem(answer: QmpAnswer): string | undefined {
  const parts = answer.ok && Array.isArray(answer.value) ? answer.value : [];
  const own = parts.find((one: { share?: unknown } | null) => one?.share === false);
  if (own === undefined) return undefined;
  return (
    `the VM's memory (${String(own.id)}) is not shared: start QEMU with -object ` +
    'memory-backend-memfd,id=memory,size=SIZE,share=on and -machine memory-backend=memory'
  );
}

/** Of `qom-list`: what is there, by name. */
export function namesIn(list: unknown): string[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((one: { name?: unknown } | null) =>
    typeof one?.name === 'string' ? [one.name] : [],
  );
}
