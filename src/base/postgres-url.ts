// The URL of a Postgres database: checks its form, and selects the parts that may be shown.

const encoded = String.raw`(?:[^\s%@/?#\p{Cc}]|%[\da-f]{2})*`
const host = String.raw`\[[\da-f:.]+\]|[\w.-]*`

/** The URLs that are accepted. A character that would end a part too early, such as a slash in a password, must be percent-encoded. */
const form = new RegExp(
  `^postgres(?:ql)?://(?:${encoded}@)?(?<host>(?:${host})(?::\\d{1,5})?)(?:/(?<database>${encoded}))?(?:\\?(?<query>[^\\s@#]*))?$`,
  'iu',
)

export function isPostgresUrl(text: string): boolean {
  return form.test(text)
}

/** `host:port/database`: all other parts of the URL may be secret. No part of an invalid URL is shown. */
export function describeDatabase(url: string): string {
  const { host: named = '', database = '', query = '' } = form.exec(url)?.groups ?? {}
  const socket = new URLSearchParams(query).get('host') ?? 'localhost'
  return `${named === '' ? socket : named}${database === '' ? '' : `/${database}`}`
}
