import { expect, test } from 'vitest'
import { removeAcknowledgement, explainSilence } from '../../../../src/gateway/jobs/acknowledgement.ts'

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
])('the reply %j is only an acknowledgement and is not posted', (reply) => {
  expect(explainSilence(reply)).toContain('HEARTBEAT_OK')
})

test.each(['', '  \n\t'])('an empty reply (%j) is not posted', (reply) => {
  expect(explainSilence(reply)).toContain('empty')
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
])('the reply %j has content and is posted', (reply) => {
  expect(explainSilence(reply)).toBeUndefined()
})

test('a reply of five million characters is posted, even if it ends with the acknowledgement', () => {
  expect(explainSilence(`${'*'.repeat(5_000_000)}HEARTBEAT_OK`)).toBeUndefined()
})

test('a heartbeat may add a remark of ackMaxChars characters to an acknowledgement, and a longer one is posted', () => {
  const heartbeat = { ackMaxChars: 10 }
  expect(explainSilence('HEARTBEAT_OK ten chars.', heartbeat)).toBeDefined()
  expect(explainSilence('Ten chars. **HEARTBEAT_OK**', heartbeat)).toBeDefined()
  expect(explainSilence('HEARTBEAT_OK more than ten', heartbeat)).toBeUndefined()
  expect(explainSilence('HEARTBEAT_OKAY now', heartbeat)).toBeUndefined()
})

test.each([
  ['HEARTBEAT_OK\n\nThe disk is full.', 'The disk is full.'],
  ['The disk is full.\n\nHEARTBEAT_OK', 'The disk is full.'],
  ['HEARTBEAT_OK. The disk is full.', 'The disk is full.'],
  ['HEARTBEAT_OK — the disk is full.', 'the disk is full.'],
  ['HEARTBEAT_OK: **Disk** is full', '**Disk** is full'],
  ['HEARTBEAT_OK **Disk** is full', '**Disk** is full'],
  ['HEARTBEAT_OK\n- disk\n- memory', '- disk\n- memory'],
  ['- disk\n- HEARTBEAT_OK', '- disk'],
  ['* disk\n* HEARTBEAT_OK', '* disk'],
  ['**HEARTBEAT_OK**\n\n**Disk** full', '**Disk** full'],
  ['_HEARTBEAT_OK_ `df` says so', '`df` says so'],
  ['`HEARTBEAT_OK` `df` says so', '`df` says so'],
  ['**HEARTBEAT_OK the disk is full**', '**the disk is full**'],
  ['**The disk is full. HEARTBEAT_OK**', '**The disk is full.**'],
  ['The disk is full (HEARTBEAT_OK).', 'The disk is full'],
  ['The disk is full. **HEARTBEAT_OK** 👍', 'The disk is full.'],
  ['The disk is full — HEARTBEAT_OK', 'The disk is full'],
  ['```\nHEARTBEAT_OK\n```\n\nDisk full', 'Disk full'],
  ['# HEARTBEAT_OK\n\nDisk full', 'Disk full'],
  ['<b>HEARTBEAT_OK</b> Disk full', 'Disk full'],
  ['Disk full <b>HEARTBEAT_OK</b>', 'Disk full'],
  ['<p>Disk full HEARTBEAT_OK</p>', '<p>Disk full</p>'],
  ['HEARTBEAT_OK HEARTBEAT_OK\nDisk full\nHEARTBEAT_OK\n', 'Disk full'],
])('the reply %j is posted without the acknowledgement and otherwise whole', (reply, posted) => {
  expect(removeAcknowledgement(reply)).toBe(posted)
})

test.each([
  'I say HEARTBEAT_OK in the middle',
  'HEARTBEAT_OKAY, the disk is full',
  'HEARTBEAT_OK_2 is a word of its own',
  'The variable is MY_HEARTBEAT_OK',
  '    indented code\n',
  'HEARTBEAT_OK!!!!!',
  'Done.',
])('the reply %j is posted unchanged', (reply) => {
  expect(removeAcknowledgement(reply)).toBe(reply)
})

test('the acknowledgements at both ends of a long reply are removed', () => {
  const text = `${'x '.repeat(20_000)}y`
  expect(removeAcknowledgement(`HEARTBEAT_OK\n${text}\nHEARTBEAT_OK`)).toBe(text)
})

test('text with many acknowledgements is read in linear time', () => {
  for (const part of ['HEARTBEAT_OK ', '**HEARTBEAT_OK', '*', '<b>', '- ', '_HEARTBEAT_OK_x']) {
    expect(removeAcknowledgement(`x${part.repeat(100_000)}x`)).toContain('x')
  }
})

test.each([' ', '\n', '\u00A0', '> ', '<b> '])(
  'a reply that begins with %j 200,000 times is read in linear time',
  (part) => {
    // quadratic time would be minutes
    expect(removeAcknowledgement(`${part.repeat(200_000)}x`)).toContain('x')
  },
)
