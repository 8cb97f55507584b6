import { type Kysely, type Migration, sql } from 'kysely';

/** Trigger text: aborts the statement, and with it the transaction it is in. */
const refuse = (message: string) => sql`RAISE(ABORT, ${sql.lit(message)})`;

/**
 * A row is its keys, which the schema guards, and `record`: the whole record as JSON, which is all that
 * is read back.
 */
async function up(db: Kysely<unknown>): Promise<void> {
  // 'dxpu' in ASCII: tells our file from any other SQLite database.
  await sql`PRAGMA application_id = ${sql.lit(0x64787075)}`.execute(db);

  await db.schema
    .createTable('about')
    .addColumn('name', 'text', (column) => column.primaryKey().notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .modifyEnd(sql`STRICT`)
    .execute();

  await db.schema
    .createTable('counters')
    .addColumn('only', 'integer', (column) => column.primaryKey().check(sql`"only" = 1`))
    .addColumn('generation', 'integer', (column) => column.notNull())
    .addColumn('binding', 'integer', (column) => column.notNull())
    .addColumn('position', 'integer', (column) => column.notNull())
    .modifyEnd(sql`STRICT`)
    .execute();
  await sql`INSERT INTO counters VALUES (1, 0, 0, 0)`.execute(db);

  await db.schema
    .createTable('box')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(sql`STRICT`)
    .execute();
  await db.schema
    .createTable('box_slot')
    .addColumn('box', 'text', (column) => column.notNull().references('box.id'))
    .addColumn('slot', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('box_slot_key', ['box', 'slot'])
    .modifyEnd(sql`STRICT`)
    .execute();

  await db.schema
    .createTable('host')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(sql`STRICT`)
    .execute();
  await db.schema
    .createTable('host_slot')
    .addColumn('host', 'text', (column) => column.notNull().references('host.id'))
    .addColumn('slot', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('host_slot_key', ['host', 'slot'])
    .modifyEnd(sql`STRICT`)
    .execute();
  // No reference to a box: a host may measure a path to one that has never reported.
  await db.schema
    .createTable('path')
    .addColumn('host', 'text', (column) => column.notNull().references('host.id'))
    .addColumn('box', 'text', (column) => column.notNull())
    .addColumn('path', 'text', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('path_key', ['host', 'box', 'path'])
    .modifyEnd(sql`STRICT`)
    .execute();

  await db.schema
    .createTable('binding')
    .addColumn('id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('generation', 'integer', (column) => column.notNull().unique())
    .addColumn('host', 'text', (column) => column.notNull())
    .addColumn('host_slot', 'integer', (column) => column.notNull())
    .addColumn('box', 'text', (column) => column.notNull())
    .addColumn('box_slot', 'integer', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addUniqueConstraint('binding_box_slot', ['box', 'box_slot'])
    .addUniqueConstraint('binding_host_slot', ['host', 'host_slot'])
    .addForeignKeyConstraint('binding_of_box_slot', ['box', 'box_slot'], 'box_slot', [
      'box',
      'slot',
    ])
    .addForeignKeyConstraint('binding_of_host_slot', ['host', 'host_slot'], 'host_slot', [
      'host',
      'slot',
    ])
    .modifyEnd(sql`STRICT`)
    .execute();

  await db.schema
    .createTable('request')
    .addColumn('caller', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('at_ms', 'real', (column) => column.notNull())
    .addColumn('record', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('request_key', ['caller', 'request_id'])
    .modifyEnd(sql`STRICT`)
    .execute();
  await db.schema.createIndex('request_by_time').on('request').column('at_ms').execute();

  await db.schema
    .createTable('log')
    .addColumn('position', 'integer', (column) => column.primaryKey().notNull())
    .addColumn('binding', 'text')
    .addColumn('record', 'text', (column) => column.notNull())
    .modifyEnd(sql`STRICT`)
    .execute();
  // An index of SQLite holds the primary key too, so it lists a binding's entries in their order.
  await db.schema
    .createIndex('log_by_binding')
    .on('log')
    .column('binding')
    .where(sql.ref('binding'), 'is not', null)
    .execute();

  await triggers(db);
}

async function triggers(db: Kysely<unknown>): Promise<void> {
  for (const what of ['UPDATE', 'DELETE']) {
    await sql`
      CREATE TRIGGER ${sql.raw(`log_without_${what.toLowerCase()}`)} BEFORE ${sql.raw(what)} ON log
      BEGIN SELECT ${refuse('the log is append-only')}; END`.execute(db);
  }
  await sql`
    CREATE TRIGGER log_without_gaps BEFORE INSERT ON log
    WHEN NEW.position IS NOT 1 + (SELECT coalesce(max(position), 0) FROM log)
    BEGIN SELECT ${refuse('the log goes on behind its last position')}; END`.execute(db);

  // Bindings are written before the counters: what a generation must exceed is the counter of the
  // commit before.
  await sql`
    CREATE TRIGGER generation_once AFTER INSERT ON binding
    WHEN NEW.generation <= (SELECT generation FROM counters)
    BEGIN SELECT ${refuse('a generation is given out once')}; END`.execute(db);
  await sql`
    CREATE TRIGGER generation_once_again AFTER UPDATE OF generation ON binding
    WHEN NEW.generation <> OLD.generation
      AND NEW.generation <= (SELECT generation FROM counters)
    BEGIN SELECT ${refuse('a generation is given out once')}; END`.execute(db);
  await sql`
    CREATE TRIGGER counters_stay BEFORE DELETE ON counters
    BEGIN SELECT ${refuse('the counters stay')}; END`.execute(db);
  await sql`
    CREATE TRIGGER counters_rise AFTER UPDATE ON counters
    WHEN NEW.generation < OLD.generation OR NEW.binding < OLD.binding
      OR NEW.generation < (SELECT coalesce(max(generation), 0) FROM binding)
      OR NEW.position IS NOT (SELECT coalesce(max(position), 0) FROM log)
    BEGIN SELECT ${refuse('the counters rise with what they count')}; END`.execute(db);
}

export const pool: Migration = { up };
