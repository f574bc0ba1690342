// The rows about a mapped route: a signature of GitHub, a transform and a template, also while the transform is saved again and again.
import { setTimeout as pause } from 'node:timers/promises'
import type { Figures } from '../probes.ts'
import { token } from '../run.ts'
import { writeOperatedFiles } from './operated.ts'
import { type RowOptions, type Stage, withStage } from './stage.ts'

const module = 'hooks/transforms/triage.ts'
const toTransform = (version: number) => `import { defineTransform } from 'hookloom'

type Issues = { action: string; issue: { number: number; title: string }; comments: { body: string }[] }

/** The first comments of an issue. Version ${version}. */
export default defineTransform<Issues>(({ payload: { action, issue, comments } }) => ({
  text: \`\${action} #\${issue.number} \${issue.title}: \${comments.slice(0, 3).map(({ body }) => body).join(' ')}\`,
}))
`

const mapping = {
  match: { path: 'github' },
  verify: { scheme: 'github', secret: token },
  action: 'wake',
  wakeMode: 'next-heartbeat',
  name: '{{action}} by {{sender.login}}',
  textTemplate: '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}',
  transform: { module: 'triage.ts' },
}

const withMapped = (options: RowOptions, measure: (stage: Stage) => Promise<Figures>) =>
  withStage({ ...options, mappings: [mapping], files: { [module]: toTransform(0) } }, async (stage) => {
    await stage.send({ ...signed, seconds: 2 })
    return measure(stage)
  })

const signed = { path: '/hooks/github', signed: true, bytes: 12_000, connections: 32 }

/** L3 */
export function measureMapped(options: RowOptions): Promise<Figures> {
  return withMapped(options, async ({ send }) => {
    const { perSecond, p50Ms, p99Ms } = await send({ ...signed, seconds: options.seconds })
    return { perSecond, p50: p50Ms, p99: p99Ms }
  })
}

const saveEveryMs = 50

/** L10 */
export function measureSaves(options: RowOptions): Promise<Figures> {
  return withMapped(options, async ({ dir, send }) => {
    const sent = new AbortController()
    const sending = send({ ...signed, isPatient: true, seconds: options.seconds }).finally(() => sent.abort())
    let saves = 0
    const saving = async () => {
      const begun = performance.now()
      while (!sent.signal.aborted) {
        saves += 1
        writeOperatedFiles(dir, { [module]: toTransform(saves) })
        await pause(begun + saves * saveEveryMs - performance.now())
      }
    }
    const [{ perSecond, p99Ms, later, others }] = await Promise.all([sending, saving()])
    return { perSecond, p99: p99Ms, failures: later + others, saves: saves / options.seconds }
  })
}
