// What an update makes of a file that an older version wrote.
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../src/store/sqlite/driver.ts'
import { migrate } from '../../../../src/store/sqlite/migrations.ts'

/** The number of migrations of the last version in which any hook could set what the channel `last` means. */
const anyHookSets = 8

test('a recipient that any hook could have set is forgotten once, and one that is set later is kept', () => {
  const db = openDatabase(':memory:', { readOnly: false, busyMs: 0 })
  migrate(db, 'x.db', anyHookSets)
  db.exec(`INSERT INTO sessions (agent_id, session_key, updated_at, recipient_channel, recipient_to)
    VALUES ('main', 'main', 1, 'telegram', '666')`)
  const read = () => db.get('SELECT updated_at, recipient_channel, recipient_to FROM sessions')
  migrate(db, 'x.db')
  expect(read()).toEqual({ updated_at: 1, recipient_channel: null, recipient_to: null })
  db.exec(`UPDATE sessions SET recipient_channel = 'slack', recipient_to = 'C1'`)
  migrate(db, 'x.db')
  expect(read()).toEqual({ updated_at: 1, recipient_channel: 'slack', recipient_to: 'C1' })
  db.close()
})
