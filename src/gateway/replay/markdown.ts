// The report of a replay as a comment in a pull request. Text that a sender may have chosen is always inside code.
import { cut, formatQuantity, takeStart, toPrintable, toPrintableLine } from '../../base/text.ts'
import type { ChangeFields, ReplayReport } from '../../model/api/replay.ts'

/** The line by which a workflow finds its comment again. */
const mark = '<!-- hookloom replay -->'
/** The maximum length of the comment. GitHub takes 65,536 characters. */
const maxCommentChars = 60_000
const maxValueChars = 600
const maxLines = 12

/** `base` and `edit`: the names of the compared versions, such as two folders. */
export function renderMarkdown(report: ReplayReport, names: { readonly base: string; readonly edit: string }): string {
  const { total, counts, groups, unstable, tooLarge, notRun, problems } = report
  const changed = total - counts.same
  const title =
    changed === 0
      ? 'no request changes'
      : `${formatQuantity(changed, 'request')} of ${total} ${changed === 1 ? 'changes' : 'change'}`
  const rows = Object.entries(counts).filter(([, count]) => count > 0)
  const head = [
    mark,
    `### Hookloom replay: ${title}`,
    `${formatQuantity(total, 'request')} through ${toCode(names.base)} (-) and ${toCode(names.edit)} (+).`,
    ['| class | requests |', '|---|---|', ...rows.map(([name, count]) => `| ${name} | ${count} |`)].join('\n'),
    ...problems.map(({ module, detail, frame, notCompared }) => {
      const lines = [detail, ...(frame === null ? [] : [frame])].join('\n')
      return `**${toCode(module)} does not load**, so ${formatQuantity(notCompared, 'request')} were not compared.\n\n${toBlock(lines, '')}`
    }),
  ]
  const notes = [
    ...(unstable.length === 0
      ? []
      : [
          `Left out, because two runs of the same code differ: ${unstable.map(({ path }) => toCode(path)).join(', ')}.`,
        ]),
    ...(tooLarge.length === 0 ? [] : [`${formatQuantity(tooLarge.length, 'request')} too large to replay.`]),
    ...(notRun === 0 ? [] : [`${formatQuantity(notRun, 'request')} not replayed: the time was up.`]),
  ]
  const shown: string[] = []
  let left = maxCommentChars - [...head, ...notes].join('\n\n').length
  for (const group of groups) {
    const text = renderGroup(group)
    left -= text.length + 2
    if (left < 0) break
    shown.push(text)
  }
  const more = groups.length - shown.length
  const rest = more === 0 ? [] : [`And ${formatQuantity(more, 'more group')} of changes.`]
  return `${[...head, ...shown, ...rest, ...notes].join('\n\n')}\n`
}

function renderGroup({ class: name, paths, count, percent, example }: ReplayReport['groups'][number]): string {
  const where = paths.filter((path) => path !== 'decision').map(toCode)
  const title = [`<b>${name}</b>`, ...(where.length === 0 ? [] : [where.join(', ')])].join(' ')
  const summary = `<summary>${toCodeElements(title)}: ${formatQuantity(count, 'request')}, ${percent} %</summary>`
  const lines = [`${example.deliveryId}  ${example.hook}`, ...example.changes.flatMap(renderChange)]
  return ['<details>', summary, '', toBlock(lines.join('\n'), 'diff'), '', '</details>'].join('\n')
}

function renderChange({ path, before, after }: ChangeFields): string[] {
  return [`  ${path}`, ...renderSide('-', before), ...renderSide('+', after)]
}

function renderSide(sign: '-' | '+', value: unknown): string[] {
  if (value === null || value === undefined) return []
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const cutText = cut(text, maxValueChars)
  const lines = cutText.split('\n')
  const more = lines.length > maxLines ? [`${sign} …`] : []
  return [...lines.slice(0, maxLines).map((line) => `${sign} ${line}`), ...more]
}

/** The text in a code block whose fence is longer than every run of backticks in the text, so that the text cannot end the block. */
function toBlock(text: string, language: string): string {
  const safe = toPrintable(text)
  const longest = Math.max(2, ...[...safe.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${safe}\n${fence}`
}

function toCode(text: string): string {
  return `\`${takeStart(toPrintableLine(text).replaceAll('`', "'"), 200)}\``
}

/** Makes each code span a `<code>` element, for `<summary>`, where Markdown is not read. All other text is returned unchanged. */
function toCodeElements(text: string): string {
  return text.replace(
    /`([^`]*)`/g,
    (_, code: string) => `<code>${code.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</code>`,
  )
}
