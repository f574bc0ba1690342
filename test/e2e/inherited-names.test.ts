// Hooks whose names are inherited properties of every JavaScript object.
import { describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeConfigDir, post } from './gateway.ts'
import { startInside } from './inside.ts'

const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty']
const hooks = {
  mappings: names.map((name) => ({ id: `m-${name}`, match: { path: name }, messageTemplate: 'Heard {{text}}' })),
}

describe('a hook with the name of an inherited property', () => {
  test('check finds no error in its mapping', async () => {
    const { code, stderr } = await runCommand(['check'], { dir: makeConfigDir({ config: { hooks } }) })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  test.each(names)('its requests are accepted, and have samples and types: %s', async (name) => {
    const gateway = await startInside({ config: { hooks: { ...hooks, retain: 10 } } })
    expect(await post({ url: gateway.url, token: hookToken }, name, { text: 'x' })).toMatchObject({ ok: true })
    const answer = await fetch(`${gateway.adminUrl}/api/samples?hook=${name}`, {
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ samples: [{ kind: 'kept' }] })
    const { code, stdout, stderr } = await runCommand(['types', name], { dir: gateway.dir })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(name)
  })
})
