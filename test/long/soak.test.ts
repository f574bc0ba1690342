// A gateway under a constant load, with kills and saves, for `HOOKLOOM_SOAK_MINUTES` (default: 1). Nothing is lost or happens twice, and what the
// process holds has a limit. Its curves are kept in `.accept/soak.svg`.
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { count } from '../counts.ts'
import { drain, findDamage } from '../e2e/aftermath.ts'
import { type Gateway, readMemoryMb, startGateway, writeFiles } from '../e2e/gateway.ts'
import { askRun, createDice, createLoad } from '../e2e/load.ts'
import { createHistory, recordStored } from '../history/history.ts'
import { seed, withSeed } from '../seed.ts'

const minutes = Number(process.env['HOOKLOOM_SOAK_MINUTES'] ?? 1)
const perSecond = 200
const sliceMs = 100
/** In the first half of the time, so that the second half shows what one process gathers. */
const killEveryMs = Math.min(60_000, minutes * 15_000)
const saveEveryMs = 10_000
const sampleEveryMs = Math.max(1_000, minutes * 300)
const limits = { memoryMb: 300, descriptors: 200, logMb: 128 }
const isLinux = process.platform === 'linux'

/** What one process holds. `atMs`: since the start of the test. */
type Sample = { readonly atMs: number; readonly memoryMb: number; readonly descriptors: number; readonly logMb: number }

const toFiles = (version: number) => ({
  'hooks/transforms/stamp.ts': `export default ({ payload }: { payload: { text: string } }) => ({ message: \`\${payload.text} v${version}.\` })\n`,
})

test.skipIf(!isLinux)(
  `${minutes} minutes of ${perSecond} requests a second with kills and saves lose nothing, and the process stays small${isLinux ? '' : ' (skipped: it reads /proc)'}`,
  { timeout: minutes * 120_000 + 600_000 },
  (context) =>
    withSeed(async () => {
      const mapping = { id: 'mapped', match: { path: 'mapped' }, transform: { module: 'stamp.ts' }, deliver: false }
      const history = createHistory('soak')
      let gateway: Gateway = await startGateway({
        config: { hooks: { mappings: [mapping] } },
        files: toFiles(0),
      })
      const { dir } = gateway
      const load = createLoad({ connections: 64, pickBelow: createDice(seed), history })
      const samples: Sample[] = []
      const begun = Date.now()
      const durationMs = minutes * 60_000
      const done = { kills: 0, saves: 0, samples: 0 }
      for (let atMs = 0; atMs < durationMs; atMs = Date.now() - begun) {
        if (atMs >= done.saves * saveEveryMs) writeFiles(dir, toFiles(++done.saves))
        if (atMs < durationMs / 2 && atMs >= (done.kills + 1) * killEveryMs) {
          load.close()
          done.kills += 1
          await history.during('kill', async () => {
            await gateway.kill()
            gateway = await startGateway({ dir })
          })
        }
        if (atMs >= done.samples * sampleEveryMs) {
          done.samples += 1
          samples.push(readSample(gateway, atMs))
        }
        load.open(gateway, (perSecond * sliceMs) / 1_000)
        await new Promise((resolve) => setTimeout(resolve, sliceMs))
      }
      const acknowledged = await load.finish()
      await drain(dir)
      samples.push(readSample(gateway, Date.now() - begun))
      draw(samples)

      expect(load.unexpected).toEqual([])
      await recordStored(history, { dir, ask: (run) => askRun(gateway.url, run) })
      history.judge()
      expect(await gateway.stop()).toBe(0)
      expect(findDamage(dir)).toEqual([])
      const most = (name: keyof Sample) => Math.round(Math.max(...samples.map((sample) => sample[name])))
      const held = { memoryMb: most('memoryMb'), descriptors: most('descriptors'), logMb: most('logMb') }
      expect(Object.entries(limits).filter(([name, limit]) => most(name as keyof Sample) > limit)).toEqual([])
      count(context, {
        acknowledged: acknowledged.length,
        lost: 0,
        twice: 0,
        kills: done.kills,
        saves: done.saves,
        'MB at most': held.memoryMb,
        'descriptors at most': held.descriptors,
        'MB of log at most': held.logMb,
      })
    }),
)

function readSample({ child, dir }: Pick<Gateway, 'child' | 'dir'>, atMs: number): Sample {
  return {
    atMs,
    memoryMb: readMemoryMb(child.pid, 'VmRSS'),
    descriptors: readdirSync(`/proc/${child.pid}/fd`).length,
    logMb: statSync(join(dir, 'state/hookloom.db-wal')).size / 1_024 / 1_024,
  }
}

/** One curve below the other, each from zero to its limit. */
function draw(samples: readonly Sample[]): void {
  const [width, height] = [900, 140]
  const lastMs = samples.at(-1)?.atMs ?? 1
  const panels = Object.entries(limits).map(([name, limit], index) => {
    const points = samples.map((sample) => {
      const value = sample[name as keyof Sample] // as: `limits` has keys of a sample
      return `${((sample.atMs / lastMs) * width).toFixed(1)},${(height - (value / limit) * height).toFixed(1)}`
    })
    return `<g transform="translate(60 ${20 + index * (height + 40)})"><rect width="${width}" height="${height}" fill="none" stroke="#ccc"/>
<text x="-8" y="12" text-anchor="end">${limit}</text><text x="-8" y="${height}" text-anchor="end">0</text><text y="-6">${name}, ${minutes} minutes</text>
<polyline fill="none" stroke="#36c" points="${points.join(' ')}"/></g>`
  })
  const size = `width="${width + 80}" height="${20 + panels.length * (height + 40)}"`
  mkdirSync('.accept', { recursive: true })
  writeFileSync(
    '.accept/soak.svg',
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="12">${panels.join('')}</svg>\n`,
  )
}
