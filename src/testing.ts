// The door of authors' tests: what each kind of plugin promises, as checks that need no test runner.
export { type ChannelTrial, checkChannel } from './testing/channel.ts'
export { checkOutbox, type OutboxTrial } from './testing/outbox.ts'
export { checkRunner, type RunnerTrial } from './testing/runner.ts'
export { checkSource } from './testing/source.ts'
export type { SourceTrial } from './testing/source-world.ts'
