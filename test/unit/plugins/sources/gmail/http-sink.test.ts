// Mails over HTTP: which refusals concern one mail, and when the position stays.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createHttpSink } from '../../../../../src/plugins/sources/gmail/http-sink.ts'
import type { GmailPayload } from '../../../../../src/plugins/sources/gmail/mail.ts'
import { type Loopback, startLoopback } from '../../../../e2e/fakes/loopback.ts'

const account = 'desk@example.org'
const place = { historyId: '20', syncedAt: 5 }
let dir: string
let gateway: Loopback

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'hookloom-sink-'))
  gateway = await startLoopback(() => ({ status: 200, body: { ok: true } }))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

const toPayload = (id: string) => ({ source: 'gmail', account, historyId: '20', messages: [{ id }] }) as unknown as GmailPayload // prettier-ignore
const findFile = () => join(dir, 'state', 'cursor.json')
const createSink = () => createHttpSink({ account, hooks: () => ({ url: gateway.url, token: 't' }), file: findFile() })
const listKeys = () => gateway.received.map(({ headers }) => headers['idempotency-key'])

describe('mails over HTTP', () => {
  test.each([400, 413, 422])(
    'a mail that is refused with %i delays no other mail, and the position does not move',
    async (status) => {
      gateway.planAnswers({ status })
      await expect(createSink().deliver(['a', 'b'].map(toPayload), place)).rejects.toThrow(String(status))
      expect(listKeys()).toEqual([`gmail:${account}:a`, `gmail:${account}:b`])
      expect(existsSync(findFile())).toBe(false)
      await createSink().deliver(['a', 'b'].map(toPayload), place)
      expect(await createSink().state()).toEqual(place)
    },
  )

  test.each([401, 404, 429, 503])('a gateway that answers %i gets no further mail', async (status) => {
    gateway.planAnswers({ status })
    await expect(createSink().deliver(['a', 'b'].map(toPayload), place)).rejects.toThrow(String(status))
    expect(listKeys()).toEqual([`gmail:${account}:a`])
  })

  test('if a gateway fails after it has refused a mail, the failure of the gateway is reported, and not the refusal', async () => {
    gateway.planAnswers({ status: 400 }, { status: 503 })
    const delivering = createSink().deliver(['a', 'b', 'c'].map(toPayload), place)
    await expect(delivering).rejects.toMatchObject({ code: 'gateway-unreachable' })
    expect(listKeys()).toEqual([`gmail:${account}:a`, `gmail:${account}:b`])
  })

  test('a position that cannot be read is an error, because a new position would skip mails', async () => {
    expect(await createSink().state()).toBeUndefined()
    mkdirSync(findFile(), { recursive: true })
    await expect(createSink().state()).rejects.toMatchObject({ code: 'config-invalid' })
  })
})
