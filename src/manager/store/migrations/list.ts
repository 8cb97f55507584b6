import type { Migration } from 'kysely';
import { pool } from './0001-pool.ts';

/** In the order of their names. One that has landed is never changed: docs/checklists/change-the-store.md. */
export const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-pool': pool,
};
