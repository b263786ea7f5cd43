// One colour per kind of code, in light and dark; and those of comparisons.
//
// Functions of a kind differ a little in lightness, by their name, so that neighbours can be told
// apart while the kind stays obvious.

export const PLACES = ["Python", "C extension", "Interpreter", "libc", "Kernel", "GC",
                       "Other library", "Unknown"];

//                     hue, saturation, lightness in light and in dark
const COLOURS = [
  [33, 90, 70, 62],   // Python: warm, it is what people look for
  [152, 42, 66, 56],  // C extension
  [258, 48, 78, 70],  // interpreter
  [205, 52, 74, 64],  // libc
  [352, 58, 76, 67],  // kernel
  [318, 60, 72, 68],  // GC
  [66, 38, 66, 58],   // other library
  [220, 8, 80, 60],   // unknown
];

function hash(text) {
  let value = 2166136261;
  const length = Math.min(text.length, 64);
  for (let i = 0; i < length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return (value >>> 8) & 0xff;
}

export function placeColour(place, dark, shade = 0.5) {
  const [hue, saturation, light, lightInDark] = COLOURS[place] ?? COLOURS[7];
  const lightness = (dark ? lightInDark : light) + (shade - 0.5) * (dark ? 11 : 12);
  return `hsl(${hue + (shade - 0.5) * 8} ${saturation - (dark ? 12 : 0)}% ${lightness}%)`;
}

// Colours of functions, remembered per profile and theme.
export class Palette {
  constructor(profile, dark) {
    this.profile = profile;
    this.dark = dark;
    this.cache = new Map();
  }

  functionColour(fn) {
    let colour = this.cache.get(fn);
    if (colour === undefined) {
      colour = placeColour(this.profile.placeOf(fn), this.dark,
                           hash(this.profile.nameOf(fn)) / 255);
      this.cache.set(fn, colour);
    }
    return colour;
  }
}

// change: -1 (all of it is gone) ... 0 ... 1 (it is new).
export function changeColour(change, dark) {
  const size = Math.min(1, Math.abs(change));
  const hue = change > 0 ? 6 : 214;
  if (dark) return `hsl(${hue} ${8 + 66 * size}% ${58 + 8 * size}%)`;
  return `hsl(${hue} ${10 + 75 * size}% ${88 - 24 * size}%)`;
}
