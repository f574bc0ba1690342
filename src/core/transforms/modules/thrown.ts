// Describes exceptions in integrators' code safely: reading them cannot throw again, and every text has a limit.
import { takeStart } from '../../../base/text.ts'
import { types } from 'node:util'
import { describeValueKind } from '../../../base/json.ts'
import { findPlainPath } from '../../model/issue.ts'
import { refusalMark } from '../../model/refusal.ts'
import type { Locate } from './locate.ts'

/** `what` and `at` have nothing of the message, so a sender may see them. `frame` has the message, and is only for the operator. */
type ThrownReport = { readonly what: string; readonly at: string; readonly frame: string }

const messageLength = 500

/** `what`: "a TypeError", or "a ZodError for items[0].id"; `at`: " at pr.ts:12" or nothing. */
export function buildThrownReport(thrown: unknown, locate: Locate): ThrownReport {
  const what = describeKind(thrown)
  const position = types.isNativeError(thrown) ? locate(readText(thrown, 'stack')) : undefined
  const message = takeStart(readMessage(thrown).toWellFormed(), messageLength)
  const headline = message === '' ? `threw ${what}` : `${what.replace(/^an? /, '')}: ${message}`
  if (position === undefined) return { what, at: '', frame: headline }
  const { file, line, column, excerpt } = position
  return { what, at: ` at ${file}:${line}`, frame: `${headline}\n  at ${file}:${line}:${column}\n${excerpt}` }
}

/** The message if a transform refused a payload by its schema; undefined for any other exception. */
export function readRefusal(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || types.isProxy(thrown)) return undefined
  const sentence: unknown = Object.getOwnPropertyDescriptor(thrown, refusalMark)?.value
  return typeof sentence === 'string' ? sentence : undefined
}

function describeKind(thrown: unknown): string {
  if (types.isProxy(thrown)) return 'a proxy'
  if (thrown === undefined) return 'undefined'
  if (!types.isNativeError(thrown)) return describeValueKind(thrown)
  const name = readText(thrown, 'name')
  // the module chooses the name, which may contain payload, so only a name that looks like a class is shown
  const word = /^[A-Za-z_$][\w$]{0,39}$/.test(name) ? name : 'Error'
  const field = word === 'ZodError' ? readField(thrown) : undefined
  return `${/^[AEIOU]/i.test(word) ? 'an' : 'a'} ${word}${field === undefined ? '' : ` for ${field}`}`
}

function readField(thrown: object): string | undefined {
  try {
    return findPlainPath(thrown)
  } catch {
    return undefined
  }
}

function readMessage(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown
  if (typeof thrown === 'object' && thrown !== null && !types.isProxy(thrown)) return readText(thrown, 'message')
  return typeof thrown === 'number' || typeof thrown === 'boolean' ? String(thrown) : ''
}

function readText(source: object, key: string): string {
  try {
    const value: unknown = Reflect.get(source, key)
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}
