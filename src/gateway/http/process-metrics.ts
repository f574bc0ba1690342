// The resources that the process uses, under the names that Prometheus' clients use. Everything is read when the metrics are read, so an
// idle gateway does nothing for it.
import { performance } from 'node:perf_hooks'
import { Counter, Gauge, type Registry } from 'prom-client'

export function addProcessMetrics(registry: Registry, version: string): void {
  const registers = [registry]
  const gauge = (name: string, help: string, collect: (this: Gauge) => void | Promise<void>) =>
    new Gauge({ name, help, registers, collect })
  new Gauge({
    name: 'hookloom_build_info',
    help: '1, with the versions of the program and of Node.',
    labelNames: ['version', 'node_version'],
    registers,
  }).set({ version, node_version: process.version }, 1)
  gauge('process_start_time_seconds', 'Start of the process, in seconds since the epoch.', function () {
    this.set(Math.round(performance.timeOrigin / 1_000))
  })
  gauge('process_resident_memory_bytes', 'Memory of the process, its threads included.', function () {
    this.set(process.memoryUsage.rss())
  })
  gauge('nodejs_heap_size_used_bytes', 'Memory of the JavaScript objects of the main thread.', function () {
    this.set(process.memoryUsage().heapUsed)
  })
  gauge(
    'nodejs_eventloop_lag_seconds',
    'Time that the main thread needed until it took the next task.',
    async function () {
      const from = performance.now()
      await new Promise((done) => setImmediate(done))
      this.set((performance.now() - from) / 1_000)
    },
  )
  addTotal('process_cpu_seconds_total', 'Processor time of the process, its threads included.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  addTotal('nodejs_eventloop_active_seconds_total', 'Time in which the main thread was busy.', () => {
    return performance.eventLoopUtilization().active / 1_000
  })

  /** A counter that follows a value of the process. */
  function addTotal(name: string, help: string, read: () => number): void {
    let last = 0
    const total = new Counter({
      name,
      help,
      registers,
      collect() {
        const now = read()
        total.inc(Math.max(0, now - last))
        last = now
      },
    })
  }
}
