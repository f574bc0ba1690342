// The preset for mails by IMAP makes of a mail what the one for Gmail makes.
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import gmail from '../../../presets/gmail/preset.ts'
import imap from '../../../presets/imap/preset.ts'
import { toJsonBody } from '../../../src/core/model/body.ts'
import { Mapping } from '../../../src/core/model/mapping.ts'
import { builtInSenders } from '../../../src/gateway/built-in.ts'
import { ConfigSchema } from '../../../src/gateway/config/keys.ts'
import { createGeneration } from '../../../src/gateway/generation/generation.ts'
import { decideOn } from '../core/mapping/decide.ts'

const folder = new URL('../../../presets/imap/fixtures/', import.meta.url)

test.each(readdirSync(folder))('the fixture %s of the preset imap passes', async (file) => {
  const { request, expect: wanted } = JSON.parse(readFileSync(new URL(file, folder), 'utf8'))
  const { mappings, maxBodyBytes } = imap.build(imap.options.parse({}))
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({ hooks: { allowedSessionKeyPrefixes: ['hook:'] } }),
    mappings: mappings.map((mapping) => ({ ...Mapping.parse(mapping), id: 'imap', maxBodyBytes })),
    transforms: new Map(),
  })
  const { path, headers, payload } = request
  const sender = builtInSenders.recognise({ headers, namedSource: 'imap' })
  const decision = await decideOn(generation, {
    id: 'd-1',
    receivedAt: 0,
    method: 'POST',
    url: '/hooks/imap',
    path,
    headers,
    query: {},
    body: toJsonBody(payload),
    source: 'imap',
    sender,
    event: undefined,
    verifiedBy: undefined,
    admitted: { token: true, signedFor: [] },
  })
  expect(decision.kind).toBe(wanted.decision)
  const actions = decision.kind === 'accept' ? decision.actions.map(({ action }) => action) : []
  expect(actions).toMatchObject(wanted.actions)
})

test('its mapping is the one of gmail with another name', () => {
  const [one] = imap.build(imap.options.parse({})).mappings
  const [other] = gmail.build(gmail.options.parse({})).mappings
  expect(one).toEqual({
    ...other,
    id: 'imap',
    name: 'IMAP',
    match: { path: 'imap' },
    sessionKey: 'hook:imap:{{messages[0].id}}',
  })
})
