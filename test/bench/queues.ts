// The job queues with which the bench compares runs. They are not part of this package; install them to compare.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

export const queueKinds = ['graphile-worker', 'pg-boss', 'bullmq'] as const
export type QueueKind = (typeof queueKinds)[number]

export const peersFolder = process.env['HOOKLOOM_PEERS'] ?? join(homedir(), '.cache/hookloom-peers')

type Kind = { readonly pinned: string; readonly means: string; readonly needs: 'postgres' | 'redis' }

const kinds: Readonly<Record<QueueKind, Kind>> = {
  'graphile-worker': {
    pinned: '0.16.6',
    needs: 'postgres',
    means:
      'a row is deleted when its handler ends; it keeps no reply and no transcript, and has no lanes, holds, budgets or steps',
  },
  'pg-boss': {
    pinned: '10.4.2',
    needs: 'postgres',
    means: 'a row is marked as completed; its workers poll twice a second, each for as many jobs as it may run',
  },
  bullmq: {
    pinned: '5.81.5',
    needs: 'redis',
    means: 'an entry of Redis, with appendfsync always, is moved to the completed ones',
  },
}

/** The version of an installed queue; undefined if it cannot be measured here. */
export function findQueue(kind: QueueKind): string | undefined {
  const file = join(peersFolder, 'node_modules', kind, 'package.json')
  if (!existsSync(file) || !hasServer(kinds[kind].needs)) return undefined
  const { version }: { version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

function hasServer(needs: Kind['needs']): boolean {
  if (needs === 'postgres') return process.env['HOOKLOOM_TEST_POSTGRES'] !== undefined
  try {
    execFileSync('redis-server', ['--version'])
    return true
  } catch {
    return false
  }
}

/** A sentence for each queue: what the end of a job means, or how to install it. */
export function describeQueues(): string[] {
  return queueKinds.map((kind) => {
    const { pinned, means, needs } = kinds[kind]
    const version = findQueue(kind)
    const server = needs === 'postgres' ? 'set HOOKLOOM_TEST_POSTGRES' : 'apt-get install redis-server'
    return version === undefined
      ? `${kind} is not measured. ${pinned}: npm install --prefix ${peersFolder} ${kind}@${pinned}, and ${server}`
      : `The end of a job of ${kind} ${version} means: ${means}.`
  })
}
