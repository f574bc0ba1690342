// The page and its list with a store of a hundred thousand deliveries, while two hundred more arrive each second. Prints what it measured.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { hasBrowser, mappings, show, startStage, transform } from '../browser/stage.ts'
import { newDelivery, newJob } from '../contract/stage.ts'
import { makeConfigDir } from '../e2e/gateway.ts'

const stored = 100_000
const perSecond = 200
const seconds = 15
/** The number of parts of a second. In each, some deliveries and one request for the list are sent. */
const ticks = 20
const queries = [
  'limit=100',
  'hook=plain',
  'state=parked',
  'q=nothing-has-this',
  'source=github&q=push',
  'until=2020-01-01T00:00:00.000Z',
]
const mebibyte = 1024 * 1024

test.skipIf(!hasBrowser)(
  'with a hundred thousand deliveries, the page finds the oldest one, shows the newest one, and uses less than 150 MiB',
  { timeout: 600_000 },
  async () => {
    const dir = makeConfigDir({ config: { hooks: { mappings } } })
    await storeDeliveries(join(dir, 'state/hookloom.db'))
    const stage = await startStage({ dir, files: { 'hooks/transforms/review.ts': transform } })
    try {
      const page = await stage.open()
      const client = await stage.browser.newBrowserCDPSession()
      const asked = new Map<string, number[]>(queries.map((query) => [query, []]))
      for (let tick = 0; tick < seconds * ticks; tick += 1) {
        const end = performance.now() + 1_000 / ticks
        const sent = Array.from({ length: perSecond / ticks }, (_, n) => stage.post('plain', { text: `${tick} ${n}` }))
        const query = queries[tick % queries.length] ?? ''
        const began = performance.now()
        await stage.ask(`/api/deliveries?${query}`)
        asked.get(query)?.push(performance.now() - began)
        await Promise.all(sent)
        await new Promise((done) => setTimeout(done, Math.max(0, end - performance.now())))
      }
      // the same requests again, without deliveries; processor time, because other programs of the machine do not change it
      const alone = new Map<string, number[]>(queries.map((query) => [query, []]))
      for (let n = 0; n < 20 * queries.length; n += 1) {
        const query = queries[n % queries.length] ?? ''
        const began = process.cpuUsage()
        await stage.ask(`/api/deliveries?${query}`)
        const { user, system } = process.cpuUsage(began)
        alone.get(query)?.push((user + system) / 1_000)
      }
      await show(page, 'q=the-oldest')
      await searchUntil(page, page.locator('.row .hook', { hasText: 'the-oldest' }))
      await show(page, 'q=nothing-has-this')
      await searchUntil(page, page.getByText('Nothing matches these filters.'))
      await show(page, '')
      const newest = await stage.post('plain', { text: 'the last one' })
      await page.locator(`#row-${newest}`).waitFor({ timeout: 60_000 })
      const { processInfo } = await client.send('SystemInfo.getProcessInfo')
      const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => readPrivateBytes(id))
      const heap = await page.evaluate<number>('performance.memory.usedJSHeapSize')
      console.log({
        lists: Object.fromEntries([...asked].map(([query, took]) => [query, formatPercentiles(took)])),
        processorTime: Object.fromEntries([...alone].map(([query, took]) => [query, formatPercentiles(took)])),
        rowsInDocument: await page.locator('.row').count(),
        heap: `${Math.round(heap / mebibyte)} MiB`,
        renderers: renderers.map((bytes) => `${Math.round(bytes / mebibyte)} MiB`).join(', '),
      })
      expect(Math.max(...renderers)).toBeLessThan(150 * mebibyte)
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  },
)

/** Waits until a search has found the element. A search reads the store in steps. After two seconds, it continues only after a click. */
async function searchUntil(page: Page, found: Locator): Promise<void> {
  const further = page.getByRole('button', { name: 'search further' })
  const end = Date.now() + 120_000
  while (!(await found.isVisible()) && Date.now() < end) {
    // the button disappears when the search has ended
    await further.click({ timeout: 1_000 }).catch(() => undefined)
  }
  await found.waitFor({ timeout: 60_000 })
}

async function storeDeliveries(file: string): Promise<void> {
  const store = createSqliteStore({ file, clock: Date.now })
  const hooks = ['github', 'stripe', 'deploy']
  await store.append(newDelivery({ at: Date.now(), hook: 'the-oldest' }))
  for (let n = 0; n < stored; n += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, at) =>
      store.append(newDelivery({ at: Date.now(), hook: hooks[at % 3] ?? '', jobs: [newJob({ state: 'done' })] })),
    )
    await Promise.all(batch)
  }
  await store.close()
}

/** The private memory of a process: without the libraries that all processes of the browser share. */
function readPrivateBytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kibibytes = [...rollup.matchAll(/^Private_(?:Clean|Dirty): +(\d+) kB/gm)].map(([, size]) => Number(size))
  return kibibytes.reduce((sum, size) => sum + size, 0) * 1_024
}

function formatPercentiles(took: readonly number[]): string {
  const sorted = took.toSorted((one, other) => one - other)
  const computePercentile = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return `p50 ${computePercentile(0.5)} ms, p95 ${computePercentile(0.95)} ms, of ${took.length}`
}
