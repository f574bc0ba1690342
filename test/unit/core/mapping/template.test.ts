import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { Problem } from '../../../../src/core/model/problem.ts'
import { compileTemplate, type TemplateScope } from '../../../../src/core/mapping/template.ts'

const payload: JsonValue = {
  messages: [{ subject: 'Lunch', from: 'Ada' }],
  issue: { number: 12, draft: false, body: null, labels: ['bug'] },
  event: { type: 'app_mention' },
  path: 'src/main.ts',
  now: 'later',
  headers: { to: 'own field' },
  empty: '',
  blank: ' ',
  template: '{{messages[0].from}}',
  fields: { 'System.Title': 'A bug', 'a|b}}': 'odd' },
  'data[email]': 'ada@example.org',
  payload: 'inner',
}

type Parts = Partial<Omit<TemplateScope, 'payload'>> & { payload?: JsonValue }

function buildScope({ payload: given = payload, ...parts }: Parts = {}): TemplateScope {
  return {
    payload: () => given,
    headers: Object.assign(Object.create(null), { 'x-github-event': 'push', 'x.dotted': 'dots' }),
    query: Object.assign(Object.create(null), { topic: 'news', 'ids[]': '7' }),
    path: 'github',
    source: 'github',
    event: 'push',
    now: () => '2026-01-02T03:04:05.000Z',
    ...parts,
  }
}

function render(text: string, parts?: Parts): string {
  return compileTemplate(text).render(buildScope(parts))
}

function catchMessage(text: string): string {
  try {
    compileTemplate(text)
  } catch (error) {
    if (error instanceof Problem && error.code === 'config-invalid') return error.message
  }
  return 'compiled'
}

describe('templates', () => {
  test.each([
    ['{{messages[0].subject}} from {{ messages[0].from }}!', 'Lunch from Ada!'],
    ['{{payload.issue.number}}', '12'],
    ['{{issue.draft}}', 'false'],
    ['{{issue.labels}}', '["bug"]'],
    ['{{issue}}', '{"number":12,"draft":false,"body":null,"labels":["bug"]}'],
    ['[{{issue.body}}|{{missing.at.all}}]', '[|]'],
    ['{{headers.X-GitHub-Event}} {{headers.x-github-event}}', 'push push'],
    ['{{headers.x.dotted}}', 'dots'],
    ['{{query.topic}} {{query.ids[]}} {{query.Topic}}', 'news 7 '],
    ['{{path}} {{source}} {{event}} {{now}}', 'github github push 2026-01-02T03:04:05.000Z'],
    ['{{payload.path}} {{payload.now}} {{payload.event.type}}', 'src/main.ts later app_mention'],
    ['{{event.type}}', 'app_mention'],
    [`{{fields["System.Title"]}} {{ payload.fields['System.Title'] | truncate: 3 }}`, 'A bug A …'],
    [`{{fields["a|b}}"]}} {{fields['a|b}}'] | default: "|"}}`, 'odd odd'],
    [`{{["data[email]"]}} {{payload['data[email]']}} {{data.email}}`, 'ada@example.org ada@example.org '],
    [`{{headers["X-GitHub-Event"]}} {{headers['x.dotted']}} {{query["ids[]"]}}`, 'push dots 7'],
    [`{{["headers"].to}} {{["path"]}} {{["event"].type}} {{['payload']}}`, 'own field src/main.ts app_mention inner'],
    ['{"n":{"m":{{issue.number}}}}', '{"n":{"m":12}}'],
    ['plain } text { and }}', 'plain } text { and }}'],
    ['', ''],
  ])('the template %s reads the value that it names', (text, expected) => {
    expect(render(text)).toBe(expected)
  })

  test('a template reads no property of a prototype', () => {
    expect(render('{{toString}}{{constructor.name}}{{__proto__}}{{messages.map}}{{headers.constructor}}')).toBe('')
    expect(render('{{headers.toString}}{{query.valueOf}}', { headers: {}, query: {} })).toBe('')
  })

  test('{{payload}} is the whole payload as JSON, even if a field has that name', () => {
    expect(render('{{payload}}', { payload: { a: [1] } })).toBe('{"a":[1]}')
    expect(render('{{payload}}', { payload: { payload: 'inner' } })).toBe('{"payload":"inner"}')
    expect(render('{{payload.payload}}', { payload: { payload: 'inner' } })).toBe('inner')
    expect(render('{{payload[1]}}', { payload: [1, 'two'] })).toBe('two')
  })

  test('a template in a value is not rendered', () => {
    expect(render('{{template}}')).toBe('{{messages[0].from}}')
    expect(render('{{missing | default: "{{messages[0].from}}"}}')).toBe('{{messages[0].from}}')
  })

  test('an unknown source or event renders as empty text', () => {
    expect(render('<{{source}}{{event}}>', { source: undefined, event: undefined })).toBe('<>')
  })
})

describe('the filter default', () => {
  test.each([
    ['{{missing | default: "n/a"}}', 'n/a'],
    ['{{issue.body|default:"n/a"}}', 'n/a'],
    ['{{empty | default: "n/a"}}', 'n/a'],
    ['{{blank | default: "n/a"}}', ' '],
    ['{{issue.draft | default: "n/a"}}', 'false'],
    ['{{missing | default: \'it is "n/a"\'}}', 'it is "n/a"'],
    [String.raw`{{missing | default: "a\"b\\c\nd | }} e"}}`, 'a"b\\c\nd | }} e'],
    ['{{missing | default: ""}}', ''],
  ])('the filter default replaces only an empty value, as in %s', (text, expected) => {
    expect(render(text)).toBe(expected)
  })
})

describe('the filter truncate', () => {
  test.each([
    ['abcdef', 6, 'abcdef'],
    ['abcdef', 5, 'abcd…'],
    ['abcdef', 1, '…'],
    ['ab😀cd', 4, 'ab…'],
    ['ab😀cd', 5, 'ab😀…'],
    ['😀😀', 2, '…'],
    ['', 3, ''],
  ])(
    'truncate shortens %s to at most %i UTF-16 code units, with the ellipsis and without half a character',
    (text, limit, expected) => {
      expect(render(`{{text | truncate: ${limit}}}`, { payload: { text } })).toBe(expected)
    },
  )

  test('filters of a template apply in the order in which they are written', () => {
    expect(render('{{missing | default: "nothing here" | truncate: 8}}')).toBe('nothing…')
    expect(render('{{issue | truncate: 10 | default: "n/a"}}')).toBe('{"number"…')
  })
})

describe('properties of a compiled template', () => {
  test.each([
    ['hook:gmail:{{messages[0].id}}', true, false],
    ['{{messages[0].id}}', false, false],
    ['  {{messages[0].id}} behind', false, false],
    ['fixed', true, true],
    [' ', false, true],
  ])('the template %j begins with literal text: %s, and is static: %s', (text, startsWithLiteral, isStatic) => {
    expect(compileTemplate(text)).toMatchObject({ startsWithLiteral, isStatic })
  })

  test.each([
    ['{{ a.b | default: "c" }} {{now}}', true],
    ['{{payload}}', true],
    ['{{payload.event}}', true],
    ['{{event}} {{source}} {{path}} {{now}} {{headers.a}} {{query.b}}', false],
    ['nothing', false],
  ])('the template %s reads the payload: %s', (text, readsPayload) => {
    expect(compileTemplate(text).readsPayload).toBe(readsPayload)
  })
})

describe('invalid templates', () => {
  test.each([
    ['Hi {{subject', 'column 4: expected a "}}" after this "{{", found the end'],
    ['Hi {{subject | truncate: 5', 'column 4: expected a "}}" after this "{{", found the end'],
    ['{{}}', 'column 3: expected a path, as in {{messages[0].subject}}, found "}}"'],
    ['{{  }}', 'column 5: expected a path'],
    ['{{ | default: "x"}}', 'column 4: expected a path'],
    ['{{{subject}}}', 'column 3: expected a "|" or a "}}", found "{subject}}}"'],
    ['{{a}b}}', 'column 4: expected a "|" or a "}}", found "}b}}"'],
    ['{{ a..b }}', 'column 6: expected the name of a field, found ".b }}"'],
    ['one\ntwo {{a[x]}}', 'line 2, column 9: expected the number of an array item'],
    ['{{a["b}}', 'column 5: expected a key that the same quote ends, as in fields["a.b"], found "\\"b}}"'],
    ['{{a | upper}}', 'column 7: expected the filter "default" or "truncate", found "upper}}"'],
    ['{{a | }}', 'column 7: expected the filter "default" or "truncate", found "}}"'],
    ['{{a | default}}', 'column 14: expected a ":" and an argument, as in default: "n/a", found "}}"'],
    ['{{a | default: n/a}}', 'column 16: expected a text in quotes, as in default: "n/a", found "n/a}}"'],
    ['{{a | default: "n/a}}', 'column 16: expected a text in quotes'],
    [String.raw`{{a | default: "\q"}}`, String.raw`column 17: expected one of \\ \" \' \n \t`],
    ['{{a | truncate: 0}}', 'column 17: expected a whole number above 0, as in truncate: 500, found "0}}"'],
    ['{{a | truncate: -1}}', 'column 17: expected a whole number above 0'],
    ['{{a | truncate: 2.5}}', 'column 18: expected a "|" or a "}}", found ".5}}"'],
    ['{{a | truncate: "5"}}', 'column 17: expected a whole number above 0'],
    ['{{a | truncate: 5 6}}', 'column 19: expected a "|" or a "}}"'],
    ['{{headers}}', 'column 10: expected one of the headers, as in {{headers.x-github-event}}'],
    ['{{query[0]}}', 'column 8: expected one of the query'],
    ['{{headers.}}', 'column 11: expected a name'],
  ])('the template %s is refused with the column, what was expected and what was found', (text, message) => {
    expect(catchMessage(text)).toContain(message)
  })

  test.each([
    ['{{#if subject}}x{{/if}}', 'column 3: templates have no logic, found "#if". Write a transform for it.'],
    ['{{ #each messages | truncate: 3 }}', 'column 4: templates have no logic, found "#each".'],
    ['{{#eq a "b"}}', 'templates have no logic, found "#eq".'],
    ['{{subject}}{{else}}', 'column 14: templates have no logic, found "else".'],
    ['{{/if}}', 'templates have no logic, found "/if".'],
    ['{{^subject}}', 'templates have no logic, found "^subject".'],
    ['{{> footer}}', 'templates have no logic, found "> footer".'],
    ['{{! a remark}}', 'templates have no logic, found "! a".'],
    ['{{&subject}}', 'templates have no logic, found "&subject".'],
  ])('the tag %s of another template language is refused and is not read as a field', (text, message) => {
    expect(catchMessage(text)).toContain(message)
  })

  test('a field whose name only begins with a tag of another language is read, and below payload a field may have the name of a tag', () => {
    expect(
      render('{{elsewhere}} {{payload.else}} {{payload.#text}}', { payload: { elsewhere: 1, else: 2, '#text': 3 } }),
    ).toBe('1 2 3')
  })
})
