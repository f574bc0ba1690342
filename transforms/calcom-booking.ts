/** A Cal.com booking that was made, requested, moved or cancelled becomes a message to the agent; the rest is skipped. */
import { defineTransform } from 'hookloom'

/** What is read of a booking event: https://cal.com/docs/developing/guides/automation/webhooks */
type BookingEvent = {
  triggerEvent?: string
  payload?: {
    uid?: string
    title: string
    startTime: string
    endTime: string
    /** Of a moved booking: when it was to be. */
    rescheduleStartTime?: string
    organizer?: Person
    attendees?: Person[]
    /** A place, a link, or the name of an app such as `integrations:daily`. */
    location?: string | null
    metadata?: { videoCallUrl?: string } | null
    bookerUrl?: string
    additionalNotes?: string | null
    cancellationReason?: string | null
  }
}
type Person = { name: string; email?: string; timeZone?: string }

const happened: Record<string, string> = {
  BOOKING_CREATED: 'was made',
  BOOKING_REQUESTED: 'was requested and waits to be confirmed',
  BOOKING_RESCHEDULED: 'was moved',
  BOOKING_CANCELLED: 'was cancelled',
}
const mostAttendees = 10
const excerptLength = 1000

export default defineTransform<BookingEvent>(({ payload: { triggerEvent = '', payload: booking } }, { log }) => {
  const what = Object.hasOwn(happened, triggerEvent) ? happened[triggerEvent] : undefined
  if (booking?.uid === undefined || what === undefined) {
    log(`skipped: ${triggerEvent || 'no Cal.com event'}`)
    return null
  }

  const { uid, organizer, attendees = [], rescheduleStartTime: before, metadata, location } = booking
  const where = metadata?.videoCallUrl || (location?.startsWith('integrations:') ? '' : location)
  const named = attendees.slice(0, mostAttendees).map(toPerson)
  const hidden = attendees.length - named.length
  const people = [...named, ...(hidden > 0 ? [`${hidden} more`] : [])].join(', ')
  const reason = booking.cancellationReason?.trim()
  const notes = booking.additionalNotes?.trim()
  return {
    kind: 'agent',
    name: `Booking ${booking.title}`,
    sessionKey: `hook:calcom:${uid}`,
    message: [
      `Booking ${what}: ${booking.title}`,
      `from ${booking.startTime} to ${booking.endTime}${before ? ` (it was to start at ${before})` : ''}`,
      ...(organizer ? [`host ${toPerson(organizer)}`] : []),
      ...(people === '' ? [] : [`with ${people}`]),
      ...(where ? [`at ${where}`] : []),
      ...(reason ? [`reason ${toExcerpt(reason)}`] : []),
      `${booking.bookerUrl ?? 'https://app.cal.com'}/booking/${uid}`,
      ...(notes ? ['', toExcerpt(notes)] : []),
    ].join('\n'),
  }
})

function toPerson({ name, email, timeZone }: Person): string {
  return [name, ...(email ? [`<${email}>`] : []), ...(timeZone ? [`(${timeZone})`] : [])].join(' ')
}

function toExcerpt(text: string): string {
  return text.length > excerptLength ? `${text.slice(0, excerptLength).trimEnd()} […]` : text
}
