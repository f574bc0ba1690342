// The gateway as a host starts it, from the built package, with a store of its own.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type GatewayOptions = {
  /** URL of the built package's `index.js`. */
  readonly built: string
  /** Config directory, empty. */
  readonly dir: string
  readonly token: string
  readonly store: 'sqlite' | 'memory'
  /** Milliseconds that each commit takes longer, as on a slower disk. */
  readonly delayMs: number
}

export type BenchedGateway = {
  readonly port: number
  /** Forgets what a store without a disk has gathered: a full heap is not what is measured. */
  empty(): void
  jobsDone(): Promise<number>
}

const fields = '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}: {{issue.html_url}}'

export async function startGateway(options: GatewayOptions): Promise<BenchedGateway> {
  const { built, dir, token, delayMs } = options
  writeFileSync(join(dir, 'hookloom.jsonc'), JSON.stringify(toConfig(token)))
  // as: the package is built from this source
  const { createHookloom, createMemoryStore, createSqliteStore } = (await import(
    built
  )) as typeof import('../../src/index.ts')
  const clock = Date.now
  // where the default configuration has it: a store among the watched files would wake the watcher at each commit
  const file = join(dir, 'state/hookloom.db')
  mkdirSync(join(dir, 'state'))
  const store =
    options.store === 'memory'
      ? createMemoryStore({ clock })
      : createSqliteStore({ file, clock, commitDelayMs: delayMs })
  const gateway = await createHookloom({ dir, env: {}, store, write: () => {} })
  return {
    port: Number(new URL(gateway.url).port),
    empty: () => {
      if (options.store === 'memory') Object.assign(store, createMemoryStore({ clock }))
    },
    jobsDone: async () => (await store.counts()).jobs.done,
  }
}

function toConfig(token: string): object {
  return {
    server: { port: 0, adminPort: 0 },
    hooks: {
      enabled: true,
      token,
      mappings: [
        { match: { path: 'bench' }, action: 'wake', wakeMode: 'next-heartbeat', textTemplate: fields },
        { match: { path: 'bench-agent' }, action: 'agent', messageTemplate: fields, channel: 'console' },
      ],
    },
    channels: { default: { channel: 'console' } },
  }
}
