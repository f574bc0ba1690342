// Renders the answer to the sender. A value from the payload must not change the structure of the answer: strangers write it, and
// TwiML, for example, can place calls that the operator pays for.
import { tryParseJson } from '../../base/json.ts'
import { describeFirstIssue } from '../model/issue.ts'
import { Problem } from '../model/problem.ts'
import { SenderResponse } from '../model/response.ts'
import { compileTemplate, type TemplateScope } from './template.ts'

/** The rendered body may still be too large: `parseResponse` checks it. */
export type ResponseTemplate = {
  render(scope: TemplateScope): SenderResponse
  readonly readsPayload: boolean
}

/** Throws `config-invalid` if the template does not parse, and for JSON if the body cannot be JSON. */
export function compileResponse({ status, contentType, body }: SenderResponse): ResponseTemplate {
  const template = compileTemplate(body)
  const escape = escapes[toSyntax(contentType)]
  // a placeholder outside of quotes is replaced by a letter here, which is not JSON
  if (toSyntax(contentType) === 'json' && tryParseJson(template.render(emptyScope, () => 'x')) === undefined) {
    throw new Problem(
      'config-invalid',
      `The template must be JSON for the content type ${contentType}, with each placeholder inside quotes.`,
    )
  }
  return {
    readsPayload: template.readsPayload,
    render: (scope) => ({ status, contentType, body: template.render(scope, escape) }),
  }
}

/** Throws `payload-invalid` with the field. Some stores cannot keep a NUL or half a surrogate pair, so U+FFFD replaces both. */
export function parseResponse(response: SenderResponse): SenderResponse {
  const body = response.body.replace(/\0|\p{Cs}/gu, '\ufffd')
  const parsed = SenderResponse.safeParse({ ...response, body })
  if (parsed.success) return parsed.data
  throw new Problem('payload-invalid', `response.${describeFirstIssue(parsed.error, response)}.`)
}

type Syntax = 'text' | 'xml' | 'json'

function toSyntax(contentType: string): Syntax {
  if (contentType.endsWith('json')) return 'json'
  return contentType.endsWith('xml') ? 'xml' : 'text'
}

const references: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}
/** Characters that XML 1.0 (section 2.2) allows in no document. */
// oxlint-disable-next-line no-control-regex -- these are the characters to find
const notXml = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g

const escapes: Readonly<Record<Syntax, (text: string) => string>> = {
  text: (text) => text,
  xml: (text) => text.replace(notXml, '\ufffd').replace(/[&<>"']/g, (character) => references[character] ?? character),
  json: (text) => JSON.stringify(text).slice(1, -1),
}

const emptyScope: TemplateScope = {
  payload: () => null,
  headers: {},
  query: {},
  path: '',
  source: undefined,
  event: undefined,
  now: () => '',
}
