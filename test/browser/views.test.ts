// All views of the page: without a finding of axe-core in both colours, and with targets that a finger can hit.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findBarriers, hasBrowser, shoot } from './stage.ts'
import { findSmallTargets } from './targets.ts'
import { showView, startViews, type Views } from './views.ts'

describe.skipIf(!hasBrowser)('all views of the page in Chromium', () => {
  let all: Views
  beforeAll(async () => {
    all = await startViews()
  }, 120_000)
  afterAll(() => all.stage.close())

  for (const [width, colorScheme] of [
    [360, 'dark'],
    [1_200, 'light'],
  ] as const) {
    test(
      `axe-core has no finding, and each target is at least 24 px high and wide, at ${width} px in ${colorScheme} colours`,
      { timeout: 240_000 },
      async () => {
        const page = await all.stage.open({ width, height: 800, colorScheme })
        const found: Record<string, string[]> = {}
        for (const name of Object.keys(all.views)) {
          await showView(page, all, name)
          const findings = [...(await findBarriers(page)), ...(await findSmallTargets(page))]
          if (findings.length > 0) found[name] = [...new Set(findings)]
          expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
          await shoot(page, `view-${width}-${name}`)
        }
        expect(found).toEqual({})
        await page.context().close()
      },
    )
  }

  test('on a phone the rows of tables are as high as their text, and their cells begin at the same height', async () => {
    const page = await all.stage.open({ width: 390, height: 800 })
    for (const name of ['health', 'costs']) {
      await showView(page, all, name)
      const rows = await page.locator('tbody tr').evaluateAll((each) =>
        each.map((row) => {
          const texts = [...row.children].flatMap((cell) => {
            const range = row.ownerDocument.createRange()
            range.selectNodeContents(cell)
            const { top, height } = range.getBoundingClientRect()
            return height === 0 ? [] : [{ top, height }]
          })
          const tops = texts.map(({ top }) => top)
          return {
            text: row.textContent,
            spare: row.getBoundingClientRect().height - Math.max(...texts.map(({ height }) => height)),
            uneven: Math.max(...tops) - Math.min(...tops),
          }
        }),
      )
      expect(rows.length).toBeGreaterThan(0)
      expect(rows.filter(({ spare, uneven }) => spare > 24 || uneven > 5)).toEqual([])
    }
    await page.context().close()
  })

  test('on a phone the result of the bench is in sight of its box', async () => {
    const page = await all.stage.open({ width: 360, height: 740 })
    await showView(page, all, 'bench')
    const box = page.locator('.draft textarea')
    await box.scrollIntoViewIfNeeded()
    await box.focus()
    const result = await page.locator('.result .decision').boundingBox()
    expect((result?.y ?? 9_999) + (result?.height ?? 0)).toBeLessThanOrEqual(740)
    await shoot(page, 'view-360-bench-typed')
    await page.context().close()
  })

  test('the pages wrote no error to the console', () => {
    expect(all.stage.errors).toEqual([])
  })
})
