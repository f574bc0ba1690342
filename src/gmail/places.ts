// What a watched mailbox is called in Pub/Sub, and where its files stand in the config directory.
import { join } from 'node:path'
import type { WatchedGmail } from '../model/gmail-config.ts'
import type { PushConfig } from './pubsub.ts'

export function toTopic({ project, topic }: WatchedGmail): string {
  return `projects/${project}/topics/${topic}`
}

export function toSubscription({ project, subscription }: WatchedGmail): string {
  return `projects/${project}/subscriptions/${subscription}`
}

/** Undefined: the subscription is pulled. */
export function toPushConfig({ mode, push }: WatchedGmail): PushConfig | undefined {
  if (mode !== 'push') return undefined
  const { endpoint = '', serviceAccount = '' } = push
  return {
    pushEndpoint: endpoint,
    oidcToken: { serviceAccountEmail: serviceAccount, audience: push.audience ?? endpoint },
  }
}

/** How far `gmail run` has read. The gateway keeps the same in its store. */
export function toStateFile(dir: string): string {
  return join(dir, 'state', 'gmail-cursor.json')
}

/** How the watcher is, for people and for `gmail status`. */
export function toStatusFile(dir: string): string {
  return join(dir, 'state', 'gmail-status.json')
}
