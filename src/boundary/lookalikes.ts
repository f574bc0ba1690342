// Maps a code point to the plain characters that a careless reader takes it for. The tables follow confusables.txt of Unicode (UTS #39), for the
// characters of boundary markers and chat-template tokens only.

/** Replaces a letter or digit that looks like none of A–Z and 0–9. */
export const foreignLetter = '\uFFFD'
/** Replaces any other character: an emoji, a currency, a bullet. */
const otherCharacter = '~'

/**
 * Small and capital forms differ on purpose: `η` looks like n, but `Η` like H. If a letter resembles two letters, the letter that occurs in a
 * marker wins.
 */
const letters: Record<string, string> = {
  A: 'АаΑαΛᴀɑᎪꓮӒ',
  B: 'ВвΒβʙᏴꓐ',
  C: 'СсСϹϲςᴄᏟꓚ',
  D: 'ԀԁΔᴅĐđÐðɖᎠꓓ',
  E: 'ЕеЄєЭэЗзΕεϵΞξΣᴇƐɛ℮ᎬꓰɆɇƏə',
  F: 'Ϝϝꜰƒꓝ',
  G: 'ԌԍɢɡᏀꓖ',
  H: 'НнҺһΗʜᎻꓧհ',
  I: 'ІіΙιıɪӀӏꓲ',
  J: 'ЈјᴊɉᎫꓙ',
  K: 'КкΚκᴋᏦꓗ',
  L: 'ʟλԼŁłᏞꓡ',
  M: 'МмΜᴍᎷꓟ',
  N: 'ИиПпΝνηɴոռղꓠ',
  O: 'ОоΟοσθΘᴏØøɵօՕꓳ',
  P: 'РрΡρᴘᏢꓑ',
  R: 'ЯяГгʀᎡꓣ',
  S: 'ЅѕꜱՏᏚꓢ',
  T: 'ТтΤτᴛŦŧᎢꓔ',
  U: 'ЦцЏџυμᴜսՍꓴ',
  V: 'Ѵѵᴠꓦ',
  W: 'ԜԝωϢшᴡᎳꓪ',
  X: 'ХхΧχҲҳꓫ',
  Y: 'УуΥγʏҮүꓬ',
  Z: 'ΖζᴢᏃꓜ',
}

const characters: Record<string, string> = {
  '<': '‹«〈《⟨⟪❬❮❰⦉⦑⦓⧼⧀˂ᐸᗏ≪⋘⋖⪡⫷≺⊰⊲◁◀◄⍃\u{1D236}',
  '>': '›»〉》⟩⟫❭❯❱⦊⦒⦔⧽⧁˃ᐳᗒ≫⋙⋗⪢⫸≻⊱⊳▷▶►⍄\u{1D237}',
  '[': '【〔〖⟦⁅❲〚',
  ']': '】〕〗⟧⁆❳〛',
  '|': 'ǀ│┃∣❘⏐¦',
  '"': '“”„‟″',
  "'": '‘’‚‛′ʼ',
  // U+2800, the empty braille cell, looks blank but is not white space in Unicode
  ' ': '\u2800',
  _: '▁−─━ーㅡ一',
}

const table = new Map<number, string>()
for (const [character, forms] of [...Object.entries(letters), ...Object.entries(characters)]) {
  for (const form of forms) table.set(form.codePointAt(0) ?? 0, character)
}

// Compatibility forms of `<`, `[`, `&`, `%`, `\` and of the brackets above: wide, small, upright, negated, or combined with letters.
const openerForms = '＜﹤≮⊀⋪\u2329︿︽［﹇︻︹︗\uFE5D\u{1F12A}\u{1F240}-\u{1F248}＆﹠％﹪＼﹨'

/** Finds each character that can begin a marker, a token or an escape. A text without such a character contains no marker, token or escape. */
export const opener = new RegExp(`[<\\[&%\\\\${characters['<']}${characters['[']}${openerForms}]`, 'u')

/**
 * The first code points of letters in a dark circle or square and of regional indicators: each range is A–Z in order, and has no compatibility
 * form in Unicode.
 */
const enclosedStarts = [0x1f150, 0x1f170, 0x1f1e6]

/** The maximum number of characters for one code point. No ligature of Latin letters has more letters. A single Arabic character (U+FDFA) would unfold to eighteen letters. */
const maxUnfolded = 4

const invisible = /^[\p{C}\p{M}\p{Default_Ignorable_Code_Point}]$/u
const blank = /^[\s\p{Z}]$/u

const ascii = Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (blank.test(character)) return ' '
  if (invisible.test(character)) return ''
  return character === '-' ? '_' : character.toUpperCase()
})

function foldPlain(char: string): string {
  const code = char.codePointAt(0) ?? 0
  const known = ascii[code] ?? table.get(code)
  if (known !== undefined) return known
  if (invisible.test(char)) return ''
  if (blank.test(char)) return ' '
  if (/^[\p{Pd}\p{Pc}]$/u.test(char)) return '_'
  return /^[\p{L}\p{N}]$/u.test(char) ? foreignLetter : otherCharacter
}

/**
 * The characters that a code point looks like: capitals A–Z, digits, ASCII punctuation, `' '` for white space, `_` for a character that joins words,
 * an empty text for an invisible character or an accent, and the two replacements above.
 */
export function foldCodePoint(code: number): string {
  const known = ascii[code] ?? table.get(code)
  if (known !== undefined) return known
  // Han and Hangul: frequent, slow to normalise, and never look-alikes
  if ((code >= 0x3400 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3)) return foreignLetter
  for (const first of enclosedStarts) {
    if (code >= first && code < first + 26) return String.fromCharCode(0x41 + code - first)
  }
  const char = String.fromCodePoint(code)
  if (invisible.test(char)) return ''
  const plain = Array.from(char.normalize('NFKD'), foldPlain).join('')
  if (plain !== foreignLetter) return plain.length > maxUnfolded ? foreignLetter : plain
  // converted to capitals only now: a small letter may have a look-alike that its capital does not have
  return Array.from(char.toUpperCase().normalize('NFKD'), foldPlain).join('').slice(0, maxUnfolded)
}
