// Each delivery keeps the hash of the code that ran it: a delivery that ran after a fix has the new hash, and earlier ones keep theirs.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { runCommand } from './command.ts'
import { type Gateway, startGateway } from './gateway.ts'

const module = 'hooks/transforms/work.ts'
const buildVersion = (name: string, isBroken: string) => `export default ({ payload }) => {
  if (${isBroken}) throw new Error('not this one')
  return { text: '${name} ' + payload.n }
}
`
const Shown = z.looseObject({ state: z.string(), generation: z.string(), transformHash: z.string() })

test(
  'a delivery shows the version of the code that ran it, which is the newest version if the delivery had to wait',
  { timeout: 120_000 },
  async () => {
    const gateway = await startGateway({
      config: {
        hooks: {
          mappings: [
            {
              match: { path: 'work' },
              action: 'wake',
              wakeMode: 'next-heartbeat',
              transform: { module: 'work.ts' },
            },
          ],
        },
      },
      files: { [module]: buildVersion('first', 'payload.n === 2') },
    })
    const [early, parked] = [await post(gateway, 1), await post(gateway, 2)]
    const first = await show(gateway, early)
    expect(await show(gateway, parked)).toMatchObject({ state: 'parked', transformHash: first.transformHash })

    writeFileSync(join(gateway.dir, module), buildVersion('second', 'false'))
    await vi.waitFor(async () => expect(await show(gateway, parked)).toMatchObject({ state: 'accepted' }), 60_000)
    const late = await show(gateway, await post(gateway, 3))
    expect(late.transformHash).not.toBe(first.transformHash)
    expect(late.generation).not.toBe(first.generation)
    const { generation, transformHash } = late
    expect(await show(gateway, parked)).toMatchObject({ generation, transformHash })
    expect(await show(gateway, early)).toEqual(first)
  },
)

async function post({ url, token }: Gateway, n: number): Promise<string> {
  const response = await fetch(`${url}/work`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ n }),
  })
  return z.looseObject({ deliveryId: z.string() }).parse(await response.json()).deliveryId
}

async function show({ dir }: Gateway, id: string): Promise<z.infer<typeof Shown>> {
  const [shown] = (await runCommand(['show', id, '--json'], { dir })).json()
  return Shown.parse(shown)
}
