// A model that scores rows: @about@
//
// Written by `rarestream export`. It is an ES module without dependencies, for browsers, Node, Deno and Bun:
//
// begin columns
//   import { scoreSparse } from "./@file@";
//   scoreSparse([3, 17], [1, 0.5]);      // features 3 and 17, counted from 0, and their values
// end columns
// begin hashed
//   import { score } from "./@file@";
//   score(@example@);
// end hashed
//
// A larger score means more likely positive. It is the sum of weight times value over the features of a row. Before that,
// the row is scaled: @scale_rule@.
// Features without a weight count in the scaling only.
// begin probability
// probability(score) is the probability that a row of that score is positive.
// end probability

// ---- The model

const SCALE = @scale@;
// begin probability
const SLOPE = @slope@, INTERCEPT = @intercept@; // log odds = SLOPE * score + INTERCEPT
// end probability
// begin hashed
const BITS = @bits@; // a feature is one of 2^BITS slots
const PLAN = @plan@;
// end hashed

// Features in ascending order, and the weight of each, in base64 of little-endian numbers.
const INDEX = new Int32Array(bytes(@index@));
const WEIGHT = new @array@(bytes(@weight@));
// begin max
const LARGEST = new Float32Array(bytes(@largest@)); // the largest absolute value of each feature
// end max

function bytes(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found.buffer;
}

// ---- Scoring

/**
 * Scores a row that is given by the indices of its features, from 0, and their values. The order does not matter; values
 * of equal indices are added.
 *
 * @param {ArrayLike<number>} indices
 * @param {ArrayLike<number>} values
 * @returns {number} the score
 */
export function scoreSparse(indices, values) {
  if (indices.length !== values.length) {
    throw new RangeError(`scoreSparse: ${indices.length} indices, but ${values.length} values.`);
  }
  const row = new Map();
  for (let i = 0; i < indices.length; i++) {
    const index = indices[i], value = Math.fround(values[i]);
    if (!Number.isInteger(index) || index < 0) {
      throw new RangeError(`scoreSparse: an index must be a whole number >= 0, got ${index}.`);
    }
    if (!Number.isFinite(value)) throw new RangeError(`scoreSparse: a value must be a finite float32, got ${values[i]}.`);
    row.set(index, (row.get(index) ?? 0) + value);
  }
  return scoreSlots(row);
}

// begin probability
/**
 * The probability that a row is positive.
 *
 * @param {number} score the score of the row
 * @returns {number} between 0 and 1
 */
export function probability(score) {
  return 1 / (1 + Math.exp(-(SLOPE * score + INTERCEPT)));
}

// end probability
// The score of a row whose indices are distinct.
function scoreSlots(row) {
  let sum = 0, squares = 0;
  for (const [index, total] of row) {
    const place = find(index);
    let value = Math.fround(total);
    // begin max
    const largest = Math.max(place < 0 ? 0 : LARGEST[place], Math.abs(value));
    value = largest > 0 ? value / largest : 0;
    // end max
    if (place >= 0) sum += WEIGHT[place] * value;
    squares += value * value;
  }
  return SCALE === "none" || squares === 0 ? sum : sum / Math.sqrt(squares);
}

// The place of a feature in INDEX, or -1.
function find(index) {
  let low = 0, high = INDEX.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    if (INDEX[middle] === index) return middle;
    if (INDEX[middle] < index) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
// begin hashed

// ---- Names to slots

const encoder = new TextEncoder();
let buffer = new Uint8Array(1024); // the UTF-8 bytes of the text that is hashed
const seeds = new Map(); // the hashes of namespaces

/**
 * The slot of a feature: murmur3(name, seed = murmur3(namespace, seed = 0)) modulo 2^BITS, of their UTF-8 bytes.
 *
 * @param {string} namespace such as a column
 * @param {string} name such as the text of a cell
 * @returns {number} the index for scoreSparse
 */
export function slot(namespace, name) {
  return hash(namespace, name) & (2 ** BITS - 1);
}

function hash(namespace, name) {
  let seed = seeds.get(namespace);
  if (seed === undefined) {
    if (seeds.size >= 10000) seeds.clear();
    seeds.set(namespace, (seed = murmur3(namespace, 0)));
  }
  return murmur3(name, seed);
}

// Writes text to the buffer; returns the number of its bytes.
function encodeText(text) {
  if (buffer.length < 3 * text.length) buffer = new Uint8Array(6 * text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 128) {
      if (/\p{Surrogate}/u.test(text)) throw new TypeError("half of a surrogate pair is no character.");
      return encoder.encodeInto(text, buffer).written;
    }
    buffer[i] = code;
  }
  return text.length;
}

// MurmurHash3_x86_32, as a signed number.
function murmur3(text, seed) {
  const size = encodeText(text), data = buffer;
  let h = seed;
  const whole = size & ~3;
  for (let i = 0; i < whole; i += 4) {
    h ^= scrambled(data[i] | (data[i + 1] << 8) | (data[i + 2] << 16) | (data[i + 3] << 24));
    h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  }
  let rest = 0;
  for (let i = size - 1; i >= whole; i--) rest = (rest << 8) | data[i];
  h ^= scrambled(rest) ^ size;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

function scrambled(block) {
  block = Math.imul(block, 0xcc9e2d51);
  return Math.imul((block << 15) | (block >>> 17), 0x1b873593);
}

/**
 * Scores a row that is given by its features.
 *
 * @param {Iterable<[string, string, number]>} features namespace, name and value of each
 * @returns {number} the score
 */
export function scoreFeatures(features) {
  const row = new Row();
  for (const [namespace, name, value] of features) row.add(namespace, name, value);
  return row.score();
}

// ---- Rows with names of columns: what a value becomes is decided by the plan of its column

const CATEGORY = 1, NUMBER = 2, TEXT = 4, DATE = 8, AUTO = 16; // kinds of a column, added up; 0: it is ignored
const LARGEST_FLOAT = 3.4028234663852886e38;
const MOST_CROSSED = 65536; // features of one cross in one row
const KINDS = new Map(PLAN.columns);
const CROSSED = new Set(PLAN.crosses.flatMap((cross) => cross.split("*")));
const [, UNIT, SHORTEST, LONGEST = SHORTEST] = PLAN.ngrams.match(/^(\w+):(\d+)(?:-(\d+))?$/);

/**
 * Scores a row such as { site: "a.com", price: 3.5, tags: ["x", "y"] }. Text, numbers, bigints, booleans, dates, arrays,
 * sets, and objects or maps of these are features; null, undefined, NaN and empty text are missing.
 *
 * @param {Object<string, any>} row values by the names of their columns
 * @returns {number} the score
 */
export function score(row) {
  return encode(row).score();
}

/**
 * The features of a row.
 *
 * @param {Object<string, any>} row values by the names of their columns
 * @returns {{indices: number[], values: number[]}} slots, ascending, and their values, as scoreSparse takes them
 */
export function features(row) {
  const found = [...encode(row).slots].sort((a, b) => a[0] - b[0]);
  return { indices: found.map(([index]) => index), values: found.map(([, value]) => Math.fround(value)) };
}

function encode(row) {
  const found = new Row();
  for (const [name, value] of row instanceof Map ? row : Object.entries(row)) {
    const kinds = KINDS.get(name) ?? (PLAN.open ? AUTO : 0);
    if (kinds) found.cell({ name, kinds, crossed: CROSSED.has(name) }, value);
  }
  found.crosses();
  return found;
}

class Row {
  slots = new Map(); // the sum of the values in each slot
  parts = new Map(); // of the columns that are crossed: their names and values
  seen = new Set(); // names of a list or a text

  score() {
    for (const value of this.slots.values()) {
      if (!Number.isFinite(Math.fround(value))) throw new RangeError("the features of this row sum to too large a value.");
    }
    return scoreSlots(this.slots);
  }

  add(namespace, name, value) {
    if (!(Math.abs(value) <= LARGEST_FLOAT)) fail(namespace, "must have finite numbers within float32", value);
    const index = slot(namespace, name);
    this.slots.set(index, (this.slots.get(index) ?? 0) + Math.fround(value));
  }

  feature(column, name, value, crossed = column.crossed) {
    this.add(column.name, name, value);
    if (crossed) this.part(column, name, value);
  }

  part(column, name, value) {
    if (!this.parts.has(column.name)) this.parts.set(column.name, []);
    this.parts.get(column.name).push([name, value]);
  }

  cell(column, value) {
    if (value === null || value === undefined) return;
    switch (typeof value) {
      case "string":
        return this.string(column, value);
      case "boolean":
        return this.string(column, String(value));
      case "number":
        return this.number(column, value);
      case "bigint":
        return this.digits(column, String(value));
      case "object":
        if (value instanceof Date) return this.instant(column, value);
        if (isList(value)) return this.list(column, value);
        return this.map(column.name, value);
      default:
        fail(column.name, "has a value that cannot be a feature", typeof value);
    }
  }

  // Text is a number only in a column of numbers.
  string(column, text) {
    if (text === "" || PLAN.missing.includes(text)) return;
    const { name, kinds } = column;
    if (kinds === CATEGORY || kinds & AUTO) return this.feature(column, text, 1);
    if (kinds & TEXT) {
      this.seen.clear();
      return this.tokens(column, text);
    }
    if (kinds & DATE) {
      return this.date(column, dateOf(text) ?? fail(name, "has dates (YYYY-MM-DD, with or without HH:MM)", text));
    }
    this.numberFound(column, numberOf(text) ?? fail(name, "has numbers", text));
  }

  // A number as it is written.
  digits(column, text) {
    if (PLAN.missing.includes(text)) return;
    const number = numberOf(text) ?? fail(column.name, "has too large a number", text);
    if (isNumeric(column)) return this.numberFound(column, number);
    this.string(column, number.digits ?? text);
  }

  number(column, value) {
    if (Number.isNaN(value)) return;
    if (!Number.isFinite(value)) fail(column.name, "must have finite numbers", value);
    const text = spelled(value);
    if (Number.isSafeInteger(value)) return this.digits(column, text);
    if (!isNumeric(column)) return this.string(column, text);
    if (!PLAN.missing.includes(text)) this.numbers(column, value, column.crossed);
  }

  numberFound(column, { value, digits }) {
    const both = digits !== undefined && column.kinds & (CATEGORY | AUTO); // a whole number may be a category, too
    if (both) this.feature(column, digits, 1);
    if (!both || column.kinds & (NUMBER | AUTO)) this.numbers(column, value, column.crossed && !both);
  }

  numbers(column, value, crossed) {
    if (PLAN.numbers === "raw") {
      if (Math.fround(value) !== 0) this.feature(column, "", value, crossed);
    } else if (value === 0) {
      this.feature(column, "~0", 1, crossed);
    } else {
      const [bucket, share] = softBucket(value);
      const lower = Math.fround(1 - share), upper = Math.fround(share);
      if (lower !== 0) this.feature(column, bucketName(bucket, value < 0), lower, crossed);
      if (upper !== 0) this.feature(column, bucketName(bucket + 1, value < 0), upper, crossed);
    }
  }

  instant(column, value) {
    if (Number.isNaN(value.getTime())) return;
    if (column.kinds & (DATE | AUTO)) return this.date(column, { value, hasTime: true });
    this.string(column, dateText(value));
  }

  date(column, { value, hasTime }) {
    if (hasTime) this.feature(column, `hour=${value.getUTCHours()}`, 1);
    this.feature(column, `weekday=${(value.getUTCDay() + 6) % 7}`, 1); // 0: Monday
    this.feature(column, `month=${value.getUTCMonth() + 1}`, 1);
  }

  list(column, values) {
    this.seen.clear();
    for (const text of elements(column.name, values)) {
      if (text === "" || PLAN.missing.includes(text)) continue;
      if (column.kinds & TEXT) this.tokens(column, text);
      else this.once(column, text);
    }
  }

  // A name counts once, however often it comes, unless counts are wanted.
  once(column, name) {
    const key = hash(column.name, name);
    const first = !this.seen.has(key);
    this.seen.add(key);
    if (first || PLAN.counts) this.feature(column, name, 1, column.crossed && first);
  }

  // N-grams of words, or of characters.
  tokens(column, text) {
    const words = lowered(text).match(UNIT === "words" ? /[a-z0-9\u0080-\uffff]+/g : /[^\u0000-\u0020]+/g) ?? [];
    const units = UNIT === "words" ? words : [...words.join(" ")];
    const between = UNIT === "words" ? " " : "";
    for (let i = 0; i < units.length; i++) {
      for (let n = Number(SHORTEST); n <= LONGEST && i + n <= units.length; n++) {
        this.once(column, units.slice(i, i + n).join(between));
      }
    }
  }

  // An object inside a row: the namespace is the path to it.
  map(path, entries) {
    for (const [key, value] of entries instanceof Map ? entries : Object.entries(entries)) {
      const number = typeof value === "bigint" ? Number(value) : value;
      if (typeof number === "number") {
        if (!Number.isNaN(number) && number !== 0) this.add(path, key, number);
      } else if (typeof value === "object" && value !== null && !(value instanceof Date) && !isList(value)) {
        this.map(`${path}.${key}`, value);
      } else {
        for (const text of elements(path, isList(value) ? value : [value])) {
          if (text !== "" && !PLAN.missing.includes(text)) this.add(path, `${key}=${text}`, 1);
        }
      }
    }
  }

  crosses() {
    for (const cross of PLAN.crosses) {
      let found = [["", 1]];
      cross.split("*").forEach((name, depth) => {
        const parts = this.parts.get(name) ?? [];
        if (found.length * parts.length > MOST_CROSSED) fail(cross, "has too many features", found.length * parts.length);
        found = found.flatMap(([before, value]) =>
          parts.map(([part, factor]) => [depth ? `${before}\u001f${part}` : part, Math.fround(value * factor)]),
        );
      });
      for (const [name, value] of found) this.add(cross, name, value);
    }
  }
}

function fail(place, rule, value) {
  throw new TypeError(`${place}: ${rule}, got ${JSON.stringify(String(value))}.`);
}

function isList(value) {
  return Array.isArray(value) || value instanceof Set || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function isNumeric({ kinds }) {
  return kinds !== CATEGORY && !(kinds & (TEXT | DATE));
}

function lowered(text) {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()); // of ASCII letters only
}

// The elements of a list as text.
function* elements(place, values) {
  for (const value of values) {
    if (value === null || value === undefined || Number.isNaN(value)) continue;
    if (typeof value === "string" || typeof value === "boolean" || typeof value === "bigint") yield String(value);
    else if (Number.isFinite(value)) yield spelled(value);
    else if (value instanceof Date) yield dateText(value);
    else fail(place, "a list must hold finite numbers, text or booleans", value);
  }
}

// A number as a category is named: the shortest digits that give it again.
function spelled(value) {
  if (value === 0) return "0"; // of -0, too
  const size = Math.abs(value);
  if (Number.isSafeInteger(value) || (size >= 1e-4 && size < 1e16)) return String(value);
  return value.toExponential().replace(/([+-])(\d)$/, "$10$2"); // 1e-05
}

// What text is as a number: its value, and of a whole number its digits; undefined: it is none.
function numberOf(text) {
  const whole = text.match(/^(-?)(0|[1-9][0-9]{0,17})(?:\.0*)?$/);
  if (whole) return { value: Number(text) + 0, digits: whole[2] === "0" ? "0" : whole[1] + whole[2] };
  if (/^-?0[0-9]{1,17}$/.test(text)) return undefined; // 007 is an id
  if (!/^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? { value } : undefined;
}

// With u = 2 log2 |x|: the whole part of u, and the rest. These steps round alike on all machines.
const view = new DataView(new ArrayBuffer(8));

function softBucket(x) {
  view.setFloat64(0, Math.abs(x));
  let exponent = view.getUint32(0) >>> 20;
  if (exponent === 0) {
    view.setFloat64(0, Math.abs(x) * 2 ** 54); // a denormal number
    exponent = (view.getUint32(0) >>> 20) - 54;
  }
  view.setUint32(0, (view.getUint32(0) & 0x000fffff) | 0x3ff00000);
  let m = view.getFloat64(0); // 1 <= m < 2
  const upper = m >= 1.4142135623730951 ? 1 : 0;
  if (upper) m *= 0.5;
  const f = (m - 1) / (m + 1), g = f * f; // log m = 2 artanh f
  let p = 1 / 21;
  for (let i = 19; i >= 1; i -= 2) p = p * g + 1 / i;
  const share = 2 * (2 * f * p * 1.4426950408889634) + upper;
  return [2 * (exponent - 1023) + upper, Math.min(Math.max(share, 0), 0.9999999999999999)];
}

function bucketName(bucket, negative) {
  return `~${negative ? "-" : ""}2^${bucket / 2}`;
}

// YYYY-MM-DD[(T| )HH:MM[:SS[.f]]][Z|+hh:mm]; undefined: it is no date.
const DATE_TEXT =
  /^(\d{4})-(\d\d)-(\d\d)(?:([T ])(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?$/;

function dateOf(text) {
  const found = text.match(DATE_TEXT);
  if (!found) return undefined;
  const [, year, month, day, time, hour = 0, minute = 0, second = 0, sign, hours = 0, minutes = 0] = found;
  const value = new Date(0);
  value.setUTCFullYear(Number(year), month - 1, Number(day));
  if (value.getUTCMonth() !== month - 1 || hour > 23 || minute > 59 || second > 60) return undefined;
  const offset = (sign === "-" ? -1 : 1) * (hours * 60 + Number(minutes));
  value.setUTCHours(Number(hour), minute - offset, Number(second));
  return { value, hasTime: time !== undefined };
}

function dateText(date) {
  return date.toISOString().replace(/\.?0*Z$/, "+00:00");
}
// end hashed
