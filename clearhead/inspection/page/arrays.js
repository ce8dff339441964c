/* The numbers of a trace: base64 to arrays, and weights by kind, layer and head. */
(function (CH) {
"use strict";

const known = new WeakMap();

// What `make` makes of a part of a trace, made once
function once(part, make) {
  if (!known.has(part)) known.set(part, make(part));
  return known.get(part);
}

// A finite half-precision number from its 16 bits
function half(bits) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

const readers = {
  u8: [1, (view, at) => view.getUint8(at)],
  u16: [2, (view, at) => view.getUint16(at, true)],
  f16: [2, (view, at) => half(view.getUint16(at, true))],
  f32: [4, (view, at) => view.getFloat32(at, true)],
};

function decode(array) {
  const bytes = Uint8Array.from(atob(array.data), (letter) => letter.charCodeAt(0)), view = new DataView(bytes.buffer);
  const [width, read] = readers[array.enc], scale = array.scale || 1;
  return Float32Array.from({ length: bytes.length / width }, (_, i) => read(view, i * width) * scale);
}

// The values of {shape, enc, scale, data}, row after row
const values = CH.values = (array) => once(array, decode);

CH.row = (array, r) => values(array).subarray(r * array.shape[1], (r + 1) * array.shape[1]);

// The largest of each row, put where they belong; the rest of a row is in no place
function spread(record) {
  const [heads, queries, keys] = record.shape, whole = new Float32Array(heads * queries * keys),
    places = values(record.keys);
  values(record.weights).forEach((weight, i) => { whole[Math.floor(i / record.k) * keys + places[i]] += weight; });
  return whole;
}

const ofKind = (trace, kind) => trace.attention.filter((one) => one.kind === kind);

// Which kinds of attention the trace has, in the order of the keys 1 2 3
CH.kinds = (trace) => ["encoder", "decoder", "cross"].filter((kind) => ofKind(trace, kind).length);

CH.layers = (trace, kind) => ofKind(trace, kind).map((one) => one.layer).sort((a, b) => a - b);
CH.heads = (trace, kind) => ofKind(trace, kind).length ? ofKind(trace, kind)[0].shape[0] : 0;

/**
 * The weights of one head.
 * @returns {{rows: number, cols: number, at: Float32Array, rest: ?Float32Array}} rest: where only the largest are kept
 */
CH.weights = function (trace, { kind, layer, head }) {
  const record = ofKind(trace, kind).find((one) => one.layer === layer), [, rows, cols] = record.shape,
    isTop = record.enc === "top";
  const at = (isTop ? once(record, spread) : values(record)).subarray(head * rows * cols, (head + 1) * rows * cols);
  return { rows, cols, at, rest: isTop ? values(record.rest).subarray(head * rows, (head + 1) * rows) : null };
};

CH.weightRow = (weights, r) => weights.at.subarray(r * weights.cols, (r + 1) * weights.cols);

// Of a list, what belongs to a head: its statistics, or its exact vectors if they were kept
CH.ofHead = (list, { kind, layer, head }) => list.find((one) => one.kind === kind && one.layer === layer
  && one.head === head);
})(window.CH = window.CH || {});
