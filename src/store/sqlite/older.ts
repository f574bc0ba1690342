// Reads a file that an older gateway still owns: temporary views, which are in memory, give its tables the columns of this version.
import type { Database } from './driver.ts'
import { failedRunsViews } from './troubles.ts'

const deliverySums = 'NULL AS sum, NULL AS request_sum'
const jobSums = 'NULL AS sum, NULL AS work_sum'
const jobFlow = 'NULL AS flow, NULL AS ended_by, NULL AS labels, NULL AS budget, 0 AS queued_again, NULL AS failures'

/** The columns and tables that an older file lacks, each with the migration that added it. */
const views: readonly (readonly [migration: number, sql: string])[] = [
  [8, 'CREATE TEMP VIEW nodes AS SELECT NULL AS id, NULL AS first_seq, NULL AS place, NULL AS seen_at WHERE false'],
  [10, 'CREATE TEMP VIEW repeats AS SELECT NULL AS seq, NULL AS times, NULL AS last_at WHERE false'],
  [
    13,
    `CREATE TEMP VIEW deliveries AS SELECT *, NULL AS plan, NULL AS wake_id, NULL AS wake_steps, NULL AS recovered, ${deliverySums} FROM main.deliveries`,
  ],
  [
    16,
    `CREATE TEMP VIEW IF NOT EXISTS deliveries AS SELECT *, NULL AS recovered, ${deliverySums} FROM main.deliveries`,
  ],
  [13, 'CREATE TEMP VIEW events AS SELECT *, NULL AS delivery_seq, NULL AS sum FROM main.events'],
  [13, 'CREATE TEMP VIEW listed AS SELECT state, seq, hook, source, event, mapping_id, id FROM main.deliveries'],
  [13, 'CREATE TEMP VIEW wake_ids AS SELECT NULL AS id, NULL AS seq WHERE false'],
  [13, 'CREATE TEMP VIEW jobs_of AS SELECT delivery_seq, seq AS job_seq FROM main.jobs'],
  [13, 'CREATE TEMP VIEW transcripts AS SELECT agent_id, session_key, seq FROM main.messages'],
  [13, 'CREATE TEMP VIEW run_messages AS SELECT run_id, seq FROM main.messages'],
  [14, 'CREATE TEMP VIEW holds AS SELECT NULL AS label, NULL AS kind, NULL AS until WHERE false'],
  [
    14,
    'CREATE TEMP VIEW job_flow AS SELECT NULL AS job_seq, NULL AS ring, NULL AS key, NULL AS lane, NULL AS settings WHERE false',
  ],
  [
    14,
    'CREATE TEMP VIEW flow_keys AS SELECT NULL AS id, NULL AS state, NULL AS rank, NULL AS due_at, NULL AS line WHERE false',
  ],
  [14, 'CREATE TEMP VIEW endings AS SELECT NULL AS job_seq WHERE false'],
  [3, `CREATE TEMP VIEW jobs AS SELECT *, NULL AS failing_since, ${jobFlow}, ${jobSums} FROM main.jobs`],
  [14, `CREATE TEMP VIEW IF NOT EXISTS jobs AS SELECT *, ${jobFlow}, ${jobSums} FROM main.jobs`],
  [
    15,
    `CREATE TEMP VIEW quarantine AS SELECT ${'seq id received_at hook refusal key_id sealed'
      .split(' ')
      .map((name) => `NULL AS ${name}`)
      .join(', ')} WHERE false`,
  ],
  [
    13,
    `CREATE TEMP VIEW catalog AS SELECT ${['deliveries', 'jobs', 'events', 'messages'].map((name) => `${Number.MAX_SAFE_INTEGER} AS ${name}`).join(', ')}`,
  ],
  [
    17,
    'CREATE TEMP VIEW accounts AS SELECT NULL AS name, NULL AS starts_at, NULL AS nanos, NULL AS tokens, NULL AS turns, NULL AS raised_nanos, NULL AS raised_tokens, NULL AS raised_turns WHERE false',
  ],
  [
    17,
    'CREATE TEMP VIEW reservations AS SELECT NULL AS name, NULL AS job_id, NULL AS fence, NULL AS starts_at, NULL AS nanos, NULL AS tokens, NULL AS turns WHERE false',
  ],
  [18, 'CREATE TEMP VIEW audit AS SELECT NULL AS number, NULL AS at, NULL AS hash, NULL AS entry WHERE false'],
  [
    17,
    `CREATE TEMP VIEW IF NOT EXISTS jobs AS SELECT *, NULL AS budget, 0 AS queued_again, NULL AS failures, ${jobSums} FROM main.jobs`,
  ],
  [
    19,
    `CREATE TEMP VIEW IF NOT EXISTS jobs AS SELECT *, 0 AS queued_again, NULL AS failures, ${jobSums} FROM main.jobs`,
  ],
  [20, `CREATE TEMP VIEW IF NOT EXISTS jobs AS SELECT *, NULL AS failures, ${jobSums} FROM main.jobs`],
  [23, 'CREATE TEMP VIEW event_times AS SELECT at, seq FROM main.events'],
  [26, `CREATE TEMP VIEW IF NOT EXISTS deliveries AS SELECT *, ${deliverySums} FROM main.deliveries`],
  [26, `CREATE TEMP VIEW IF NOT EXISTS jobs AS SELECT *, ${jobSums} FROM main.jobs`],
  [26, 'CREATE TEMP VIEW IF NOT EXISTS events AS SELECT *, NULL AS sum FROM main.events'],
  [27, failedRunsViews],
]

/** `version`: the number of migrations applied to the file. */
export function withCurrentTables(db: Database, version: number): Database {
  const missing = views.filter(([migration]) => version < migration)
  if (missing.length === 0) return db
  db.exec(`PRAGMA temp_store = MEMORY; ${missing.map(([, sql]) => sql).join('; ')}`)
  // a statement must not name an index: a view has none
  const withoutIndexes = (sql: string) => sql.replaceAll(/INDEXED BY \w+/g, '')
  return {
    ...db,
    get: (sql, ...values) => db.get(withoutIndexes(sql), ...values),
    all: (sql, ...values) => db.all(withoutIndexes(sql), ...values),
  }
}
