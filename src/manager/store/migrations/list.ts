import type { Migration } from 'kysely';

/**
 * In the order of their names. One that has landed is never changed: docs/checklists/change-the-store.md.
 * Loaded when there is something to migrate, which is once in the life of a file.
 */
export const MIGRATIONS: Readonly<Record<string, () => Promise<Migration>>> = {
  '0001-pool': () => import('./0001-pool.ts').then(({ pool }) => pool),
};
