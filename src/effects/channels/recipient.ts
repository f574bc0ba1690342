// Sentences about recipients that a channel cannot address.
import { cut, toPrintableLine } from '../../base/text.ts'

/** `expected` names the forms that there are. What came may be outside text: it is shown folded and cut. */
export function refuseRecipient(channel: string, to: string | undefined, expected: string): string {
  if (to === undefined) {
    return `No recipient on ${channel}: set channels.${channel}.to, or "to" of the mapping or the request, to ${expected}.`
  }
  return `"${cut(toPrintableLine(to), 80)}" is no recipient on ${channel}: expected ${expected}.`
}
