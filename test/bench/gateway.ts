// Starts the gateway of the built package in a process of the bench, with a store for this process.
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createJsonLog } from '../../src/cli/gateway/log.ts'

/** The replacements for the runtime of transforms. */
export const standIns = ['inline', 'trip'] as const
export type StandIn = (typeof standIns)[number]

export type GatewayOptions = {
  /** The URL of the built package's `index.js`. */
  readonly built: string
  /** An empty config directory. */
  readonly dir: string
  readonly token: string
  /** The token of the gateway. Default: none. */
  readonly operator?: string
  /** `single`: SQLite with a commit for each request. `memory`: SQLite in memory, which commits on the main thread. */
  readonly store: 'sqlite' | 'single' | 'memory' | 'postgres'
  /** The URL of the database, for `postgres`. */
  readonly url?: string
  /** The milliseconds by which each commit is delayed, as if the disk were slower. */
  readonly delayMs: number
  /** The transforms. Each module gets a hook with its name. Paths are relative to the transforms root. */
  readonly transforms?: { readonly files: Readonly<Record<string, string>>; readonly limits: { timeoutMs?: number } }
  /** The URL of the model for the runs. */
  readonly modelUrl?: string
  /** The number of turns at the same time. Default: that of the gateway. */
  readonly slots?: number
  /** True: one turn takes longer than the measurement, so the jobs of all other runs wait. */
  readonly waits?: boolean
  /** True: a single request is committed on the main thread, even while a tracer slows down each system call. */
  readonly isCounted?: boolean
  /** Runs transforms on the main thread: see inline-runtime.ts and trip-runtime.ts. */
  readonly runtime?: StandIn
}

export type BenchedGateway = {
  readonly port: number
  readonly adminPort: number
  /** Empties a store in memory, so that the memory does not fill up. */
  empty(): void
  countDoneJobs(): Promise<number>
  countQueuedJobs(): Promise<number>
}

const fields = '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}: {{issue.html_url}}'

/** The mapping that the load uses. */
export const benchMapping = {
  match: { path: 'bench' },
  action: 'wake' as const,
  wakeMode: 'next-heartbeat' as const,
  textTemplate: fields,
}

export async function startGateway(options: GatewayOptions): Promise<BenchedGateway> {
  const { built, dir, token, delayMs, transforms = { files: {}, limits: {} } } = options
  for (const [path, text] of Object.entries(transforms.files)) {
    mkdirSync(dirname(join(toTransformsRoot(dir), path)), { recursive: true })
    writeFileSync(join(toTransformsRoot(dir), path), text)
  }
  writeFileSync(
    join(dir, 'hookloom.jsonc'),
    JSON.stringify({
      ...buildConfig(token, transforms),
      ...(options.operator === undefined ? {} : { gateway: { token: options.operator } }),
      ...buildModelsConfig(options.modelUrl),
      ...buildStoreConfig(options.url),
      ...buildRunnerConfig(options.waits, options.slots),
    }),
  )
  // as: the package is built from this source
  const { createMemoryStore, createSqliteStore } = (await import(built)) as typeof import('../../src/index.ts')
  // as: the replacement is built from the same source
  const { createHookloom } = (await import(
    options.runtime === undefined ? built : new URL(`${options.runtime}.mjs`, import.meta.url).href
  )) as typeof import('../../src/index.ts')
  const clock = Date.now
  // as `hookloom start` logs; child.ts discards the output
  const log = createJsonLog()
  if (options.store === 'postgres') {
    const { url, adminUrl } = await createHookloom({ dir, env: {}, log, write: () => {} })
    return {
      port: Number(new URL(url).port),
      adminPort: Number(new URL(adminUrl).port),
      empty: () => {},
      countDoneJobs: async () => 0,
      countQueuedJobs: async () => 0,
    }
  }
  // outside of the watched files, as in the default configuration: otherwise each commit would wake the watcher
  const file = join(dir, 'state/hookloom.db')
  mkdirSync(join(dir, 'state'), { recursive: true })
  const store =
    options.store === 'memory'
      ? createMemoryStore({ clock })
      : createSqliteStore({
          file,
          clock,
          commitDelayMs: delayMs,
          ...(options.store === 'single' ? { batchLimit: 1 } : {}),
          ...(options.isCounted ? { directBelowMs: Number.POSITIVE_INFINITY } : {}),
        })
  const gateway = await createHookloom({ dir, env: {}, store, log, write: () => {} })
  return {
    port: Number(new URL(gateway.url).port),
    adminPort: Number(new URL(gateway.adminUrl).port),
    empty: () => {
      if (options.store !== 'memory') return
      const full = { ...store }
      Object.assign(store, createMemoryStore({ clock }))
      void full.close()
    },
    countDoneJobs: async () => (await store.counts()).jobs.done,
    countQueuedJobs: async () => (await store.counts()).jobs.queued,
  }
}

export const toTransformsRoot = (dir: string): string => join(dir, 'hooks', 'transforms')

function buildStoreConfig(url: string | undefined): object {
  return url === undefined ? {} : { store: { url } }
}

function buildRunnerConfig(waits = false, slots?: number): object {
  if (!waits) return slots === undefined ? {} : { agents: { defaults: { maxConcurrent: slots } } }
  const runner = { kind: 'command', command: process.execPath, args: ['-e', 'setTimeout(() => {}, 20_000)'] }
  return { runners: { waits: runner }, agents: { defaults: { runner: 'waits', maxConcurrent: 1 } } }
}

function buildModelsConfig(baseUrl: string | undefined): object {
  if (baseUrl === undefined) return {}
  return {
    models: { providers: { slow: { kind: 'openai-compatible', baseUrl, apiKey: 'none', stream: false } } },
    agents: { defaults: { model: 'slow/slow' } },
  }
}

function buildConfig(token: string, { files, limits }: NonNullable<GatewayOptions['transforms']>): object {
  const modules = Object.keys(files).filter((path) => path.endsWith('.ts'))
  return {
    server: { port: 0, adminPort: 0 },
    hooks: {
      enabled: true,
      token,
      ...(modules.length === 0 ? {} : { transforms: limits }),
      mappings: [
        benchMapping,
        { ...benchMapping, match: { path: 'bench-github' }, verify: { scheme: 'github', secret: token } },
        { match: { path: 'bench-agent' }, action: 'agent', messageTemplate: fields, channel: 'console' },
        { match: { path: 'bench-run' }, action: 'agent', messageTemplate: fields, deliver: false },
        {
          match: { path: 'bench-flow' },
          action: 'agent',
          messageTemplate: fields,
          channel: 'console',
          flow: { key: 'issue:{{issue.number}}', limits: ['model'] },
        },
        {
          match: { path: 'bench-hot' },
          action: 'agent',
          messageTemplate: fields,
          channel: 'console',
          flow: { key: 'one' },
        },
        ...modules.map((module) => ({
          match: { path: basename(module, '.ts') },
          action: 'wake',
          wakeMode: 'next-heartbeat',
          transform: { module },
        })),
      ],
    },
    channels: { default: { channel: 'console' } },
    limits: { model: { total: 8 } },
  }
}
