/** A Cal.com booking that was made, requested, moved or cancelled becomes an agent run; a malformed one is answered with 400. */
import { defineTransform } from 'hookloom'
import { z } from 'zod'

// Users of Cal.com can edit the payload template, so a payload may lack any field. The schema refuses a payload without a field that every real
// booking has. The other fields are optional.
const Person = z.object({ name: z.string(), email: z.string().nullish(), timeZone: z.string().nullish() })

/** The fields of a booking event that are read: https://cal.com/docs/developing/guides/automation/webhooks */
const BookingEvent = z.object({
  triggerEvent: z.string(),
  payload: z.object({
    uid: z.string().min(1),
    title: z.string(),
    startTime: z.string(),
    endTime: z.string(),
    /** The start of a moved booking before the move. */
    rescheduleStartTime: z.string().nullish(),
    organizer: Person.nullish(),
    attendees: z.array(Person).default([]),
    /** A place, a link, or the name of an app such as `integrations:daily`. */
    location: z.string().nullish(),
    metadata: z.object({ videoCallUrl: z.string().nullish() }).nullish(),
    bookerUrl: z.string().default('https://app.cal.com'),
    additionalNotes: z.string().nullish(),
    cancellationReason: z.string().nullish(),
  }),
})

const happened: Record<string, string> = {
  BOOKING_CREATED: 'was made',
  BOOKING_REQUESTED: 'was requested and waits to be confirmed',
  BOOKING_RESCHEDULED: 'was moved',
  BOOKING_CANCELLED: 'was cancelled',
}
const maxAttendees = 10
const excerptLength = 1000
/** What a cut between the two units of an emoji leaves. */
const halfCharacter = /[\ud800-\udbff]$/

export default defineTransform({
  payload: BookingEvent,
  run({ payload: { triggerEvent, payload: booking } }, { log }) {
    const what = Object.hasOwn(happened, triggerEvent) ? happened[triggerEvent] : undefined
    if (what === undefined) {
      log(`skipped: ${triggerEvent}`)
      return null
    }

    const { uid, organizer, attendees, rescheduleStartTime: before, metadata, location } = booking
    const where = metadata?.videoCallUrl || (location?.startsWith('integrations:') ? '' : location)
    const named = attendees.slice(0, maxAttendees).map(toPerson)
    const hidden = attendees.length - named.length
    const people = [...named, ...(hidden > 0 ? [`${hidden} more`] : [])].join(', ')
    const reason = booking.cancellationReason?.trim()
    const notes = booking.additionalNotes?.trim()
    return {
      name: `Booking ${booking.title}`,
      sessionKey: `hook:calcom:${uid}`,
      message: [
        `Booking ${what}: ${booking.title}`,
        `from ${booking.startTime} to ${booking.endTime}${before ? ` (it was to start at ${before})` : ''}`,
        ...(organizer ? [`host ${toPerson(organizer)}`] : []),
        ...(people === '' ? [] : [`with ${people}`]),
        ...(where ? [`at ${where}`] : []),
        ...(reason ? [`reason ${toExcerpt(reason)}`] : []),
        `${booking.bookerUrl}/booking/${uid}`,
        ...(notes ? ['', toExcerpt(notes)] : []),
      ].join('\n'),
    }
  },
})

function toPerson({ name, email, timeZone }: z.infer<typeof Person>): string {
  return [name, ...(email ? [`<${email}>`] : []), ...(timeZone ? [`(${timeZone})`] : [])].join(' ')
}

function toExcerpt(text: string): string {
  return text.length > excerptLength ? `${text.slice(0, excerptLength).replace(halfCharacter, '').trimEnd()} […]` : text
}
