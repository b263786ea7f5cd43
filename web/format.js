// Numbers for people. Weights are time where the event's unit is ns, else a count.

const THIN = "\u202f"; // narrow space between number and unit

function digits(value) {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function formatCount(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function formatTime(ns) {
  const size = Math.abs(ns);
  const sign = ns < 0 ? "−" : "";
  if (size === 0) return `0${THIN}ms`;
  if (size >= 999.5e6) return `${sign}${digits(size / 1e9)}${THIN}s`;
  if (size >= 999.5e3) return `${sign}${digits(size / 1e6)}${THIN}ms`;
  if (size >= 1e3) return `${sign}${digits(size / 1e3)}${THIN}µs`;
  return `${sign}${size.toFixed(0)}${THIN}ns`;
}

function formatEvents(value) {
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "";
  if (size >= 999.5e9) return `${sign}${digits(size / 1e12)}${THIN}T`;
  if (size >= 999.5e6) return `${sign}${digits(size / 1e9)}${THIN}G`;
  if (size >= 999.5e3) return `${sign}${digits(size / 1e6)}${THIN}M`;
  if (size >= 1e4) return `${sign}${digits(size / 1e3)}${THIN}k`;
  return sign + formatCount(size);
}

export function formatWeight(value, unit) {
  if (unit === "ns") return formatTime(value);
  return unit === "samples" ? formatCount(value) : formatEvents(value);
}

export function formatPercent(share) {
  const percent = share * 100;
  if (!Number.isFinite(percent)) return "–";
  const size = Math.abs(percent);
  const sign = percent < 0 ? "−" : "";
  // Nearly all is not all.
  if (size >= 99.95 && size < 100) return `${sign}99.9${THIN}%`;
  if (size >= 100) return `${sign}${size.toFixed(0)}${THIN}%`;
  if (size >= 0.095 || size === 0) return `${sign}${size.toFixed(1)}${THIN}%`;
  return size >= 0.005 ? `${sign}${size.toFixed(2)}${THIN}%` : `<${THIN}0.01${THIN}%`;
}

// A change: always with its sign.
export function formatDelta(text, value) {
  return value > 0 ? `+${text}` : text;
}

// Ticks for an axis of time: about `count` round steps.
export function niceStep(span, count) {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// Names may be 10 KB long; nothing on a screen is.
export function shorten(text, most = 300) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
