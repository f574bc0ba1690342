// One browser and one gateway for all tests of the page: Debian's Chromium, headless, driven by playwright-core.
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type ConsoleMessage, type Page } from 'playwright-core'
import { gatewayToken, hookToken } from '../e2e/gateway.ts'
import { type Inside, startInside } from '../e2e/inside.ts'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const executablePath = process.env['CHROMIUM'] ?? places.find((place) => existsSync(place))

/** Whether there is a browser. The tests are skipped without one. */
export const hasBrowser = executablePath !== undefined

const folder = resolve(import.meta.dirname, '../../.screenshots')

export const mappings = [
  { id: 'review', match: { path: 'review' }, transform: { module: 'review.ts' }, deliver: false, retain: true },
  { id: 'skips', match: { path: 'plain', payload: { skip: true } }, messageTemplate: 'never', deliver: false },
  {
    id: 'plain',
    match: { path: 'plain' },
    messageTemplate: 'Say {{text}}',
    sessionKey: 'hook:plain',
    deliver: false,
    retain: true,
  },
]

export const transform = `export default ({ payload }, { log }) => {
  log('seen ' + payload.title)
  if (payload.bad) throw new Error('no reviewer for this')
  if (payload.skip) return null
  return { message: 'Review ' + payload.title, sessionKey: 'hook:review' }
}`

export type Stage = {
  readonly gateway: Inside
  readonly browser: Browser
  /** The errors that pages wrote to the console, and their uncaught exceptions. */
  readonly errors: string[]
  /** Posts JSON to a hook. Returns the id of the delivery. */
  post(hook: string, payload: unknown, others?: Readonly<Record<string, string>>): Promise<string>
  ask(path: string, method?: 'GET' | 'POST'): Promise<Record<string, unknown>>
  /** Opens a page with a new key. `hash`: the state of the page. */
  open(options?: Omit<PageOptions, 'errors'> & { hash?: string }): Promise<Page>
  close(): Promise<void>
}

export const usual = {
  config: { server: { maxBodyBytes: 8_000_000 }, hooks: { mappings } },
  files: { 'hooks/transforms/review.ts': transform },
}

/** `args`: further options of Chromium. */
export function startBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    // the tests may run as root, for which Chromium has no sandbox
    args: ['--no-sandbox', '--disable-gpu', '--disable-smooth-scrolling', ...args],
  })
}

/** The model `mine/opus` with a price, behind an address where nothing answers. */
export const pricedModels = {
  providers: {
    mine: {
      kind: 'openai-compatible',
      baseUrl: 'http://127.0.0.1:9/v1',
      models: [{ id: 'opus', cost: { input: 1, output: 10 } }],
    },
  },
} as const

type PageOptions = {
  width?: number
  height?: number
  colorScheme?: 'light' | 'dark'
  timezoneId?: string
  /** Gets everything that the page writes to its console as an error, and each exception. */
  readonly errors: string[]
}

/** A page of a gateway with a fresh key. */
export async function openPage(
  browser: Browser,
  gateway: { readonly adminUrl: string; readonly gatewayToken: string },
  { width = 1440, height = 900, colorScheme = 'light', timezoneId = 'UTC', errors }: PageOptions,
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    timezoneId,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  page.on('console', (message) => void (isFault(message) && errors.push(`${message.text()} ${message.location().url}`)))
  page.on('pageerror', (error) => void errors.push(String(error)))
  const headers = { authorization: `Bearer ${gateway.gatewayToken}` }
  const answer = await fetch(`${gateway.adminUrl}/api/page/code`, { method: 'POST', headers })
  const { code } = (await answer.json()) as { code: string }
  await page.goto(`${gateway.adminUrl}/#k=${code}`)
  await page.getByRole('navigation', { name: 'Views' }).waitFor()
  return page
}

/** `given`: another configuration with its files, or a config directory that already has a store. `shared`: a browser that already runs. */
export async function startStage(given: Parameters<typeof startInside>[0] = usual, shared?: Browser): Promise<Stage> {
  const gateway = await startInside(given)
  const browser = shared ?? (await startBrowser())
  const errors: string[] = []
  const contexts: BrowserContext[] = []

  async function ask(path: string, method: 'GET' | 'POST' = 'GET'): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${gatewayToken}` }
    return (await (await fetch(`${gateway.adminUrl}${path}`, { method, headers })).json()) as Record<string, unknown>
  }

  return {
    gateway,
    browser,
    errors,
    ask,
    async post(hook, payload, others = {}) {
      const answer = await fetch(`${gateway.url}/${hook}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', ...others },
        body: typeof payload === 'string' ? payload : JSON.stringify(payload),
      })
      const text = await answer.text()
      return text === '' ? '' : String((JSON.parse(text) as Record<string, unknown>)['deliveryId'])
    },
    async open({ hash = '', ...options } = {}) {
      const page = await openPage(browser, { adminUrl: gateway.adminUrl, gatewayToken }, { ...options, errors })
      contexts.push(page.context())
      if (hash !== '') await show(page, hash)
      return page
    },
    async close() {
      for (const context of contexts) await context.close()
      if (shared === undefined) await browser.close()
    },
  }
}

/**
 * Whether a console message is a fault. A 409 is none: a request can be dropped between the two calls that read a delivery. The fake clock of a page
 * begins in 1970 for a moment, so what the page asks about that time is none either.
 */
function isFault(message: ConsoleMessage): boolean {
  const isOfFakeClock = message.location().url.includes('since=1970-')
  return message.type() === 'error' && !message.text().includes('status of 409') && !isOfFakeClock
}

/** Changes the state of the page. */
export async function show(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
}

/** Opens a tab of the opened delivery. The page opens the same tab for the next delivery. */
export async function openTab(page: Page, name: 'Trace' | 'Request' | 'Prompt and reply' | 'Answer'): Promise<void> {
  // a wide window shows the request beside the other parts
  const isBeside = name === 'Request' && (await page.evaluate<boolean>("matchMedia('(min-width: 2400px)').matches"))
  if (!isBeside) await page.getByRole('tab', { name }).click()
}

export async function shoot(page: Page, name: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) })
}

/** The findings of axe-core. The driver evaluates the script, because the page's policy forbids inline scripts. */
export async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>('axe.run()')
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
}
