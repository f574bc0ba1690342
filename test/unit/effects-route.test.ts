import { expect, test } from 'vitest'
import { type DefaultRoute, resolveRoute } from '../../src/effects/route.ts'
import type { ChannelName } from '../../src/model/action.ts'

function route(
  channel: ChannelName,
  options: { to?: string; defaultRoute?: DefaultRoute; configured?: string[] } = {},
) {
  const { to, defaultRoute, configured = ['slack', 'telegram'] } = options
  return resolveRoute({ channel, to, defaultRoute, configured: new Set(configured) })
}

test('an explicit channel is taken, even where another one is the default', () => {
  expect(route('slack', { to: 'C1', defaultRoute: { channel: 'telegram', to: '7' } })).toEqual({
    kind: 'route',
    channel: 'slack',
    to: 'C1',
  })
})

test('a default recipient serves its own channel and never another one', () => {
  const defaultRoute = { channel: 'telegram', to: '7' } as const
  expect(route('telegram', { defaultRoute })).toMatchObject({ to: '7' })
  expect(route('telegram', { defaultRoute, to: '8' })).toMatchObject({ to: '8' })
  expect(route('slack', { defaultRoute })).toMatchObject({ to: undefined })
})

test('"last" goes to channels.default, also where WhatsApp is configured', () => {
  const configured = ['whatsapp', 'telegram']
  expect(route('last', { configured, defaultRoute: { channel: 'telegram', to: '7' } })).toEqual({
    kind: 'route',
    channel: 'telegram',
    to: '7',
  })
})

test('"last" without a default goes to WhatsApp when that is configured', () => {
  expect(route('last', { configured: ['whatsapp'], to: '+1' })).toEqual({
    kind: 'route',
    channel: 'whatsapp',
    to: '+1',
  })
})

test.each([undefined, { channel: 'last' } as const])(
  '"last" that leads nowhere names the key to set (%j)',
  (defaultRoute) => {
    const none = route('last', defaultRoute === undefined ? {} : { defaultRoute })
    expect(none).toMatchObject({ kind: 'none' })
    expect(none).toHaveProperty('detail', expect.stringContaining('Set channels.default'))
  },
)

test('a channel that is not configured is named with its key', () => {
  expect(route('discord')).toHaveProperty('detail', expect.stringContaining('channels.discord'))
  const byDefault = route('last', { defaultRoute: { channel: 'signal' } })
  expect(byDefault).toHaveProperty('detail', expect.stringContaining('channels.signal'))
})
