// The attachments of a mail at Google: which part they are, and their contents.
import { z } from 'zod'
import type { SourceFile, SourceHost, SourceParts } from '../../../define.ts'
import { Problem, SourceFailure, tryParseJson, type WatchedGmail } from '../shared/kit.ts'
import { createSharedLogin, refusedLoginMs } from '../shared/login.ts'
import { listFileParts, maxCountedFiles } from '../shared/parts.ts'
import { createGmailApi, type GmailApi, type GmailMessage, type MailPart } from './api.ts'
import { type AccessTokens, createCall } from './call.ts'
import { type Credentials, readCredentials } from './credentials.ts'
import { createTokens, scopes } from './google.ts'
import { partReader } from './message.ts'
import { isConsentMissing } from './pace.ts'

/**
 * The id of a mail, and the id of a part, which never changes:
 * https://developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages#MessagePart
 */
const Ref = z.tuple([z.string().min(1), z.string()])

/** The files of a mail. Throws if its parts are malformed. */
export function listGmailFiles({ id, payload }: GmailMessage): SourceFile[] {
  return listFileParts(payload ?? {}, partReader, maxCountedFiles).flatMap((part) => {
    const { partId, body } = part
    if (partId === undefined) return []
    return [{ ...partReader.fileOf(part), ref: JSON.stringify([id, partId]), bytes: body?.size }]
  })
}

/** Reads the contents of files, with a token that runs share. Undefined for a mail that was deleted. Throws as the calls to Gmail do. */
export function createGmailFiles(gmail: WatchedGmail, host: SourceHost): NonNullable<SourceParts['readFiles']> {
  const { dir, clock, pause } = host
  const random = Math.random
  let opened: { readonly stamp: string; readonly tokens: AccessTokens } | undefined

  /** A person may consent again at any time. */
  function openTokens(): AccessTokens {
    const credentials = readCredentials(dir, gmail)
    const stamp = JSON.stringify(credentials)
    if (opened?.stamp !== stamp) opened = { stamp, tokens: shareTokens(credentials) }
    return opened.tokens
  }

  function shareTokens(credentials: Credentials): AccessTokens {
    // the request for a token does not end with the run that was the first to ask
    const call = createCall({ pause, random, signal: host.signal })
    const { account, endpoints } = gmail
    const parts = { credentials, tokenUrl: endpoints.oauthToken, call, clock, scope: scopes.gmail, subject: account }
    const tokens = createTokens(parts)
    return { ...tokens, get: createSharedLogin(clock, () => tokens.get().catch(rethrowAsFailure)) }
  }

  return async function* (refs, { signal }) {
    const call = createCall({ pause, random, signal, tokens: openTokens() })
    const api = createGmailApi({ call, base: gmail.endpoints.gmail })
    let last: { readonly id: string; readonly message: GmailMessage | undefined } | undefined
    for (const ref of refs) {
      const [id, partId] = Ref.parse(tryParseJson(ref))
      if (last?.id !== id) last = { id, message: await api.message(id, 'full') }
      yield await readPart(api, id, findPart(last.message?.payload, partId))
    }
  }
}

function rethrowAsFailure(thrown: unknown): never {
  if (!(thrown instanceof Problem)) throw thrown
  const retryAfterMs = isConsentMissing(thrown) ? refusedLoginMs : undefined
  throw new SourceFailure(thrown.message, { retryAfterMs, cause: thrown })
}

function findPart(top: MailPart | undefined, partId: string): MailPart | undefined {
  const open = top === undefined ? [] : [top]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part.partId === partId) return part
    open.push(...(part.parts ?? []))
  }
  return undefined
}

/** A part without an attachment id has its whole content in `data`: the same page, MessagePartBody. */
async function readPart(api: GmailApi, id: string, part: MailPart | undefined): Promise<Uint8Array | undefined> {
  const { attachmentId, data } = part?.body ?? {}
  const text = data ?? (attachmentId === undefined ? undefined : await api.storedText(id, attachmentId))
  return text === undefined ? undefined : Buffer.from(text, 'base64url')
}
