// The list of sessions says what each was about last, how long it is and when; the events of the main session are texts that a person can read.
import { expect, test } from 'vitest'
import { describeFilled } from './filled.ts'
import { findBarriers, mappings, shoot, show, startStage, transform } from './stage.ts'

const wait = { timeout: 60_000 }
const files = { 'hooks/transforms/review.ts': transform }
const reply = 'The **door** is open.\\n\\n- for Ada\\n- for Grace'
const config = {
  runners: { say: { kind: 'command', command: 'sh', args: ['-c', `cat > /dev/null; printf '${reply}'`] } },
  agents: { list: [{ id: 'main', default: true, runner: 'say', workspace: '.' }] },

  hooks: {
    mappings: [...mappings, { id: 'event', match: { path: 'event' }, action: 'wake', wakeMode: 'next-heartbeat' }],
  },
}

describeFilled('the sessions', (fill) => {
  test('a session shows its last line, its turns and its age, and an event of main its subject before its text', async () => {
    const { dir } = await fill({ config })
    const stage = await startStage({ dir, files })
    try {
      for (const text of ['first', 'second', 'third']) await stage.post('plain', { text })
      await stage.post('event', { issue: { number: 3, title: 'Door <b>is</b> shut' }, action: 'opened' })
      const page = await stage.open({ hash: 'view=sessions' })
      const session = (key: string) => page.locator('.session', { hasText: key })
      await session('hook:plain').getByText('3 turns').waitFor(wait)
      expect(await session('hook:plain').locator('.last-line').innerText()).toBe('The door is open.')
      expect(await session('hook:plain').locator('time').innerText()).toMatch(/^\d+ (s|min)$/)
      expect(await findBarriers(page)).toEqual([])
      await show(page, 'view=sessions&session=main/main')
      const event = page.locator('.event-line', { hasText: 'waits for the next turn' }).filter({ hasText: 'Door' })
      await event.getByText('Issue #3 opened: Door is shut').waitFor(wait)
      await event.getByText('the whole event').click()
      await event.locator('.tree').getByText('"opened"').waitFor(wait)
      const ended = page.locator('.event-line', { hasText: 'Hook plain: The door is open.' }).first()
      await ended.getByText('the whole reply').click()
      expect(await ended.locator('.markdown li, li').allInnerTexts()).toEqual(['for Ada', 'for Grace'])
      expect(await findBarriers(page)).toEqual([])
      await shoot(page, 'sessions-main')
      expect(stage.errors).toEqual([])
    } finally {
      await stage.close()
    }
  })
})
