// The report of `npm run accept`: a line for each case, with what it counted, and the sums at the end. It is kept as JSON in `.accept/`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { type Counts, describe } from './counts.ts'

type Line = {
  readonly case: string
  readonly state: 'passed' | 'failed' | 'skipped'
  readonly counts: Counts
  readonly tookMs: number
}

const maxTitle = 160
const signs = { passed: '✓', failed: '✗', skipped: '-' }
/** The sums that are printed: other counts have other units in each case. */
const summed = ['acknowledged', 'lost', 'twice', 'kills', 'losses of power', 'steps']

export default class AcceptReport implements Reporter {
  private readonly lines: Line[] = []
  private readonly errors: string[] = []
  private readonly begun = Date.now()

  private readonly seed: string

  constructor({ seed }: { readonly seed: string }) {
    this.seed = seed
  }

  onInit(): void {
    console.log(`HOOKLOOM_SEED=${this.seed} npm run accept\n`)
  }

  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result()
    if (state === 'pending') return
    const title = test.fullName.replaceAll(/\s+/g, ' ').slice(0, maxTitle)
    const name = `${relative('test', test.module.moduleId).replace(/\.test\.ts$/, '')}: ${title}`
    const line = {
      case: name,
      state,
      counts: test.meta().counts ?? {},
      tookMs: Math.round(test.diagnostic()?.duration ?? 0),
    }
    this.lines.push(line)
    const counted = describe(line.counts)
    console.log(
      `${signs[state]} ${name}${counted === '' ? '' : ` · ${counted}`} · ${(line.tookMs / 1_000).toFixed(1)} s`,
    )
    for (const error of errors)
      this.errors.push(`${name}\n${error.stack ?? error.message}\n${error.cause?.stack ?? ''}`)
  }

  onTestModuleEnd(module: TestModule): void {
    for (const error of module.errors())
      this.errors.push(`${relative('test', module.moduleId)}\n${error.stack ?? error.message}`)
  }

  onTestRunEnd(): void {
    const count = (state: Line['state']) => this.lines.filter((line) => line.state === state).length
    const totals = Object.fromEntries(
      summed.map((name) => [name, this.lines.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0)]),
    )
    const tookMs = Date.now() - this.begun
    const machine = {
      node: process.version,
      processor: cpus()[0]?.model ?? '',
      cores: cpus().length,
      memoryGb: Math.round(totalmem() / 1e9),
    }
    const cases = { passed: count('passed'), failed: count('failed'), skipped: count('skipped') }
    const kept = {
      at: new Date().toISOString(),
      seed: this.seed,
      machine,
      cases,
      totals,
      tookMs,
      lines: this.lines,
      errors: this.errors,
    }
    mkdirSync('.accept', { recursive: true })
    writeFileSync(`.accept/${this.seed}.json`, `${JSON.stringify(kept, undefined, 2)}\n`)
    for (const error of this.errors) console.log(`\n${error}`)
    console.log(`\n${describe(cases)} · ${describe(totals)}`)
    console.log(`seed ${this.seed} · ${Math.round(tookMs / 60_000)} min · .accept/${this.seed}.json`)
  }
}
