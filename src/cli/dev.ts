// Runs the gateway in a developer's terminal: creates the config directory, explains problems in the answers
// of the gateway, and prints commands to try.
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import colors from 'picocolors'
import type { Hookloom } from '../app.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { configFile } from '../gateway/config/text.ts'
import type { Config } from '../model/config/config.ts'
import { quoteShellWord } from '../base/shell.ts'
import { type Context, formatInvocation } from './terminal/context.ts'
import { hooksOffWarning } from './checks/findings.ts'
import { createConfigFolder, renewEditorConfig, schemaFile, toFixturePath } from './scaffold/folder.ts'
import { addRelaySection, findRelayedUrl } from './scaffold/relay-section.ts'
import { writeKnownSchema } from './scaffold/known-schema.ts'
import { keysHelp, readDevKeys } from './gateway/dev-keys.ts'
import { createPrettyLog } from './gateway/log.ts'
import { createPageLink, open } from './open.ts'
import { readVersion } from '../base/package.ts'
import { type Ports, serve } from './gateway/serve.ts'
import type { Log } from '../base/log.ts'
import type { Generation } from '../gateway/generation/generation.ts'
import { makeTransform } from './new.ts'
import { writeTypes } from './types.ts'
import { listHookTokens } from '../model/config/plan-settings.ts'

/** `relay`: the URL of a relay, whose section is added to the configuration. */
export async function dev(
  context: Context,
  { relay, ...ports }: Ports & { readonly relay?: string | undefined },
): Promise<number> {
  const { dir, env } = context
  const isNew = !existsSync(join(dir, configFile))
  if (isNew) await createConfigFolder(dir)
  if (relay !== undefined) await addRelaySection(context, relay)
  const { config } = loadConfig({ dir, env })
  const log = await createPrettyLog()
  let live: Hookloom | undefined
  return serve({
    dir,
    env,
    ...ports,
    onHangup: 'stop',
    development: true,
    log,
    onShapeWritten: createTypesWriter(context, { log, generation: () => live?.generation() }),
    makeTransform: (request) => makeTransform(context, request),
    announce: (gateway) => {
      live = gateway
      context.print(renderWelcome(context, gateway, { isNew, config }))
      void renewEditorConfig(dir)
      if (process.stdin.isTTY) void offerPage(context)
    },
  })
}

/** Returns a function that writes the types of a hook and the schema for editors. It writes for one hook at a time; a hook that waits for its
 * turn is not queued again. */
function createTypesWriter(
  context: Context,
  { log, generation }: { readonly log: Log; readonly generation: () => Generation | undefined },
): (hook: string) => void {
  const waiting = new Set<string>()
  let writing = Promise.resolve()

  async function write(hook: string): Promise<void> {
    waiting.delete(hook)
    const live = generation()
    if (live === undefined) return
    try {
      for (const { file, types, isNew } of await writeTypes(context, { hook, zod: false, generation: live })) {
        if (isNew) log.info({}, `${relative(context.dir, file)} is written: ${types.join(', ')}`)
      }
    } catch (error) {
      log.warn({ err: error }, 'the types of payloads could not be written')
    }
    try {
      await writeKnownSchema(context, live)
    } catch (error) {
      log.warn({ err: error }, `${schemaFile} could not be written`)
    }
  }

  return (hook) => {
    if (waiting.has(hook)) return
    waiting.add(hook)
    writing = writing.then(() => write(hook))
  }
}

/** Prints a link to the page, and reads keys until the gateway stops. */
async function offerPage(context: Context): Promise<void> {
  const stopReading = readDevKeys(process.stdin, {
    open: () => open(context, { browser: true }),
    quit: () => process.kill(process.pid, 'SIGINT'),
    print: context.print,
  })
  // the process could not end while it reads its input
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stopReading)
  const url = await createPageLink(context).catch(() => undefined)
  if (url !== undefined) context.print(`  Page   ${url}\n         It works once, and for a minute.\n`)
  context.print(`${keysHelp}\n`)
}

function renderWelcome(
  context: Context,
  { url, adminUrl }: Hookloom,
  { isNew, config }: { isNew: boolean; config: Config },
): string {
  const { dir } = context
  const { hooks } = config
  const relayedUrl = findRelayedUrl(config)
  const [token = ''] = listHookTokens(hooks)
  const fixture = toFixturePath(dir, 'opened.json')
  const curl = [
    // in a URL, an IPv6 address is in brackets
    'curl -sS --globoff',
    quoteShellWord(`${url}/agent`),
    `-H ${quoteShellWord(`Authorization: Bearer ${token}`)}`,
    `-H 'Content-Type: application/json'`,
    `--data-raw '{"name":"Hello","message":"Say hello to Hookloom"}'`,
  ].join(' ')
  return [
    `${colors.bold(`Hookloom ${readVersion()}`)} in ${dir}${isNew ? ', which is new' : ''}`,
    '',
    `  Hooks  ${url}`,
    ...(relayedUrl === undefined ? [] : [`  Public ${relayedUrl}`]),
    `  Admin  ${adminUrl}`,
    `  Token  ${token}`,
    '',
    ...(hooks.enabled ? ['An agent run; its reply appears below:', `  ${curl}`] : [hooksOffWarning]),
    ...(hooks.enabled && existsSync(fixture)
      ? [
          '',
          'A pull request through the sample transform:',
          `  ${formatInvocation(context, ['send', 'github', fixture])}`,
        ]
      : []),
    '',
    'Ctrl-C stops the gateway.',
    '',
  ].join('\n')
}
