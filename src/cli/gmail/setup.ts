// Sets up a mailbox, step by step. Each step prints its outcome. A further run leaves alone what is set up.
import { join } from 'node:path'
import { createGmailApi } from '../../plugins/sources/gmail/api.ts'
import {
  type Credentials,
  readClientFile,
  readCredentials,
  readServiceAccount,
} from '../../plugins/sources/gmail/credentials.ts'
import type { GoogleAnswer, GoogleRequest } from '../../plugins/sources/gmail/call.ts'
import { type Google, openGoogle } from '../../plugins/sources/gmail/google.ts'
import { createStatusBoard, readStatus, toStatusFile } from '../../plugins/sources/gmail/status.ts'
import {
  createPubSubApi,
  ensureService,
  type SetupState,
  toPushConfig,
  toSubscription,
  toTopic,
} from '../../plugins/sources/gmail/pubsub.ts'
import { loadConfig, type LoadedConfig, parseConfig } from '../../gateway/config/config.ts'
import { configFile } from '../../gateway/config/text.ts'
import { privateMode } from '../../base/files.ts'
import { editConfig, writeFileAtomic } from '../../gateway/config/config-file.ts'
import { assemble } from '../../gateway/reload/assemble.ts'
import type { WatchedGmail } from '../../model/config/gmail.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { storeConsent, createTools, hasScopes } from './auth.ts'
import { isAlive } from '../gateway/running.ts'
import { type GmailFlags, requireWatched, buildEdits, chooseMode } from './flags.ts'

const services = ['gmail.googleapis.com', 'pubsub.googleapis.com']
const dayMs = 86_400_000

export async function setup(context: Context, flags: GmailFlags): Promise<number> {
  const { dir, env } = context
  const loaded = loadConfig({ dir, env })
  const { gmail } = await planConfig(dir, loaded, flags)
  const isDry = flags.dryRun === true
  const step = createStep(context, isDry)
  await step('consent', gmail.account, () => ensureConsent(context, flags, gmail))
  const google = isDry ? createDryGoogle(context, gmail) : open(readCredentials(dir, gmail), gmail)
  if (gmail.mode !== 'poll') await ensureCloud(google, gmail, step)
  if (gmail.mode !== 'poll') await step('watch', toTopic(gmail), () => ensureWatch(dir, google, { gmail, isDry }))
  await step('config', `hooks.gmail in ${configFile}`, async () => {
    // planned again: the file may have been edited while the person consented
    const now = loadConfig({ dir, env })
    const { text } = await planConfig(dir, now, flags)
    if (text === now.text) return 'ok'
    if (!isDry) await writeFileAtomic(join(dir, configFile), text, privateMode)
    return 'changed'
  })
  if (!context.json) context.print(`\n${describeNext(loaded, isDry)}`)
  return exitCodes.ok
}

/** The new configuration. No request goes to Google before it is valid. */
async function planConfig(dir: string, { config, env, text }: LoadedConfig, flags: GmailFlags) {
  const { gmail, presets } = config.hooks
  const project = await findProject(flags)
  const edits = buildEdits(flags, { dir, gmail, project })
  if (chooseMode(flags, gmail) !== 'poll' && !edits.some(({ path }) => path.at(-1) === 'project')) {
    throw new Problem(
      'usage-invalid',
      'The Google Cloud project is missing. Give it as in --project my-project, or use --mode poll, which needs no Google Cloud.',
    )
  }
  const has = presets.some((entry) => (typeof entry === 'string' ? entry : entry.name) === 'gmail')
  const withPreset = has ? text : editConfig(text, ['hooks', 'presets', -1], 'gmail')
  // a value that is set already is not written again, so the file keeps the author's spelling
  const changes = edits.filter(({ path, value }) => JSON.stringify(readAt(config, path)) !== JSON.stringify(value))
  const edited = changes.reduce((rest, { path, value }) => editConfig(rest, [...path], value), withPreset)
  const parsed = parseConfig(edited, env)
  if (parsed.config === undefined) {
    throw new Problem(
      'config-invalid',
      'The configuration would be invalid with these settings. Nothing was changed.',
      {
        frame: parsed.problems.join('\n'),
      },
    )
  }
  // checks the new configuration now: a preset with a forbidden session key would fail only at the first mail
  await assemble(dir, parsed.config)
  return { gmail: requireWatched(parsed.config), text: edited }
}

function readAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (node, key) => (typeof node === 'object' && node !== null ? Reflect.get(node, key) : undefined),
    value,
  )
}

async function findProject({ credentials, serviceAccount }: GmailFlags): Promise<string | undefined> {
  if (serviceAccount !== undefined) return readServiceAccount(serviceAccount).project_id
  return credentials === undefined ? undefined : (await readClientFile(credentials)).project
}

async function ensureConsent(context: Context, flags: GmailFlags, gmail: WatchedGmail): Promise<SetupState> {
  if (gmail.serviceAccountKey !== undefined || hasConsent(context.dir, gmail)) return 'ok'
  if (flags.dryRun !== true) await storeConsent(context, flags, gmail)
  return 'changed'
}

function hasConsent(dir: string, gmail: WatchedGmail): boolean {
  try {
    const credentials = readCredentials(dir, gmail)
    return credentials.kind === 'service-account' || hasScopes(credentials, gmail.mode)
  } catch {
    return false
  }
}

function open(credentials: Credentials, gmail: WatchedGmail): Google {
  return openGoogle(gmail, { credentials, clock: Date.now, tools: createTools() })
}

async function ensureCloud({ cloudCall, pubsub }: Google, gmail: WatchedGmail, step: Step): Promise<void> {
  const { project = '', endpoints } = gmail
  for (const service of services) {
    await step('api', service, async () => {
      try {
        return await ensureService({ call: cloudCall, base: endpoints.serviceUsage }, { project, service })
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        // the consent covers only mail and Pub/Sub; the setup can continue without this API call
        return {
          skipped: `check that it is enabled: https://console.cloud.google.com/apis/library/${service}?project=${project}`,
        }
      }
    })
  }
  const [topic, subscription] = [toTopic(gmail), toSubscription(gmail)]
  await step('topic', topic, () => pubsub.ensureTopic(topic))
  await step('publisher', 'Gmail may publish to the topic', () => pubsub.ensurePublisher(topic))
  await step('subscription', subscription, () => pubsub.ensureSubscription(subscription, topic, toPushConfig(gmail)))
}

/** Starts the notifications, so that a missing permission is noticed now. A watch that ends more than a day from now is not renewed. If a watcher
 * runs, the status file stays unchanged, because the watcher writes it. */
async function ensureWatch(
  dir: string,
  { gmail: api }: Google,
  { gmail, isDry }: { gmail: WatchedGmail; isDry: boolean },
): Promise<SetupState> {
  const file = toStatusFile(dir)
  const topic = toTopic(gmail)
  const known = await readStatus(file)
  if (known?.topic === topic && (known.watchExpiresAt ?? 0) - Date.now() > dayMs) return 'ok'
  const { expiration } = await api.watch(topic, gmail.labels)
  if (isDry || (known !== undefined && isAlive(known.pid))) return 'changed'
  const board = createStatusBoard({ file, account: gmail.account, mode: gmail.mode }, Date.now)
  board.update({ topic, watchExpiresAt: expiration })
  board.end()
  await board.waitUntilWritten()
  return 'changed'
}

/** A Google that prints each call and sends none. Each call is answered as if nothing existed yet. */
function createDryGoogle(context: Context, { endpoints }: WatchedGmail): Google {
  const call = async ({ method, url, body, allow }: GoogleRequest): Promise<GoogleAnswer> => {
    if (context.json) context.printJson({ call: method, url, ...(body === undefined ? {} : { body }) })
    else context.print(`  ${method} ${url}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`)
    if (allow?.includes(404) === true) return { status: 404, body: {} }
    return { status: 200, body: buildDryBody(new URL(url).pathname) }
  }
  return {
    gmail: createGmailApi({ call, base: endpoints.gmail }),
    pubsub: createPubSubApi({ call, base: endpoints.pubsub }),
    cloudCall: call,
    plainCall: call,
  }
}

/** The fields of a dry answer: only those that the setup reads. A policy has none, because the setup would send its fields back. */
function buildDryBody(path: string): object {
  if (path.includes('/services/')) return { state: 'DISABLED' }
  return path.endsWith('/watch') ? { historyId: '0', expiration: '0' } : {}
}

type Outcome = SetupState | { readonly skipped: string }
type Step = (name: string, what: string, work: () => Promise<Outcome>) => Promise<void>

/** Returns a function that runs a step and prints its outcome. */
function createStep(context: Context, isDry: boolean): Step {
  return async (name, what, work) => {
    const outcome = await work()
    const word = typeof outcome === 'string' ? outcome : 'skipped'
    const state = isDry && word === 'changed' ? 'to do' : word
    const detail = typeof outcome === 'string' ? what : `${what}: ${outcome.skipped}`
    if (context.json) context.printJson({ name, state, detail })
    else context.print(`${state.padEnd(7)}  ${name.padEnd(12)}  ${detail}`)
  }
}

function describeNext({ config }: LoadedConfig, isDry: boolean): string {
  if (isDry) return 'Nothing was changed.'
  if (!config.hooks.enabled)
    return 'hooks.enabled is false, so no mail is accepted. Set it to true, and set hooks.token.'
  return 'Run "hookloom start" to watch the mailbox. "hookloom gmail status" shows whether it works.'
}
