// The schema only moves forward. `user_version` counts the migrations that a file has; a file that has more than this code is refused.
import { Problem } from '../../model/problem.ts'
import type { Database } from '../driver.ts'
import { first } from './0001-first.ts'

/** In order. Never edit one that has shipped: add another. */
const migrations: readonly string[] = [first]

/** How many migrations a file has. Throws `config-invalid` when a newer hookloom wrote it. */
export function toSchemaVersion(db: Database, file: string): number {
  const version = Number(db.get('PRAGMA user_version')?.['user_version'])
  if (version <= migrations.length) return version
  throw new Problem(
    'config-invalid',
    `${file} was written by a newer hookloom (schema ${version}; this one knows ${migrations.length}). ` +
      'Update hookloom, or give it another store.file.',
  )
}

/** Brings a file to the newest schema, each step a transaction of its own. */
export function migrate(db: Database, file: string): void {
  const version = toSchemaVersion(db, file)
  for (const [index, sql] of migrations.entries()) {
    if (index >= version) db.exec(`BEGIN IMMEDIATE; ${sql}; PRAGMA user_version = ${index + 1}; COMMIT`)
  }
}
