// Real payloads of many senders: HOOKLOOM_CORPUS names a folder with one folder of {source, event, headers, body} for each sender.
import { toJsonBody } from '../../src/core/model/body.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEvent } from '../../src/core/mapping/sources.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const { recognise: recogniseSender } = builtInSenders

const corpus = process.env['HOOKLOOM_CORPUS'] ?? ''

/** Names of folders that are not the name of their source. */
const sourceOfFolder: Record<string, string> = {
  azuredevops: 'azure-devops',
  'gmail-pubsub': 'google-pubsub',
  'google-cloudevents': 'cloudevents',
  paddleclassic: 'paddle',
}

/** Headers that any HTTP client sends, so they identify no sender. */
const anonymous = new Set(['accept', 'accept-language', 'authorization', 'content-type', 'sec-fetch-mode'])
const anonymousAgent = /^(node|node-fetch|axios|Go-http-client|python-requests|curl)\b/

const Captured = z.object({ headers: z.record(z.string(), z.string()), body: z.json() })

function listFolders(): string[] {
  if (corpus === '') return []
  return readdirSync(corpus, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []))
}

function readCaptures(folder: string) {
  const names = readdirSync(join(corpus, folder)).filter((name) => name.endsWith('.json'))
  return names.map((name) => ({
    name,
    ...Captured.parse(JSON.parse(readFileSync(join(corpus, folder, name), 'utf8'))),
  }))
}

function isIdentified(headers: Record<string, string>): boolean {
  return Object.entries(headers).some(([name, value]) =>
    name === 'user-agent' ? !anonymousAgent.test(value) : !anonymous.has(name),
  )
}

describe.skipIf(corpus === '')('a corpus of real payloads (skipped when HOOKLOOM_CORPUS names no folder)', () => {
  test('the corpus has requests with known and with unknown senders', () => {
    const all = listFolders().flatMap((folder) => readCaptures(folder).map(({ headers }) => isIdentified(headers)))
    expect(new Set(all)).toEqual(new Set([true, false]))
  })

  test.each(listFolders())('the headers of %s show the sender, or no sender if they do not identify one', (folder) => {
    for (const { name, headers, body } of readCaptures(folder)) {
      const sender = recogniseSender({ headers })
      const expected = isIdentified(headers) ? (sourceOfFolder[folder] ?? folder) : undefined
      expect([name, sender?.facts.name]).toEqual([name, expected])
      const event = sender && readEvent(sender, { headers, body: toJsonBody(body) })
      expect(event === undefined || event.length > 0).toBe(true)
    }
  })
})
