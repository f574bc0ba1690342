// The bytes that wait: the requests of parked and pending deliveries, and unfinished jobs. They are summed when a file is opened. After
// that, each connection that writes counts its own changes in a temporary table, which is in memory, so that a count writes no page.
import type { Database } from './driver.ts'

const open = `'pending', 'parked'`
const unfinished = `'queued', 'running'`
const waitingBytesOfDelivery = (row: string) =>
  `CASE WHEN ${row}.state IN (${open}) THEN coalesce(octet_length(${row}.head), 0) + coalesce(octet_length(${row}.body), 0) ELSE 0 END`
const waitingBytesOfJob = (row: string) =>
  `CASE WHEN ${row}.state IN (${unfinished}) THEN octet_length(${row}.planned) ELSE 0 END`
/** The plan may be in the row of the delivery. */
const waitingBytesOfPlan = (
  row: string,
) => `CASE WHEN ${row}.state NOT IN (${unfinished}) THEN 0 WHEN ${row}.planned <> '' THEN octet_length(${row}.planned)
  ELSE coalesce((SELECT octet_length(plan) FROM deliveries WHERE seq = ${row}.delivery_seq), 0) END`

type Counted = {
  readonly table: string
  /** The columns on which the bytes of a row depend. */
  readonly columns: string
  readonly states: string
  readonly bytes: (row: string) => string
}

const deliveries: Counted = {
  table: 'deliveries',
  columns: 'state, head, body',
  states: open,
  bytes: waitingBytesOfDelivery,
}
const jobs: Counted = { table: 'jobs', columns: 'state, planned', states: unfinished, bytes: waitingBytesOfPlan }

type Target = { readonly temporary: string; readonly counter: string }

/** Triggers keep the number correct, whatever a statement does. They ignore rows that wait neither before nor after the statement. */
const renderTriggers = ({ table, columns, states, bytes }: Counted, { temporary, counter }: Target) => `
CREATE ${temporary} TRIGGER ${table}_wait AFTER INSERT ON ${table} WHEN new.state IN (${states}) BEGIN
  UPDATE ${counter} SET bytes = bytes + ${bytes('new')};
END;
CREATE ${temporary} TRIGGER ${table}_move AFTER UPDATE OF ${columns} ON ${table}
  WHEN old.state IN (${states}) OR new.state IN (${states}) BEGIN
  UPDATE ${counter} SET bytes = bytes + ${bytes('new')} - ${bytes('old')};
END;
CREATE ${temporary} TRIGGER ${table}_gone AFTER DELETE ON ${table} WHEN old.state IN (${states}) BEGIN
  UPDATE ${counter} SET bytes = bytes - ${bytes('old')};
END;
`

/** The second migration, which kept the number in the file. A later migration undoes it. */
export const storedWaitingBytes = `
CREATE TABLE waiting_bytes (only INTEGER PRIMARY KEY CHECK (only = 1), bytes INTEGER NOT NULL) STRICT;
INSERT INTO waiting_bytes SELECT 1,
  (SELECT coalesce(sum(${waitingBytesOfDelivery('d')}), 0) FROM deliveries d)
  + (SELECT coalesce(sum(${waitingBytesOfJob('j')}), 0) FROM jobs j);
${[deliveries, { ...jobs, bytes: waitingBytesOfJob }].map((table) => renderTriggers(table, { temporary: '', counter: 'waiting_bytes' })).join('')}
`
export const dropStoredWaitingBytes = `
${[deliveries, jobs].flatMap(({ table }) => ['wait', 'move', 'gone'].map((event) => `DROP TRIGGER ${table}_${event};`)).join('\n')}
DROP TABLE waiting_bytes;
`

const countChanges = `
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE waiting_change (bytes INTEGER NOT NULL);
INSERT INTO waiting_change VALUES (0);
${[deliveries, jobs].map((table) => renderTriggers(table, { temporary: 'TEMP', counter: 'waiting_change' })).join('')}
`

/** Call it once for each connection that writes, after the migrations. */
export function trackWaitingBytes(db: Database): void {
  db.exec(countChanges)
}

/** The change in the bytes that wait since the last call. A rollback also undoes the change. */
export function takeWaitingChange(db: Database): number {
  const bytes = Number(db.get('SELECT bytes FROM waiting_change')?.['bytes'])
  if (bytes !== 0) db.run('UPDATE waiting_change SET bytes = 0')
  return bytes
}

/** Visits the rows that wait, and reads their lengths only. */
const sum = `SELECT
  (SELECT coalesce(sum(${waitingBytesOfDelivery('d')}), 0) FROM deliveries d WHERE state IN (${open}))
  + (SELECT coalesce(sum(${waitingBytesOfPlan('j')}), 0) FROM jobs j WHERE ended_at IS NULL) AS bytes`

export function sumWaitingBytes(db: Database): number {
  return Number(db.get(sum)?.['bytes'])
}
