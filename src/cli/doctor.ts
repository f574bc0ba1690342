// Whether this installation works: checks the configuration, the modules, the store, the disk, the running gateway, the runners, the channels and
// the sources of plugins.
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { assemble } from '../gateway/reload/assemble.ts'
import type { Config } from '../model/config/config.ts'
import { tryParseJson } from '../base/json.ts'
import { toStorePlace } from '../model/places.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { checkCodeFolders } from './checks/code-folders.ts'
import {
  checkConfig,
  checkMappings,
  checkWarnings,
  findKnownSenders,
  type CheckFinding,
  printFindings,
  buildFailure,
} from './checks/findings.ts'
import { callGateway } from './gateway/gateway.ts'
import { findKilledPid, findRunning } from './gateway/running.ts'
import { checkRecoverable } from './checks/recoverable.ts'
import { checkOtherSides, checkWorkspaces } from './checks/probes.ts'
import { checkSenders } from './checks/senders.ts'
import { checkStore } from './checks/store.ts'
import { formatTime } from './terminal/print.ts'

const minFreeBytes = 200 * 1024 * 1024

/** `ask`: also calls the model of each agent, which replies with one word. */
export async function doctor(context: Context, { ask: isAsking = false }: { ask?: boolean } = {}): Promise<number> {
  const { loaded, findings } = checkConfig(context)
  if (loaded === undefined) return printFindings(context, findings)
  const { config } = loaded
  const assembling = assemble(context.dir, config)
  const senders = findKnownSenders(assembling)
  const further = await withProgress(
    context,
    'Checking the transforms, the store, the gateway, the runners and the channels',
    async () => {
      return [
        ...(await checkMappings(context, loaded, assembling)),
        ...(await checkStore(context.dir, config)),
        ...(await assembling.then(checkRecoverable, () => [])),
        await checkDisk(context.dir, config),
        await checkCodeFolders(context.dir),
        ...(await checkGateway(context.dir, config)),
        ...(await checkSenders(context.dir, config, await senders)),
        ...(await checkWorkspaces(context, config)),
        ...(await checkOtherSides(context, config, { env: loaded.env, assembling, isAsking })),
      ]
    },
  )
  return printFindings(context, [...findings, ...further, ...checkWarnings(loaded, await senders)])
}

/** Checks the free space on the disk of the store. Before the first start, and for a database, checks the disk of the config directory. */
async function checkDisk(dir: string, config: Config): Promise<CheckFinding> {
  const place = toStorePlace(dir, config)
  const ofStore = place.kind === 'file' ? await statfs(dirname(place.file)).catch(() => undefined) : undefined
  const { bavail, bsize } = ofStore ?? (await statfs(dir))
  const detail = `${Math.round((bavail * bsize) / 1024 / 1024)} MiB are free`
  if (bavail * bsize >= minFreeBytes) return { name: 'disk', ok: true, detail }
  return {
    name: 'disk',
    ok: false,
    severity: 'warning',
    detail: `${detail}. On a full disk, requests are answered 503`,
  }
}

const Outline = z.object({
  ok: z.boolean(),
  degraded: z.boolean(),
  configuration: z.enum(['live', 'refused', 'held']),
  modules: z.int(),
})

/** The answer of /readyz to a request with the gateway token, or to one without it. */
const Readiness = z.union([
  z.object({
    degraded: z.boolean(),
    problems: z.array(z.object({ detail: z.string() })),
    proxies: z.array(z.string()),
    slots: z.object({ most: z.int(), fullSince: z.string().nullable() }),
    store: z.object({ trouble: z.string().optional(), facts: z.record(z.string(), z.union([z.string(), z.number()])) }),
  }),
  Outline,
])

async function checkGateway(dir: string, { gateway: { token } }: Config): Promise<CheckFinding[]> {
  const running = findRunning(dir)
  const name = 'gateway'
  if (running === undefined) return [buildStoppedFinding(name, findKilledPid(dir))]
  const where = `pid ${running.pid} at ${running.url}`
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const { status, text } = await callGateway(`${running.adminUrl}/readyz`, { method: 'GET', headers })
    const ready = Readiness.safeParse(tryParseJson(text))
    if (!ready.success) return [buildFailure(name, `${where}: /readyz answers ${status}`, exitCodes.unavailable)]
    if (!('store' in ready.data)) return [buildReadinessFinding(where, ready.data)]
    const { degraded, problems, proxies, slots, store } = ready.data
    const warnings = [
      ...proxies.map((detail) => ({ name: 'proxies', detail })),
      ...(slots.fullSince === null ? [] : [{ name: 'slots', detail: describeFullSlots(slots.most, slots.fullSince) }]),
    ].map((warning): CheckFinding => ({ ...warning, ok: false, severity: 'warning' }))
    if (store.trouble !== undefined) return [buildFailure(name, `${where}: ${store.trouble}`, exitCodes.unavailable)]
    const facts = Object.entries(store.facts).map(([fact, value]) => `${fact} ${value}`)
    const detail = [`${where} is ready`, ...facts].join(', ')
    if (!degraded) return [{ name, ok: true, detail }, ...warnings]
    const lines = [`${where} runs degraded`, ...problems.map((problem) => problem.detail)]
    return [buildFailure(name, lines.join('\n'), exitCodes.broken), ...warnings]
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return [buildFailure(name, error.message, exitCodes[error.kind])]
  }
}

function buildStoppedFinding(name: string, killed: number | undefined): CheckFinding {
  if (killed === undefined) return { name, ok: true, detail: 'not running' }
  const detail = `not running: process ${killed} ended without a stop. The runs that it began continue at the next start.`
  return { name, ok: false, severity: 'warning', detail }
}

function describeFullSlots(most: number, since: string): string {
  const slots = most === 1 ? 'The only slot of the gateway has' : `All ${most} slots of the gateway have`
  const next = '"hookloom show <run id>" shows how long a turn may still run. A higher number runs more at a time.'
  return `${slots} been full since ${formatTime(Date.parse(since))} (agents.defaults.maxConcurrent is ${most}), so further runs wait. ${next}`
}

/** The finding for an answer of /readyz without details. */
function buildReadinessFinding(
  where: string,
  { ok, degraded, configuration, modules }: z.infer<typeof Outline>,
): CheckFinding {
  const name = 'gateway'
  if (!ok) return buildFailure(name, `${where}: the store cannot take deliveries`, exitCodes.unavailable)
  if (!degraded) return { name, ok: true, detail: `${where} is ready` }
  const more = 'Its log shows why. If gateway.token is set, this command shows it too.'
  return buildFailure(
    name,
    `${where} is running, but degraded. The saved configuration is ${configuration}. Modules with a problem: ${modules}. ${more}`,
    exitCodes.broken,
  )
}
