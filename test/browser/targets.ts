// Measures what a finger must hit: https://www.w3.org/TR/WCAG22/#target-size-minimum
import type { Page } from 'playwright-core'

/** A link between words is as high as its line. A field in a label has the size of its label. */
const measure = `(() => {
  const isInText = (target) => {
    if (getComputedStyle(target).display !== 'inline') return false
    const around = target.closest('p, li, h2, h3, td, dd, figcaption, label') ?? target.parentElement
    const copy = around.cloneNode(true)
    for (const each of copy.querySelectorAll('a, button')) each.remove()
    return /\\p{L}{2}/u.test(copy.textContent)
  }
  const targets = 'a[href], button, input, select, textarea, summary, [tabindex="0"], .row:not(.heads) .outcome, .row .fold'
  return [...document.querySelectorAll(targets)].flatMap((target) => {
    const box = (target.closest('label') ?? target).getBoundingClientRect()
    const isSeen = target.checkVisibility({ visibilityProperty: true }) && box.width > 1 && !target.closest('.sr')
    const isSmall = Math.round(box.height * 10) < 240 || Math.round(box.width * 10) < 240
    if (!isSeen || !isSmall || isInText(target)) return []
    return [target.localName + '.' + target.className + ' "' + target.textContent.trim().slice(0, 30) + '" ' + box.width + ' x ' + box.height]
  })
})()`

/** The targets that are lower or narrower than 24 px. */
export const findSmallTargets = (page: Page): Promise<string[]> => page.evaluate<string[]>(measure)
