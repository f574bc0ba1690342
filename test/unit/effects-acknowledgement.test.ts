import { expect, test } from 'vitest'
import { whyNotPosted } from '../../src/effects/acknowledgement.ts'

test.each([
  'HEARTBEAT_OK',
  ' \nHEARTBEAT_OK \n',
  'HEARTBEAT_OK.',
  'HEARTBEAT_OK 👍',
  'HEARTBEAT_OK!!!!',
  '**HEARTBEAT_OK**',
  '`HEARTBEAT_OK`.',
  '<b>HEARTBEAT_OK</b>',
  '<p>&nbsp;HEARTBEAT_OK</p>',
  'HEARTBEAT_OK\nHEARTBEAT_OK',
])('%j is only an acknowledgement and is not posted', (reply) => {
  expect(whyNotPosted(reply)).toContain('HEARTBEAT_OK')
})

test.each(['', '  \n\t'])('an empty reply (%j) is not posted', (reply) => {
  expect(whyNotPosted(reply)).toContain('empty')
})

test.each([
  'All is well. HEARTBEAT_OK',
  'HEARTBEAT_OK but the disk is full',
  'I say HEARTBEAT_OK in the middle',
  'HEARTBEAT_OK!!!!!',
  'HEARTBEAT_OKAY',
  'heartbeat_ok',
  'HEARTBEAT OK',
  'Done.',
])('%j says something and is posted', (reply) => {
  expect(whyNotPosted(reply)).toBeUndefined()
})

test('a reply without end is posted, not searched', () => {
  expect(whyNotPosted(`${'*'.repeat(5_000_000)}HEARTBEAT_OK`)).toBeUndefined()
})
