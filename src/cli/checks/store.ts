// The checks of `doctor` on the store: which jobs and deliveries wait, what heartbeats used, and whether the database is intact.
import { existsSync } from 'node:fs'
import { missingMappingModule } from '../../core/model/delivery.ts'
import type { Config } from '../../model/config/config.ts'
import { type StorePlace, describeStorePlace, toStorePlace } from '../../model/places.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import { describeHeartbeatUsage, readHeartbeatUsage } from '../../gateway/deliveries/heartbeats.ts'
import { describeGenerationDifference } from '../../gateway/deliveries/records.ts'
import { openReader, readDatabaseFacts } from '../../store/open.ts'
import { describeFillLevel } from '../../store/room.ts'
import { compareSums } from '../../store/sqlite/damage.ts'
import { openDatabase, classifyError } from '../../store/sqlite/driver.ts'
import { readSize } from '../../store/sqlite/files.ts'
import { findWalDamage } from '../../store/sqlite/wal-damage.ts'
import { findRunning } from '../gateway/running.ts'
import { chooseStorePlace } from '../gateway/stored.ts'
import { formatQuantity, toPrintable } from '../../base/text.ts'
import { cutLine } from '../terminal/print.ts'
import { type CheckFinding, buildFailure } from './findings.ts'

const overdueMs = 60_000

export async function checkStore(dir: string, config: Config): Promise<CheckFinding[]> {
  try {
    const running = findRunning(dir)
    const place = chooseStorePlace(running?.store, toStorePlace(dir, config))
    if (place.kind === 'url') return await checkPostgres(place, config)
    if (existsSync(place.file)) {
      // before anything opens the file; the log of a running gateway was checked at its start
      const damage = running === undefined ? findWalDamage(place.file) : undefined
      return [...(await checkContents(place, config)), checkIntegrity(place.file, damage)]
    }
    return [{ name: 'store', ok: true, detail: `${place.file} does not exist yet: no gateway has run here` }]
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [buildFailure('store', error.message, exitCodes[error.kind])]
  }
}

async function checkContents(place: StorePlace, config: Config): Promise<CheckFinding[]> {
  const reader = await openReader(place)
  try {
    const { deliveries, jobs } = await reader.counts()
    const dueForMs = (await reader.dueForMs()) ?? 0
    const detail = `${describeStorePlace(place)}: ${deliveries.parked} parked, ${deliveries.pending} pending, ${jobs.queued} queued, ${jobs.running} running, ${jobs.dead} dead`
    const unmatched = await reader.countParkedFor(missingMappingModule)
    const waiting = describeFillLevel(await reader.waitingBytes(), config.store.maxWaitingBytes)
    const next = [
      ...(waiting === undefined ? [] : [waiting]),
      ...(dueForMs < overdueMs ? [] : [describeOverdueJob(dueForMs)]),
      ...(deliveries.parked === 0 ? [] : ['"hookloom list --state parked" shows the parked deliveries.']),
      ...(unmatched === 0
        ? []
        : [
            unmatched === 1
              ? '1 of them waits for a mapping: none takes it.'
              : `${unmatched} of them wait for a mapping: none takes them.`,
          ]),
      ...(jobs.dead === 0 ? [] : ['"hookloom list --dead" shows why they failed.']),
    ]
    const found: CheckFinding =
      next.length === 0
        ? { name: 'store', ok: true, detail }
        : { name: 'store', ok: false, severity: 'warning', detail: [detail, ...next].join('\n') }
    const usage = describeHeartbeatUsage(await readHeartbeatUsage(reader, config))
    return [found, { name: 'heartbeats', ok: true, detail: usage }]
  } finally {
    await reader.close()
  }
}

function describeOverdueJob(dueForMs: number): string {
  const minutes = Math.floor(dueForMs / 60_000)
  return (
    `A job has been due for ${formatQuantity(minutes, 'minute')}. Either no gateway runs, or the gateways have too little time for ` +
    'their jobs. "hookloom list" shows what waits.'
  )
}

async function checkPostgres(place: StorePlace & { kind: 'url' }, config: Config): Promise<CheckFinding[]> {
  const name = 'database'
  const { shown, version, latencyMs, schema, hasChecksums, faults, warnings } = await readDatabaseFacts(place.url)
  const isNew = schema?.code === 'config-missing'
  const hint = hasChecksums
    ? ''
    : '. It has no data checksums, so it cannot notice what its disk changes: see pg_checksums.'
  const detail = `Postgres ${cutLine(version, 60)} at ${shown}, ${latencyMs} ms for a statement, ${isNew ? 'no tables yet: no gateway has used it' : 'the schema is of this version'}${hint}`
  const problems = [
    ...faults.map((fault) => `${shown}: ${fault}`),
    ...(schema === undefined || isNew ? [] : [schema.message]),
  ]
  if (problems.length > 0) return problems.map((problem) => buildFailure(name, problem, exitCodes.config))
  const found: CheckFinding =
    warnings.length === 0
      ? { name, ok: true, detail }
      : { name, ok: false, severity: 'warning', detail: toPrintable([detail, ...warnings].join('\n')) }
  return isNew ? [found] : [...(await checkContents(place, config)), found, await checkNodes(place)]
}

async function checkNodes(place: StorePlace): Promise<CheckFinding> {
  const reader = await openReader(place)
  try {
    const nodes = await reader.nodes()
    const different = describeGenerationDifference(nodes)
    const name = 'gateways'
    if (different !== undefined) return { name, ok: false, severity: 'warning', detail: toPrintable(different) }
    const named = nodes.map(({ id, version, address }) => `${id} (${version}) at ${address}`)
    return { name, ok: true, detail: toPrintable(named.join(', ') || 'no gateway runs on this store') }
  } finally {
    await reader.close()
  }
}

/** Below this size, the indexes are compared with their tables, too, which takes as long again: half a second for this size. */
const wholeBytes = 128 * 1024 * 1024

function describeDamage(damaged: readonly string[]): string {
  return (
    `The text of rows was changed by something else than hookloom: ${damaged.join(', ')}. None of them is run or sent. Check the disk, ` +
    'and restore the store from a backup, or drop what is damaged: "hookloom drop <id>".'
  )
}

export function checkIntegrity(file: string, walDamage: string | undefined): CheckFinding {
  const name = 'store-integrity'
  if (walDamage !== undefined) return buildFailure(name, `${file}: ${walDamage}`, exitCodes.broken)
  try {
    const db = openDatabase(file, { readOnly: true, busyMs: 2_000 })
    try {
      const check = readSize(file) < wholeBytes ? 'integrity_check' : 'quick_check'
      const found = String(db.get(`PRAGMA ${check}(1)`)?.[check])
      const journal = String(db.get('PRAGMA journal_mode')?.['journal_mode'])
      if (found !== 'ok') return buildFailure(name, `SQLite finds damage: ${cutLine(found, 200)}`, exitCodes.broken)
      if (journal !== 'wal') return buildFailure(name, `journal_mode is ${journal}, expected wal`, exitCodes.broken)
      const { compared, damaged } = compareSums(db, file)
      if (damaged.length > 0) return buildFailure(name, describeDamage(damaged), exitCodes.broken)
      const rows = `the checksums of ${formatQuantity(compared, 'row')} are right`
      return { name, ok: true, detail: `${check} finds no damage, ${rows}, journal_mode is wal` }
    } finally {
      db.close()
    }
  } catch (error) {
    return buildFailure(
      name,
      `${file} cannot be opened: ${classifyError(error)?.what ?? 'SQLite refuses it'}`,
      exitCodes.unavailable,
    )
  }
}
