// Twenty senders in a week that follows a week of history, with planned outages and ten thousand requests of strangers.
import { expect, test } from 'vitest'
import type { MappingInput } from '../../src/core/model/mapping.ts'
import {
  createRandom,
  createSenderStage,
  day,
  hour,
  minute,
  monday,
  type Sender,
} from '../unit/gateway/deliveries/sender-stage.ts'

/** The number of requests in an hour, by the hour since Monday 00:00 UTC. */
type Rhythm = (hourOfWeek: number) => number

const isWorkday = (hourOfWeek: number) => hourOfWeek < 5 * 24
const isOfficeHour = (hourOfWeek: number) => isWorkday(hourOfWeek) && hourOfWeek % 24 >= 8 && hourOfWeek % 24 < 18

const rhythms: readonly Rhythm[] = [
  // a machine that sends every four minutes, day and night
  () => 15,
  // people who work in office hours
  (at) => (isOfficeHour(at) ? 12 : 0),
  // people who work in office hours, and sometimes at night
  (at) => (isOfficeHour(at) ? 20 : 0.5),
  // a shop with most customers in the evening and on weekends
  (at) => (at % 24 >= 17 && at % 24 < 23 ? 8 : 1) * (isWorkday(at) ? 1 : 2),
  // a sender of a few requests a day
  () => 0.35,
]

/** A job that posts many requests at once, at two in the morning. */
const nightly: Rhythm = (at) => (at % 24 === 2 ? 30 : 0)

const names = Array.from({ length: 20 }, (_, index) => `hook-${index}`)
const chooseRhythm = (index: number): Rhythm =>
  index === 19 ? nightly : (rhythms[index % rhythms.length] ?? (() => 1))

const buildSender = (index: number): Sender => ({
  hook: `hook-${index}`,
  client: `34.20.${index}.9`,
  headers: {
    'user-agent': 'GitHub-Hookshot/a1b2c3d',
    'x-github-event': 'push',
    'x-github-hook-id': String(292_430_182 + index),
  },
})

type Arrival = { at: number; kind: 'accepted' | 'refused' | 'stranger'; sender: Sender }
type Outage = { index: number; kind: 'silent' | 'refused'; from: number; to: number }

const second = monday + 7 * day
const end = second + 7 * day
/** The watch looks once a minute. The test lets it look every third minute, to be fast. */
const step = 3 * minute
const outages: readonly Outage[] = [
  // on a Tuesday in office hours, for seven and a half hours
  { index: 0, kind: 'refused', from: second + day + 9 * hour, to: second + day + 16.5 * hour },
  { index: 1, kind: 'silent', from: second + 2 * day + 9 * hour, to: second + 2 * day + 17 * hour },
  // for two nights and the day between them
  { index: 3, kind: 'silent', from: second + day + 12 * hour, to: second + 3 * day },
  { index: 6, kind: 'refused', from: second + 3 * day + 8 * hour, to: second + 3 * day + 12 * hour },
  // the start of an outage of twelve days
  { index: 5, kind: 'silent', from: second + 4 * day, to: second + 7 * day },
]

function planArrivals(): Arrival[] {
  const random = createRandom(7)
  const arrivals: Arrival[] = []
  for (const index of names.keys()) {
    for (let at = monday; at < monday + 14 * day; at += hour) {
      const rate = chooseRhythm(index)(((at - monday) / hour) % 168)
      // each sixtieth of an hour has the same chance of a request, so that the gaps are like those between independent people
      for (let part = 0; part < 60; part += 1) {
        if (random() >= rate / 60) continue
        const moment = at + part * minute + Math.floor(random() * minute)
        const outage = outages.find(({ index: of, from, to }) => of === index && moment >= from && moment < to)
        if (outage?.kind === 'silent') continue
        arrivals.push({ at: moment, kind: outage === undefined ? 'accepted' : 'refused', sender: buildSender(index) })
      }
    }
  }
  for (let count = 0; count < 10_000; count += 1) {
    const at = second + Math.floor(random() * 7 * day)
    arrivals.push({ at, kind: 'stranger', sender: buildStranger(count, random) })
  }
  return arrivals.toSorted((one, other) => one.at - other.at)
}

/** A scanner, or a stranger who knows the URL and copies all headers from the documentation of the sender. */
function buildStranger(count: number, random: () => number): Sender {
  const drawAddressPart = () => 1 + Math.floor(random() * 220)
  const client = `${[36, 80, 185][count % 3]}.${drawAddressPart()}.${drawAddressPart()}.${drawAddressPart()}`
  const known = buildSender(count % names.length)
  if (count % 4 === 0) return { hook: `wp-login-${count % 50}`, client, headers: { 'user-agent': 'zgrab/0.x' } }
  const { 'x-github-hook-id': _, ...copied } = known.headers
  return { hook: known.hook, client, headers: { ...copied, 'x-github-hook-id': String(100_000_000 + count) } }
}

test(
  'in a week of twenty senders, each planned outage and its end are reported once, and nothing else is',
  { timeout: 120_000 },
  async () => {
    const mappings: MappingInput[] = names.map((name) => ({ id: name, match: { path: name }, messageTemplate: 'x' }))
    const stage = createSenderStage({ mappings })
    const arrivals = planArrivals()
    expect(arrivals.filter(({ kind }) => kind === 'stranger')).toHaveLength(10_000)
    const history = arrivals.filter(({ at, kind }) => at < second && kind === 'accepted')
    await stage.recordPast(history.map(({ at, sender }) => ({ ...sender, at, source: 'github' })))
    stage.setTime(second)
    await stage.look()
    let next = arrivals.findIndex(({ at }) => at >= second)
    for (let at = second; at < end; at += step) {
      for (
        let arrival = arrivals[next];
        arrival !== undefined && arrival.at < at + step;
        arrival = arrivals[(next += 1)]
      ) {
        stage.setTime(arrival.at)
        if (arrival.kind === 'accepted') stage.accept(arrival.sender)
        else stage.refuse(arrival.sender)
      }
      stage.setTime(at + step)
      await stage.look()
    }
    const found = stage.told.map(({ cause, at }) => ({
      what: cause.replace(/ \d+$/, '').replace(/ \["(hook-\d+)".*/, ' $1'),
      at,
    }))
    const expected = outages.flatMap(({ index, kind, to }) => [
      `${kind} hook-${index}`,
      ...(to < end ? [`${kind === 'silent' ? 'sends' : 'accepted'} again hook-${index}`] : []),
    ])
    expect(found.map(({ what }) => what).toSorted()).toEqual(expected.toSorted())
    for (const { index, kind, from } of outages) {
      const at = found.find(({ what }) => what === `${kind} hook-${index}`)?.at ?? 0
      // a sender of a request every four minutes is reported within half an hour of the first refusal
      if (kind === 'refused' && index === 0) expect(at - from).toBeLessThan(30 * minute)
      if (kind === 'silent') expect(at - from).toBeLessThan(2 * day)
    }
  },
)
