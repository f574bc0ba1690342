// Where a search found its text, if no cell of the row shows it.
import type { DeliveryRow } from '../../../model/api/answers.ts'
import type { DeliveryRecord } from '../../../store/records.ts'
import type { Store } from '../../../store/store.ts'
import { searchedBytes } from '../../../store/queries.ts'
import { cutFrom } from '../../../base/text.ts'
import { replaceTokens } from '../../../base/token-forms.ts'
import { readActionText } from '../../deliveries/records.ts'

type Hit = NonNullable<DeliveryRow['found']>
type HitStore = Pick<Store, 'request' | 'messages'>

/** The characters that are shown before the text that was found. */
const leadChars = 24
/** The characters that are shown in all. */
const maxChars = 120
/** The maximum number of messages of a run, and how long replies and payloads are read for one page. */
const maxMessages = 50
const maxReadMs = 80

/** The name of the field whose value was found. A longer text is not searched: the time grows with the square of its white space. */
const fieldBefore = /"([^"\\]{1,60})"\s*:\s*(?:\[\s*)?"?[^"]*$/
const maxBefore = 500

/** The rows with the place of the text, in the order of the records. Those whose texts take too long to read have none. */
export async function addHits(
  rows: readonly DeliveryRow[],
  records: readonly DeliveryRecord[],
  { store, text }: { store: HitStore; text: string },
): Promise<DeliveryRow[]> {
  const word = text.trim().toLowerCase()
  const until = performance.now() + maxReadMs
  const found: DeliveryRow[] = []
  for (const [at, row] of rows.entries()) {
    const record = records[at]
    const cells = [row.summary, row.hook, row.event, row.source, row.sourceName, row.waits]
    const isShown = cells.some((cell) => cell?.toLowerCase().includes(word) === true)
    const hit =
      isShown || record === undefined
        ? undefined
        : (findInRecord(record, word) ??
          (performance.now() < until ? await findInTexts(record, { store, word }) : undefined))
    found.push(hit === undefined ? row : { ...row, found: hit })
  }
  return found
}

function findInRecord(record: DeliveryRecord, word: string): Hit | undefined {
  const { deliveryId, mappingId, problem, jobs } = record
  const texts: readonly (readonly [place: string, text: string | undefined])[] = [
    ['id', deliveryId],
    ['mapping', mappingId],
    ['problem', problem?.detail],
    ['code', problem?.frame],
    ...jobs.flatMap(({ planned, lastError }) => [
      ['error', lastError] as const,
      ['session', planned.sessionKey] as const,
      ['message', readActionText(planned)] as const,
    ]),
  ]
  for (const [place, text] of texts) {
    const hit = text === undefined ? undefined : buildHit(place, text, word)
    if (hit !== undefined) return hit
  }
  return undefined
}

async function findInTexts(
  record: DeliveryRecord,
  { store, word }: { store: HitStore; word: string },
): Promise<Hit | undefined> {
  for (const { id, planned } of record.jobs) {
    const { agentId, sessionKey } = planned
    const messages = await store.messages({ agentId, sessionKey, limit: maxMessages, runId: id })
    for (const { role, text } of messages) {
      const hit = role === 'assistant' ? buildHit('reply', text, word) : undefined
      if (hit !== undefined) return hit
    }
  }
  const request = await store.request(record.deliveryId)
  const body = Buffer.from(request?.body.subarray(0, searchedBytes) ?? []).toString('utf8')
  const at = findIn(body, word)
  const field = fieldBefore.exec(body.slice(Math.max(0, at - maxBefore), Math.max(0, at)))?.[1]
  return buildHit(field === undefined ? 'payload' : `payload ${field}`, body, word)
}

function buildHit(place: string, text: string, word: string): Hit | undefined {
  const at = findIn(text, word)
  if (at < 0) return undefined
  const shown = cutFrom(text, Math.max(0, at - leadChars), maxChars)
  return { in: place, text: replaceTokens(shown, '…').replaceAll(/\s+/g, ' ') }
}

/** -1 also for a text whose length changes with its case, so that no wrong words are marked. */
function findIn(text: string, word: string): number {
  const lower = text.toLowerCase()
  return lower.length === text.length ? lower.indexOf(word) : -1
}
