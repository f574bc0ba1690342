// Copies a store to another engine or another place, while no gateway runs.
import { isSameJson } from '../base/json.ts'
import { resolve } from 'node:path'
import { isPostgresUrl } from '../base/postgres-url.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { type Env, substituteEnv } from '../gateway/config/env.ts'
import { configFile } from '../gateway/config/text.ts'
import { type StorePlace, describeStorePlace, toStorePlace } from '../model/places.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { silentLog } from '../base/log.ts'
import { copyStore, openStore } from '../store/open.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { readUser } from './terminal/user.ts'

/** `to`: a URL, or a file relative to the config directory. `${NAME}` reads a secret from a variable, because other users can see the
 * command line. */
export async function storeCopy(context: Context, { to: given }: { to: string }): Promise<number> {
  const { config, env } = loadConfig(context)
  const from = toStorePlace(context.dir, config)
  const to = parseTarget(given, context.dir, env)
  if (isSameJson(from, to)) {
    throw new Problem(
      'usage-invalid',
      `--to names the store of this configuration, ${describeStorePlace(to)}. Name another place.`,
    )
  }
  const lines: string[] = []
  const copied = await withProgress(context, `Copying to ${describeStorePlace(to)}`, (report) =>
    copyStore({ from, to }, (table, rows) => {
      lines.push(`${table.padEnd(10)}  ${rows}`)
      report(`${rows} ${table}`)
    }),
  )
  await noteCopy(from, to)
  if (context.json) context.printJson({ from: describeStorePlace(from), to: describeStorePlace(to), copied })
  else {
    context.print(lines.join('\n'))
    context.print(`\nCopied and counted. ${describeStorePlace(from)} is unchanged.`)
    context.print(`Now set ${describeKey(given, to)} in ${configFile}, and start the gateway.`)
  }
  return exitCodes.ok
}

/** Adds an entry about the copy to the audit log of the new store, which continues the old log. The old store stays unchanged. */
async function noteCopy(from: StorePlace, to: StorePlace): Promise<void> {
  const store = await openStore(to, { maxWaitingBytes: () => 0, log: silentLog })
  try {
    const by = { kind: 'command', name: `${readUser()} (hookloom store copy)` } as const
    await store.audit({
      by,
      act: 'store.copy',
      target: describeStorePlace(to),
      details: { from: describeStorePlace(from) },
      outcome: 'done',
    })
  } finally {
    await store.close()
  }
}

function parseTarget(given: string, dir: string, env: Env): StorePlace {
  const { value, issues } = substituteEnv(given, env)
  const [issue] = issues
  if (issue !== undefined) throw new Problem('usage-invalid', `--to${issue.text}`)
  const text = String(value)
  if (isPostgresUrl(text)) return { kind: 'url', url: text }
  // the text is not quoted in the message: it may be a URL with a password
  if (/^[a-z][a-z\d+.-]*:/i.test(text)) {
    throw new Problem(
      'usage-invalid',
      '--to must be a Postgres URL (postgres://user:password@host:5432/database) or a file.',
    )
  }
  return { kind: 'file', file: resolve(dir, text) }
}

function describeKey(given: string, to: StorePlace): string {
  if (to.kind === 'file') return `"store": { "file": ${JSON.stringify(to.file)} }`
  return `"store": { "url": ${given.includes('${') ? JSON.stringify(given) : '"${DATABASE_URL}"'} }`
}
