// The second migration: the database keeps the number of bytes that wait, so that no call has to scan the rows.
const open = `'pending', 'parked'`
const unfinished = `'queued', 'running'`
const waitingDelivery = (row: string) =>
  `CASE WHEN ${row}.state IN (${open}) THEN coalesce(octet_length(${row}.head), 0) + coalesce(octet_length(${row}.body), 0) ELSE 0 END`
const waitingJob = (row: string) =>
  `CASE WHEN ${row}.state IN (${unfinished}) THEN octet_length(${row}.planned) ELSE 0 END`

type Counted = {
  readonly table: string
  /** The columns on which the bytes of a row depend. */
  readonly columns: string
  readonly states: string
  readonly bytes: (row: string) => string
}

/** Triggers keep the number right whatever a statement does. They ignore rows that wait neither before nor after it. */
const keepCount = ({ table, columns, states, bytes }: Counted) => `
CREATE TRIGGER ${table}_wait AFTER INSERT ON ${table} WHEN new.state IN (${states}) BEGIN
  UPDATE waiting_bytes SET bytes = bytes + ${bytes('new')};
END;
CREATE TRIGGER ${table}_move AFTER UPDATE OF ${columns} ON ${table}
  WHEN old.state IN (${states}) OR new.state IN (${states}) BEGIN
  UPDATE waiting_bytes SET bytes = bytes + ${bytes('new')} - ${bytes('old')};
END;
CREATE TRIGGER ${table}_gone AFTER DELETE ON ${table} WHEN old.state IN (${states}) BEGIN
  UPDATE waiting_bytes SET bytes = bytes - ${bytes('old')};
END;
`

export const waitingBytes = `
CREATE TABLE waiting_bytes (only INTEGER PRIMARY KEY CHECK (only = 1), bytes INTEGER NOT NULL) STRICT;
INSERT INTO waiting_bytes SELECT 1,
  (SELECT coalesce(sum(${waitingDelivery('d')}), 0) FROM deliveries d)
  + (SELECT coalesce(sum(${waitingJob('j')}), 0) FROM jobs j);
${keepCount({ table: 'deliveries', columns: 'state, head, body', states: open, bytes: waitingDelivery })}
${keepCount({ table: 'jobs', columns: 'state, planned', states: unfinished, bytes: waitingJob })}
`
