// The hosts' door: imported by nothing inside.
export * from './define.ts'
