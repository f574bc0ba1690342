// The sentence that the page shows after a click on a button: the result of the work, or why it failed.
import { useState } from 'preact/hooks'
import type { CapturedFields } from '../model/api/replay.ts'
import { call } from './api.ts'
import { toLocalTimes } from './format.ts'

export type Said = { readonly text: string; readonly isBad: boolean }

export const nothingSaid: Said = { text: '', isBad: false }

/** `otherwise`: the sentence for an exception without a message. */
export function describeException(error: unknown, otherwise = 'It failed.'): string {
  return error instanceof Error ? toLocalTimes(error.message) : otherwise
}

/** The last sentence, and a function that shows the result or the error of some work when it has ended. */
export function useSaid(): { readonly said: Said; setSaid(said: Said): void; report(work: Promise<string>): void } {
  const [said, setSaid] = useState(nothingSaid)
  const report = (work: Promise<string>) =>
    void work.then(
      (text) => setSaid({ text, isBad: false }),
      (error: unknown) => setSaid({ text: describeException(error), isBad: true }),
    )
  return { said, setSaid, report }
}

/** Copies a text, and resolves to a sentence about it. `what`: the subject of the sentence, such as `The path`. */
export function copyText(what: string, text: string): Promise<string> {
  return navigator.clipboard.writeText(text).then(
    () => `${what} is in the clipboard.`,
    () => Promise.reject(new Error('The browser does not allow to copy.')),
  )
}

/** A sentence about a fixture that is being written. */
export async function describeFixture(writing: Promise<Omit<CapturedFields, 'deliveryId'>>): Promise<string> {
  const { file, decision, removed, note } = await writing
  const without = removed.length === 0 ? '' : ` Removed: ${removed.join(', ')}.`
  const failing = note === null ? '' : ` It fails until the code is fixed: ${note}`
  return `Created ${file}. It expects the decision ${decision}.${without}${failing}`
}

/** Writes a kept delivery as a fixture of its transform. */
export function captureDelivery(id: string, body: { readonly name?: string } = {}): Promise<string> {
  return describeFixture(call('POST /api/deliveries/{id}/capture', { params: { id }, body }))
}
