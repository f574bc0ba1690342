// Command lines that people copy into a shell. Their names may come from an attacker, so a shell reads each value as one word, whatever it contains.

/** The characters of a word that needs no quotes. */
const plainWord = /^[\w@%+=:,./-]+$/
/** A terminal would obey a control character, and a reader would not see an invisible one. */
const unseen = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u
/** In addition, the characters that a shell reads inside double quotes. */
const active = /[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029$`"\\!]/u

/** Quotes a word of a command line that stands alone, for bash or zsh. */
export function quoteShellWord(word: string): string {
  return quote(word, unseen)
}

function quote(word: string, odd: RegExp): string {
  if (plainWord.test(word)) return word
  if (!odd.test(word)) return `'${word.replaceAll("'", `'\\''`)}'`
  // an interactive shell would replace `!` by a command of its history
  return `$'${word.replace(new RegExp(`['!\\\\]|${odd.source}`, 'gu'), toOctal)}'`
}

function toOctal(character: string): string {
  return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

/**
 * Writes a command for a sentence: formatCommand`hookloom retry ${id}`. Each value is one word, which no shell runs, even if the double quotes of
 * the sentence are copied with the command. No value is read as an option, so a value that is no value of an option must come last.
 */
export function formatCommand(words: TemplateStringsArray, ...values: readonly string[]): string {
  return values.reduce((line, value, at) => {
    const word = quote(value, active)
    const next = words[at + 1] ?? ''
    if (!value.startsWith('-')) return `${line}${word}${next}`
    return `${/ --[\w-]+ $/.test(line) ? line.replace(/ $/, '=') : `${line}-- `}${word}${next}`
  }, words[0] ?? '')
}
