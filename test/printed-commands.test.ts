// Every command that the program prints is safe to paste, whatever names it contains.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const src = join(import.meta.dirname, '../src')
const commands = readdirSync(join(src, 'cli')).flatMap((file) => /^([a-z-]+)\.ts$/.exec(file)?.[1] ?? [])
/** The beginning of a command in a text, up to a value. A quote or the end of a line ends the command before it. */
const openCommand = new RegExp(
  `(?:^|["'\`\\s(>])(?:hookloom (?:${commands.join('|')}|resume)\\b|(?:chmod|chown|rm|mv|cp|docker|kubectl) )[^"\`\\n\\0]*$`,
)
/** These quote each value. */
const quoting = /\b(?:formatCommand|quoteShellWord|formatInvocation|quoteFile)\b|^quoted/
/** The server makes this id. The page cannot import the quoting. */
const known = ['inspector/refusal.tsx {requestId}']

/** The values in `source` that come after the beginning of a command and are not quoted for a shell. */
function findUnquoted(file: string, source: string): string[] {
  if (!/(?:hookloom|chmod|chown|rm|mv|cp|docker|kubectl) /.test(source)) return []
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const found: string[] = []
  const note = (node: ts.Node) => {
    const { line } = tree.getLineAndCharacterOfPosition(node.getStart())
    if (!known.includes(`${file} ${node.getText()}`)) found.push(`${file}:${line + 1} ${node.getText()}`)
  }
  const isQuoted = (value: ts.Node) => quoting.test(value.getText())
  const visit = (node: ts.Node): void => {
    if (ts.isTemplateExpression(node) && !isQuoted(node.parent)) {
      let before = node.head.text
      for (const { expression, literal } of node.templateSpans) {
        if (openCommand.test(before) && !isQuoted(expression)) note(expression)
        before += `…${literal.text}`
      }
    }
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
      const { left, right } = node
      const text = ts.isStringLiteralLike(left) ? left.text : ''
      if (openCommand.test(text) && !ts.isStringLiteralLike(right) && !isQuoted(right)) note(right)
    }
    if (ts.isJsxExpression(node) && ts.isJsxElement(node.parent)) {
      const { children } = node.parent
      const before = children.slice(0, children.indexOf(node)).map((child) => child.getText())
      if (openCommand.test(before.join('')) && node.expression !== undefined && !isQuoted(node.expression)) note(node)
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

test('no command is printed with a value that is not quoted for a shell', () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file))
  expect(files.length).toBeGreaterThan(400)
  expect(files.flatMap((file) => findUnquoted(file, readFileSync(join(src, file), 'utf8')))).toEqual([])
})

test.each([
  ['`say "hookloom retry ${id}" now`', 1],
  ['`say "hookloom retry --hook ${hook} ${id}" now`', 2],
  ["'hookloom retry ' + id", 1],
  ['<code>hookloom resume {label}</code>', 1],
  ['`chmod 600 ${file}`', 1],
  ['`the hook "${hook}" has no hookloom token`', 0],
  ['`say "${formatCommand`hookloom retry ${id}`}" of ${name}`', 0],
  ['`"hookloom check" names ${name}`', 0],
])('the search for unquoted values reads %s', (source, count) => {
  expect(findUnquoted('x.tsx', source)).toHaveLength(count)
})
