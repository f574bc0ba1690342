// The options of `hookloom gmail`. They replace the values of the configuration.
import { relative, resolve } from 'node:path'
import { type GmailConfig, isWatched, type WatchedGmail } from '../../model/config/gmail.ts'
import type { GmailMode } from '../../model/config/gmail-modes.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Config } from '../../model/config/config.ts'

export type GmailFlags = {
  readonly account?: string
  readonly mode?: GmailMode
  readonly project?: string
  readonly topic?: string
  readonly subscription?: string
  readonly label?: readonly string[]
  readonly query?: string
  readonly body?: boolean
  readonly maxBytes?: number
  readonly renewMinutes?: number
  readonly pollSeconds?: number
  readonly pushEndpoint?: string
  readonly pushServiceAccount?: string
  readonly audience?: string
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly credentials?: string
  readonly serviceAccount?: string
  readonly browser?: boolean
  readonly dryRun?: boolean
}

type ConfigEdit = { readonly path: readonly string[]; readonly value: unknown }

/** Throws `usage-invalid` if no mailbox is given, or if the mailbox is not a mail address. */
export function chooseAccount(flags: Pick<GmailFlags, 'account'>, gmail: GmailConfig | undefined): string {
  const account = flags.account ?? gmail?.account
  if (account !== undefined && /^[^\s@/]+@[^\s@/]+$/.test(account)) return account.toLowerCase()
  const found = account === undefined ? 'The mailbox is missing.' : '--account must be a mail address.'
  throw new Problem('usage-invalid', `${found} Give it as in --account desk@example.org.`)
}

/** The mode from the command line, else from the configuration, else the mode that fits the other options. */
export function chooseMode({ mode, pushEndpoint }: GmailFlags, gmail: GmailConfig | undefined): GmailMode {
  return mode ?? (isWatched(gmail) ? gmail.mode : pushEndpoint === undefined ? 'pull' : 'push')
}

/** The keys of `hooks.gmail` that the command line sets. `project`: the project that the client or key file of Google names. */
export function buildEdits(
  flags: GmailFlags,
  { dir, gmail, project }: { dir: string; gmail: GmailConfig | undefined; project: string | undefined },
): ConfigEdit[] {
  const mode = chooseMode(flags, gmail)
  const key = flags.serviceAccount === undefined ? undefined : toConfigPath(dir, flags.serviceAccount)
  const values: [string, unknown][] = [
    ['account', chooseAccount(flags, gmail)],
    ['mode', mode],
    ['project', flags.project ?? gmail?.project ?? (mode === 'poll' ? undefined : project)],
    ['topic', flags.topic],
    ['subscription', flags.subscription],
    ['labels', flags.label],
    ['query', flags.query],
    ['includeBody', flags.body === false ? false : undefined],
    ['maxBytes', flags.maxBytes],
    ['renewMinutes', flags.renewMinutes],
    ['pollSeconds', flags.pollSeconds],
    ['serviceAccountKey', key],
    ['push.endpoint', flags.pushEndpoint],
    ['push.serviceAccount', flags.pushServiceAccount],
    ['push.audience', flags.audience],
    ['push.host', flags.host],
    ['push.port', flags.port],
    ['push.path', flags.path],
  ]
  return values
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ({ path: ['hooks', 'gmail', ...name.split('.')], value }))
}

/** The path of a file in the configuration: relative for a file in the config directory, absolute for any other. */
function toConfigPath(dir: string, file: string): string {
  const inside = relative(dir, resolve(file))
  return inside.startsWith('..') ? resolve(file) : inside
}

/** Throws `config-invalid` if no mailbox is set up. */
export function requireWatched({ hooks: { gmail } }: Config): WatchedGmail {
  if (isWatched(gmail)) return gmail
  throw new Problem('config-invalid', 'hooks.gmail.account is not set. "hookloom gmail setup" sets it.')
}
