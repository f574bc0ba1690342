// Decisions of the bundled transforms on single events that their fixtures do not cover.
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/base/json.ts'
import { run, toActions, toText } from './stage.ts'

describe('the Slack transform', () => {
  const said = { type: 'message', user: 'U0MIRA', channel: 'C0KITCHEN', ts: '1772528400.000100', text: 'Tea?' }
  const authorizations = [
    { user_id: 'U0AGENT', is_bot: true },
    { user_id: 'U0OWNER', is_bot: false },
  ]
  const send = async (event: Record<string, JsonValue>, over: Record<string, JsonValue> = {}) => {
    const body = { type: 'event_callback', team_id: 'T0LEAFWORKS', api_app_id: 'A0HOOKLOOM', authorizations, ...over }
    return (await run('slack-message.ts', { headers: {}, payload: { ...body, event: { ...said, ...event } } })).kind
  }

  test.each([
    { bot_id: 'B0AGENT' },
    { app_id: 'A0HOOKLOOM' },
    { user: 'U0AGENT' },
    { user: 'USLACKBOT' },
    { subtype: 'bot_message' },
    { subtype: 'message_changed' },
    { subtype: 'channel_join' },
    { edited: { user: 'U0MIRA', ts: '1772528460.000000' } },
    { type: 'reaction_added' },
    { text: ' \n' },
  ])('a Slack message with %j is skipped', async (event) => {
    expect(await send(event)).toBe('skip')
  })

  test.each([{}, { type: 'app_mention' }, { subtype: 'thread_broadcast' }, { app_id: 'A0OTHER' }, { user: 'U0OWNER' }])(
    'a Slack message of a person with %j becomes a run',
    async (event) => {
      expect(await send(event)).toBe('accept')
    },
  )

  test('a long text is cut between characters', async () => {
    for (const text of ['😀'.repeat(3_000), `x${'😀'.repeat(3_000)}`]) {
      const payload = { type: 'event_callback', team_id: 'T0LEAFWORKS', event: { ...said, text } }
      const [action] = toActions(await run('slack-message.ts', { headers: {}, payload }))
      expect(action).toMatchObject({ message: expect.stringMatching(/😀 \[…\]/u) })
      expect(JSON.stringify(action)).not.toContain('\ufffd')
    }
  })

  test('a Slack request that is not an event callback is skipped', async () => {
    expect(await send({}, { type: 'url_verification' })).toBe('skip')
  })
})

describe('the sessions of the Slack transform', () => {
  const readSessionKey = async (event: Record<string, JsonValue>) => {
    const said = { type: 'message', user: 'U0MIRA', channel: 'C0KITCHEN', text: 'Tea?', ...event }
    const payload = { type: 'event_callback', team_id: 'T0LEAFWORKS', event: said }
    const [action] = toActions(await run('slack-message.ts', { headers: {}, payload }))
    return action?.kind === 'agent' ? action.sessionKey : undefined
  }

  test('the messages of a Slack thread share a session, and two threads do not', async () => {
    const first = await readSessionKey({ ts: '1772528400.000100' })
    expect(await readSessionKey({ ts: '1772528460.000200', thread_ts: '1772528400.000100' })).toBe(first)
    expect(await readSessionKey({ ts: '1772528460.000200' })).not.toBe(first)
  })

  test('all messages of a direct conversation in Slack share a session', async () => {
    const first = await readSessionKey({ ts: '1772528400.000100', channel_type: 'im' })
    expect(await readSessionKey({ ts: '1772528460.000200', channel_type: 'im' })).toBe(first)
  })
})

describe('the Stripe transform', () => {
  const send = async (type: string, over: Record<string, JsonValue>) => {
    const invoice = {
      id: 'in_1',
      number: 'N-1',
      currency: 'eur',
      amount_paid: 0,
      amount_remaining: 0,
      attempt_count: 1,
    }
    const payload = { type, livemode: true, data: { object: { ...invoice, ...over } } }
    const [action] = toActions(await run('stripe-invoice.ts', { headers: {}, payload }))
    if (action === undefined) throw new Error('it was skipped')
    return action
  }

  test.each([
    ['usd', 1999, '19.99 USD'],
    ['jpy', 1999, '1999 JPY'],
    ['kwd', 5120, '5.120 KWD'],
    ['usd', 0, '0.00 USD'],
  ])('in %s, the Stripe amount %d is written as %s', async (currency, amount, words) => {
    const action = await send('invoice.paid', { currency, amount_paid: amount })
    expect(toText(action)).toBe(`Invoice N-1: ${words} paid\nhttps://dashboard.stripe.com/invoices/in_1`)
  })

  test('the agent is asked only after Stripe’s last attempt to collect a payment', async () => {
    expect(await send('invoice.payment_failed', { next_payment_attempt: null })).toMatchObject({ kind: 'agent' })
    const waiting = { kind: 'wake', mode: 'next-heartbeat' }
    expect(await send('invoice.payment_failed', { next_payment_attempt: 1_772_787_600 })).toMatchObject(waiting)
    expect(await send('invoice.paid', {})).toMatchObject(waiting)
  })
})

describe('the Prometheus transform', () => {
  const send = async (alerts: { status: string; fingerprint: string }[]) => {
    const labels = { alertname: 'KettleTooHot' }
    const startsAt = '2026-03-03T09:00:00Z'
    const payload = { status: 'firing', alerts: alerts.map((alert) => ({ ...alert, labels, startsAt })) }
    const actions = toActions(await run('alertmanager-each-alert.ts', { headers: {}, payload }))
    return actions.map((action) => (action.kind === 'agent' ? action.sessionKey : action.kind))
  }

  test('each firing Prometheus alert makes one run, and the same alert always has the same session', async () => {
    const pot = { status: 'firing', fingerprint: 'a1' }
    const lid = { status: 'firing', fingerprint: 'b2' }
    expect(await send([pot, { ...lid, status: 'resolved' }])).toEqual(['hook:alertmanager:a1'])
    expect(await send([lid, pot])).toEqual(['hook:alertmanager:b2', 'hook:alertmanager:a1'])
  })
})
