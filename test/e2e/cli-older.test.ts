import { beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { type Gateway, hookToken, post, startGateway } from './gateway.ts'

const config = {
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: { mappings: [{ match: { path: 'parts' }, action: 'wake', forEach: 'parts', textTemplate: '{{parts[0]}}' }] },
}

describe('older rows of a list on the command line', () => {
  let gateway: Gateway
  let ids: string[]

  beforeAll(async () => {
    gateway = await startGateway({ config })
    const posted = [await post(gateway, 'parts', { parts: ['a', 'b', 'c'] })]
    for (const text of ['d', 'e', 'f']) posted.push(await post(gateway, 'wake', { text }))
    ids = posted.map(({ deliveryId }) => String(deliveryId))
  })

  const read = async (...args: string[]) => {
    const ran = await runCommand([...args, '--json'], { dir: gateway.dir })
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    return ran.json()
  }
  /** Reads all rows page by page. `field` of the oldest row of a page says where the next page begins. */
  async function readAll(command: string[], field: string): Promise<Record<string, unknown>[]> {
    const all: Record<string, unknown>[] = []
    for (let page = await read(...command); page.length > 0;) {
      all.unshift(...page)
      page = await read(...command, '--before', String(page[0]?.[field]))
    }
    return all
  }

  test('hookloom list --before with the id of the oldest delivery shown lists the older ones', async () => {
    const all = await readAll(['list', '--limit', '3'], 'deliveryId')
    expect(all.map(({ deliveryId }) => deliveryId)).toEqual(ids)
  })

  test('hookloom events --before with the time of the oldest event shown lists the older ones, and no event of the same moment is left out', async () => {
    const all = await readAll(['events', '--limit', '2'], 'at')
    expect(all.map(({ text }) => text)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  test('hookloom list --refused --before with the id of the oldest refusal shown lists the older ones', async () => {
    for (const path of ['one', 'two', 'three']) {
      await fetch(`${gateway.url}/${path}`, {
        method: 'POST',
        body: '{}',
        headers: { authorization: `Bearer ${hookToken}` },
      })
    }
    const all = await readAll(['list', '--refused', '--limit', '2'], 'requestId')
    expect(all.map(({ hook }) => hook)).toEqual(['one', 'two', 'three'])
    const { stdout } = await runCommand(['list', '--refused', '--hook', 'one', '--limit', '1'], { dir: gateway.dir })
    expect(stdout).toContain('list --refused --hook one --limit 1 --before ')
  })

  test('the command for older rows is printed only under a table that the limit cut off', async () => {
    const { stdout } = await runCommand(['list', '--state', 'accepted', '--limit', '3'], { dir: gateway.dir })
    expect(stdout).toContain(`list --state accepted --limit 3 --before ${ids[1]} --config-dir ${gateway.dir}`)
    expect((await runCommand(['events', '--limit', '3'], { dir: gateway.dir })).stdout).toMatch(
      /events --limit 3 --before \d{4}-\d\d-\d\dT[\d:.]+Z/,
    )
    expect((await runCommand(['list'], { dir: gateway.dir })).stdout).not.toContain('Older:')
  })

  test('--before the oldest row lists nothing, and --before an unknown id is an error', async () => {
    const none = await runCommand(['list', '--before', String(ids[0])], { dir: gateway.dir })
    expect(none).toMatchObject({ code: 0, stdout: 'No delivery is older.\n' })
    for (const args of [['list'], ['list', '--dead'], ['list', '--refused']]) {
      const ran = await runCommand([...args, '--before', 'nobody'], { dir: gateway.dir })
      expect({ args, code: ran.code, stderr: ran.stderr }).toEqual({
        args,
        code: 65,
        stderr: expect.stringContaining('has the id "nobody"'),
      })
    }
    for (const args of [
      ['events', '--before', 'yesterday'],
      ['sessions', 'main', '--before', '2026-01-02'],
    ]) {
      expect(await runCommand(args, { dir: gateway.dir })).toMatchObject({ code: 64 })
    }
  })
})
