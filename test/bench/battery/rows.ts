// The rows of the load battery, with the targets of the battery as goals. L7 is the probe `growth`, and L11 is test/long/soak.test.ts.
import type { Figure } from '../figures.ts'

export type LoadRow = (typeof loadRows)[number]['name']

const none = { most: 0 } as const
/** Of requests: what was answered with 200, against the rows of the store. */
const ledger: readonly Figure[] = [
  { key: 'lost', title: 'requests answered 200, and not stored', ...none },
  { key: 'twice', title: 'requests stored, and not answered 200', ...none },
]
/** Of runs: what was answered with 200, against the calls that the model got. */
const runLedger: readonly Figure[] = [
  { key: 'runs lost', title: 'runs answered 200, and never performed', ...none },
  { key: 'runs twice', title: 'runs performed twice', ...none },
]

/** It is part of the p99 beside, and no fault of the gateway: it shows how busy the machine was. */
const late: Figure = { key: 'late', title: 'how late the load itself was, p99, ms' }

const toRow = <Name extends string>(name: Name, figures: readonly Figure[]) => ({
  name,
  figures: figures.map((figure) => ({ ...figure, title: `${name} ${figure.title}` })),
})

/** Needs Postgres. */
const fleet: readonly Figure[] = [
  { key: 'fleet 1', title: 'runs a second, Postgres, turns of 100 ms, 8 at a time, one gateway' },
  { key: 'fleet 2', title: 'two gateways' },
  { key: 'fleet 4', title: 'four gateways' },
  { key: 'two / one', title: 'two / one', least: 1.7 },
  { key: 'four / two', title: 'four / two' },
  ...runLedger,
]

export const loadRows = [
  toRow('L1', [
    { key: 'perSecond', title: 'wakes of 1 kB a second, 64 connections', least: 2_500 },
    { key: 'p99', title: 'p99, ms', most: 60 },
    ...ledger,
  ]),
  toRow('L2', [
    { key: 'p99', title: '500 requests a second, open loop: p99, ms', most: 25 },
    { key: 'p999', title: 'p99.9, ms', most: 100 },
    { key: 'max', title: 'the slowest, ms' },
    late,
    { key: 'errors', title: 'errors', ...none },
    ...ledger,
  ]),
  toRow('L3', [
    {
      key: 'perSecond',
      title: 'GitHub signature, transform, template, 12 kB, 32 connections: requests a second',
      least: 1_200,
    },
    { key: 'p99', title: 'p99, ms', most: 60 },
    ...ledger,
  ]),
  toRow('L4', [
    { key: 'took', title: '10,000 requests in 5 s: until all are answered, s', most: 15 },
    { key: 'later', title: 'of them 429 or 503 with Retry-After' },
    { key: 'others', title: 'of them without an answer, or with another one', ...none },
    { key: 'before', title: 'memory before, MB' },
    { key: 'peak', title: 'memory at most, MB' },
    { key: 'after', title: 'memory after, MB' },
    { key: 'back', title: 'until the memory is at most 1.25 of that before, s; Infinity: not within 60', most: 60 },
    { key: 'again', title: 'memory at most in a second burst / in the first' },
    ...ledger,
  ]),
  toRow('L5', [
    { key: 'ratio', title: 'p99 of requests, with 1,000 runs before a slow model, 8 at a time / without', most: 1.2 },
    { key: 'alone', title: 'p99 without, ms' },
    { key: 'beside', title: 'p99 with, ms' },
    { key: 'left', title: 'runs that had not begun at the end of these requests' },
    { key: 'out of order', title: 'runs that began before the earlier one of their session had ended', ...none },
    { key: 'fairness', title: 'the longest wait of a session / that of the luckiest one', most: 3 },
    { key: 'longest wait', title: 'the longest wait, s' },
    ...ledger,
    ...runLedger,
  ]),
  toRow('L6', [
    { key: 'ratio', title: 'p99 of a sender of 5 requests a second, beside one of 2,000 / alone', most: 2 },
    { key: 'alone', title: 'p99 alone, ms' },
    { key: 'beside', title: 'p99 beside, ms' },
    { key: 'alone p50', title: 'p50 alone, ms' },
    { key: 'beside p50', title: 'p50 beside, ms' },
    late,
    { key: 'noisy', title: 'requests of the other sender that were answered, a second' },
    ...ledger,
  ]),
  toRow('L8', [
    { key: 'bodies', title: 'bodies of 256 KiB, 32 connections: memory above that before, in bodies', most: 64 },
    { key: 'base', title: 'memory before, MB' },
    { key: 'peak', title: 'memory at most, MB' },
    { key: 'perSecond', title: 'requests a second' },
    { key: 'p99', title: 'p99, ms', most: 500 },
    ...ledger,
  ]),
  toRow('L9', [
    { key: 'ratio', title: 'p99 of 50 good requests a second, beside 450 bad ones / alone', most: 2 },
    { key: 'alone', title: 'p99 alone, ms' },
    { key: 'beside', title: 'p99 beside, ms' },
    late,
    { key: 'refused', title: 'bad requests, answered 400, 401 or 413' },
    { key: 'others', title: 'bad requests with another answer, or none', ...none },
    { key: 'perRequest', title: 'bytes of log for each request, of which one in ten was good', most: 1_000 },
    ...ledger,
  ]),
  toRow('L10', [
    { key: 'failures', title: 'failed requests of L3, while its transform is saved', ...none },
    { key: 'saves', title: 'saves a second' },
    { key: 'perSecond', title: 'requests a second' },
    { key: 'p99', title: 'p99, ms' },
    ...ledger,
  ]),
  toRow('L12', process.env['HOOKLOOM_TEST_POSTGRES'] === undefined ? [] : fleet),
  toRow('L13', [
    { key: 'ratio', title: 'p99 of requests, beside 2,000 idle and 200 slow connections / without', most: 2 },
    { key: 'alone', title: 'p99 without, ms' },
    { key: 'beside', title: 'p99 with, ms' },
    late,
    { key: 'kept', title: 'idle connections that were kept' },
    { key: 'ended', title: 'slow connections that were ended' },
    ...ledger,
  ]),
] as const

/** What the battery has besides. */
export const describeOtherRows = (): string[] => [
  'L7, a million deliveries: npm run bench -- --only growth',
  'L11, hours with kills: HOOKLOOM_SOAK_MINUTES=20 npx vitest run --config test/vitest.config.ts test/long/soak.test.ts',
]
