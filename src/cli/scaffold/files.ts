// The files that `init` and `add service` write, as texts with placeholders: the folder files/.
import { readFileSync } from 'node:fs'
import { resolvePackagePath } from '../../base/package.ts'

/** Replaces each `{{name}}` with its value. The caller has quoted the values for the format of the file. */
export function renderFile(file: string, values: Readonly<Record<string, string | number>> = {}): string {
  const text = readFileSync(resolvePackagePath('dist', 'files', file), 'utf8')
  return text.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, name: string) => String(values[name] ?? placeholder))
}
