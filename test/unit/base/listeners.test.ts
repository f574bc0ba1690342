import { expect, test } from 'vitest'
import { notifyAll } from '../../../src/base/listeners.ts'

test('a listener that throws is logged, and fails neither its caller nor the listeners after it', () => {
  const called: string[] = []
  const errors: unknown[] = []
  const failure = new Error('the disk of the listener is full')
  const notify = notifyAll<[string]>({ error: (fields) => void errors.push(fields) }, [
    (name) => void called.push(`first ${name}`),
    () => {
      throw failure
    },
    (name) => void called.push(`third ${name}`),
  ])
  notify('event')
  expect(called).toEqual(['first event', 'third event'])
  expect(errors).toEqual([{ err: failure }])
})
