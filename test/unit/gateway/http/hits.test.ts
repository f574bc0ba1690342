// Where a search found its text, in rows whose cells do not show it.
import { expect, test } from 'vitest'
import type { DeliveryRow } from '../../../../src/model/api/answers.ts'
import type { DeliveryRecord, KeptRequest } from '../../../../src/store/records.ts'
import { addHits } from '../../../../src/gateway/http/api/hits.ts'
import { request } from '../../../contract/stage.ts'

async function find(body: string, text: string) {
  const store = { request: async (): Promise<KeptRequest> => request(body), messages: async () => [] }
  // as: only these fields are read
  const row = {
    summary: 'An order',
    hook: 'shop',
    event: null,
    source: null,
    sourceName: null,
    waits: null,
  } as unknown as DeliveryRow
  const record = { deliveryId: 'd', mappingId: 'orders', problem: undefined, jobs: [] } as unknown as DeliveryRecord
  return (await addHits([row], [record], { store, text }))[0]?.found
}

test('the field of the payload is named whose value has the text', async () => {
  expect(await find('{"id":1,"customer":{"note":"leave it at the door"}}', 'THE DOOR')).toEqual({
    in: 'payload note',
    text: expect.stringContaining('leave it at the door'),
  })
  expect(await find('{"tags":[ "red", "green"]}', 'red')).toMatchObject({ in: 'payload tags' })
  expect(await find('plain text', 'text')).toMatchObject({ in: 'payload' })
  expect(await find('{"id":1}', 'nowhere')).toBeUndefined()
})

test('a payload full of white space does not hold up the search', async () => {
  const space = ' '.repeat(30_000)
  for (const body of [`{"a":${space}"x","b":"needle"}`, `{"a":[${space}"x","b":"needle"}`])
    expect(await find(body, 'needle')).toMatchObject({ in: 'payload b' })
})
