// Pictures of every view of the page: empty, broken and full, in four widths, light and dark. They stay in a temporary folder, to be looked at.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findBarriers, hasBrowser, show, type Stage, startStage, transform, usual } from '../browser/stage.ts'
import { writeFiles } from '../e2e/gateway.ts'

const wait = { timeout: 60_000 }
const widths = [360, 860, 1_200, 2_560]
const themes = ['light', 'dark'] as const
const folder = mkdtempSync(join(tmpdir(), 'hookloom-screens-'))

/** The view, and what is on it when it is drawn. */
const views: readonly (readonly [name: string, hash: string, drawn: string])[] = [
  ['list', '', '.list'],
  ['attention', 'state=attention', '.causes'],
  ['hooks', 'view=hooks', '.hook-card'],
  ['bench', 'view=hooks&bench=review', '#decision'],
  ['replay', 'view=replay', '.report[aria-busy=false]'],
  ['sessions', 'view=sessions', '.sessions'],
  ['health', 'view=health', '.plots'],
]

describe.skipIf(!hasBrowser)('pictures of the page', { timeout: 300_000 }, () => {
  let full: Stage
  let empty: Stage
  const ids = { done: '', parked: '' }

  beforeAll(async () => {
    full = await startStage({ ...usual, development: true })
    empty = await startStage({ config: {}, development: true }, full.browser)
    for (let n = 0; n < 40; n++) await full.post('plain', { text: `order ${n} has arrived in Rotterdam` })
    ids.done = await full.post('review', { title: 'Fix the login', pull: { number: 7, labels: ['bug', 'ui'] } })
    ids.parked = await full.post('review', { title: 'x', bad: true })
    await full.post('wake', { text: 'The backup of db-1 is three days old.' })
    await full.post('nobody', { text: 'lost' })
    await fetch(`${full.gateway.url}/plain`, { method: 'POST' })
  })
  afterAll(async () => {
    await empty.close()
    await full.close()
    process.stdout.write(`The pictures are in ${folder}.\n`)
  })

  /** Draws a view, and returns what is wrong with it: barriers of axe, and text that is wider than the window. */
  async function draw(page: Page, [name, hash, drawn]: (typeof views)[number], picture: string): Promise<string[]> {
    await show(page, hash)
    await page.locator(drawn).first().waitFor(wait)
    await page.evaluate('document.fonts.ready')
    await page.screenshot({ path: join(folder, `${picture}.png`) })
    const excess = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    // the layouts differ by width in what scrolls only, and axe takes most of the time
    const barriers = /-(360|1200)-/.test(picture) ? await findBarriers(page) : []
    return [...barriers, ...(excess > 0 ? [`${excess} px too wide`] : [])].map(
      (fault) => `${name} ${picture}: ${fault}`,
    )
  }

  async function drawAll(stage: Stage, state: string, all: typeof views): Promise<string[]> {
    const faults: string[] = []
    for (const colorScheme of themes) {
      const page = await stage.open({ colorScheme })
      for (const width of widths) {
        await page.setViewportSize({ width, height: width === 360 ? 740 : 900 })
        for (const view of all) faults.push(...(await draw(page, view, `${state}-${view[0]}-${width}-${colorScheme}`)))
      }
      await page.context().close()
    }
    return faults
  }

  test('no view of a busy gateway has an accessibility violation or is wider than its window', async () => {
    const details: typeof views = [
      ['done', `id=${ids.done}`, '#detail .pipe'],
      ['parked', `id=${ids.parked}`, '#detail .problem'],
      ['session', 'view=sessions&session=main%2Fhook%3Areview', '.message'],
    ]
    expect(await drawAll(full, 'full', [...views, ...details])).toEqual([])
  })

  test('no view of a new gateway has an accessibility violation or is wider than its window', async () => {
    const ofNew = views.map(
      ([name, hash, drawn]) => [name, hash.replace('bench=review', 'bench=agent'), drawn] as const,
    )
    expect(await drawAll(empty, 'empty', ofNew)).toEqual([])
  })

  test('no view of a gateway whose save does not build has a barrier or is wider than its window', async () => {
    writeFiles(full.gateway.dir, { 'hooks/transforms/review.ts': `${transform}\n}}}` })
    await expect.poll(async () => (await full.ask('/api/health'))['degraded'], wait).toBe(true)
    const broken = views.filter(([name]) => ['bench', 'replay', 'health', 'hooks'].includes(name))
    expect(await drawAll(full, 'broken', broken)).toEqual([])
  })
})
