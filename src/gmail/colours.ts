// The colours of CSS and of HTML attributes, in a form that can be compared.

/** Red, green and blue from 0 to 255, or an unknown name, which is equal only to itself. */
export type Colour = readonly [number, number, number] | string

export const white: Colour = [255, 255, 255]
export const black: Colour = [0, 0, 0]
/** The sixteen colours of HTML, and those that are nearly white. */
const named = new Map(
  (
    'black 000000 silver c0c0c0 gray 808080 grey 808080 white ffffff maroon 800000 red ff0000 purple 800080 fuchsia ff00ff ' +
    'magenta ff00ff green 008000 lime 00ff00 olive 808000 yellow ffff00 navy 000080 blue 0000ff teal 008080 aqua 00ffff cyan 00ffff ' +
    'snow fffafa ivory fffff0 ghostwhite f8f8ff floralwhite fffaf0 mintcream f5fffa azure f0ffff aliceblue f0f8ff honeydew f0fff0 ' +
    'seashell fff5ee whitesmoke f5f5f5 lavenderblush fff0f5 oldlace fdf5e6 linen faf0e6 lightyellow ffffe0 beige f5f5dc ' +
    'cornsilk fff8dc lightcyan e0ffff lavender e6e6fa lemonchiffon fffacd gainsboro dcdcdc canvas ffffff canvastext 000000'
  )
    .match(/\S+ \S+/g)
    ?.map((pair) => pair.split(' '))
    .map(([name = '', digits = '']) => [name, readHexColour(digits)] as const),
)

function readHexColour(digits: string): Colour | undefined {
  const long =
    digits.length < 6 ? Array.from(digits.slice(0, 3), (digit) => digit + digit).join('') : digits.slice(0, 6)
  const [red, green, blue] = [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16))
  return red === undefined || green === undefined || blue === undefined ? undefined : [red, green, blue]
}

/** Reads a colour. Undefined if the text is not a colour, or is one that cannot be compared, such as `inherit`, a mixture or a variable. */
export function readColour(value: string): Colour | undefined {
  if (/^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/.test(value)) return readHexColour(value.slice(1))
  const call = /^(rgb|hsl)a?\(([^()]*)\)$/.exec(value)
  if (call !== null)
    return readColourCall(
      call[1] ?? '',
      (call[2] ?? '').split(/[ ,/]+/).filter((word) => word !== ''),
    )
  if (!/^[a-z]+$/.test(value) || /^(?:inherit|initial|unset|revert|transparent|currentcolor|none)$/.test(value))
    return undefined
  return named.get(value) ?? value
}

/** The words of the property `background` that are no colour. */
const otherWords =
  /^(?:repeat|round|space|no|x|y|scroll|fixed|local|left|right|top|bottom|center|cover|contain|auto|border|padding|content|box|text)$/

/** The colour in a value of `background`; `none` if the value has no colour, and undefined if it cannot be read. */
export function readBackground(value: string): Colour | undefined {
  const plain = value.replace(/(?<![\w-])[\w-]*(?:url|gradient|image|image-set)\((?:[^()]|\([^()]*\))*\)/g, ' ')
  const words = plain.match(/#[\da-f]+|(?:rgb|hsl)a?\([^()]*\)|[a-z]+/g) ?? []
  return (
    words
      .filter((word) => !otherWords.test(word))
      .map(readColour)
      .find((colour) => colour !== undefined) ?? 'none'
  )
}

function readColourCall(name: string, words: readonly string[]): Colour | undefined {
  const numbers = words.slice(0, 3).map((word) => Number.parseFloat(word))
  if (numbers.length < 3 || numbers.some((number) => Number.isNaN(number))) return undefined
  const [first = 0, second = 0, third = 0] = numbers
  if (name === 'rgb') {
    const [red = 0, green = 0, blue = 0] = numbers.map((number, at) =>
      words[at]?.endsWith('%') ? number * 2.55 : number,
    )
    return [red, green, blue]
  }
  const [saturation, lightness] = [second / 100, third / 100]
  const channel = (at: number) => {
    const place = (at + first / 30) % 12
    return (
      255 *
      (lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(place - 3, 9 - place, 1)))
    )
  }
  return [channel(0), channel(8), channel(4)]
}

/** A reader cannot see a difference of less than a tenth of the way from black to white. */
const minDifference = 25

export function isSameColour(one: Colour, other: Colour): boolean {
  if (typeof one === 'string' || typeof other === 'string') return one === other
  return one.every((channel, at) => Math.abs(channel - (other[at] ?? 0)) < minDifference)
}
