// Decodes the HTML entities of a reply like a Markdown parser, and removes the characters that change the direction of text.

/** The entities that language models write, and those for invisible characters and for characters of an address. */
const named: Readonly<Record<string, string>> = {
  amp: '&',
  AMP: '&',
  lt: '<',
  LT: '<',
  gt: '>',
  GT: '>',
  quot: '"',
  QUOT: '"',
  apos: "'",
  nbsp: '\u00A0',
  colon: ':',
  sol: '/',
  bsol: '\\',
  period: '.',
  commat: '@',
  quest: '?',
  num: '#',
  percnt: '%',
  equals: '=',
  plus: '+',
  comma: ',',
  semi: ';',
  excl: '!',
  dollar: '$',
  lowbar: '_',
  UnderBar: '_',
  ast: '*',
  midast: '*',
  lpar: '(',
  rpar: ')',
  lsqb: '[',
  lbrack: '[',
  rsqb: ']',
  rbrack: ']',
  lcub: '{',
  lbrace: '{',
  rcub: '}',
  rbrace: '}',
  grave: '`',
  DiacriticalGrave: '`',
  Hat: '^',
  verbar: '|',
  vert: '|',
  VerticalLine: '|',
  hyphen: '\u2010',
  dash: '\u2010',
  Tab: '\t',
  NewLine: ' ',
  NonBreakingSpace: '\u00A0',
  fjlig: 'fj',
  shy: '\u00AD',
  zwnj: '\u200C',
  zwj: '\u200D',
  lrm: '\u200E',
  rlm: '\u200F',
  NoBreak: '\u2060',
  ZeroWidthSpace: '\u200B',
  NegativeThinSpace: '\u200B',
  NegativeMediumSpace: '\u200B',
  NegativeThickSpace: '\u200B',
  NegativeVeryThinSpace: '\u200B',
  InvisibleTimes: '\u2062',
  it: '\u2062',
  InvisibleComma: '\u2063',
  ic: '\u2063',
  ApplyFunction: '\u2061',
}

/** Decodes the entities of a text. Entities with unknown names stay unchanged. */
export function decodeEntities(text: string): string {
  const decoded = text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{1,24}));/gi, (entity, decimal, hex, name) => {
    if (typeof name === 'string') return Object.hasOwn(named, name) ? (named[name] ?? entity) : entity
    return toCharacter(typeof hex === 'string' ? Number.parseInt(hex, 16) : Number(decimal))
  })
  return decoded === text ? text : removeBidiControls(decoded)
}

/** Removes the characters that reverse the text after them: "moc.elpmaxe" would read "example.com". */
export function removeBidiControls(text: string): string {
  return text.replace(/[\u202A-\u202E\u2066-\u2069]/g, '')
}

function toCharacter(code: number): string {
  if (code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return '\uFFFD'
  // a line break would start a new block if the text is read as Markdown again
  const isControl = code < 0x20 || (code >= 0x7f && code <= 0x9f)
  return isControl ? ' ' : String.fromCodePoint(code)
}
