// The step `event`: one event in the main session.
import { type Alert, mainSessionKey } from '../../model/action.ts'
import { cut } from '../../base/text.ts'
import type { NewEvent } from '../../store/records.ts'
import { maxSummaryChars } from '../plan.ts'
import { defineStep } from '../step.ts'

export const eventStep = defineStep({
  about: 'The text becomes one event in the main session.',
  of: ['wake', 'alert'],
  perform: ({ planned }) => ({ kind: 'recorded', step: { state: 'done' }, events: [toAlertEvent(planned)] }),
  retry: undefined,
  isLogged: false,
  describeDeath: undefined,
})

/** An event of the gateway in the main session. It may contain outside text, so it is not trusted. */
function toAlertEvent({ agentId, text }: Alert): NewEvent {
  return {
    agentId,
    sessionKey: mainSessionKey,
    text: cut(text, maxSummaryChars),
    source: 'hookloom',
    trusted: false,
    wakes: false,
  }
}
