/* The numbers of a trace: base64 text to arrays, and attention weights by kind, layer and head. */
(function (CH) {
  "use strict";

  const known = new WeakMap();

  /** What `make` makes of a part of a trace, made once. */
  function once(part, make) {
    if (!known.has(part)) known.set(part, make(part));
    return known.get(part);
  }

  /** The 16 bits of a half-precision number as a number. */
  function half(bits) {
    const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }

  const readers = {
    u8: [1, (view, at) => view.getUint8(at)],
    u16: [2, (view, at) => view.getUint16(at, true)],
    f16: [2, (view, at) => half(view.getUint16(at, true))],
    f32: [4, (view, at) => view.getFloat32(at, true)],
  };

  function decode(array) {
    const text = atob(array.data), bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const [width, read] = readers[array.enc], view = new DataView(bytes.buffer), scale = array.scale || 1;
    return Float32Array.from({ length: bytes.length / width }, (_, i) => read(view, i * width) * scale);
  }

  /**
   * The values of an array of the trace, row after row.
   * @param {{shape: number[], enc: string, scale?: number, data: string}} array
   * @returns {Float32Array}
   */
  CH.values = (array) => once(array, decode);

  /** One row of a two-dimensional array. */
  CH.row = (array, r) => CH.values(array).subarray(r * array.shape[1], (r + 1) * array.shape[1]);

  /** The eight largest of each row, put where they belong; the rest of a row is in no place. */
  function spread(record) {
    const [heads, queries, keys] = record.shape, whole = new Float32Array(heads * queries * keys);
    const places = CH.values(record.keys), weights = CH.values(record.weights);
    weights.forEach((weight, i) => { whole[Math.floor(i / record.k) * keys + places[i]] += weight; });
    return whole;
  }

  const recordOf = (trace, kind, layer) => trace.attention.find((one) => one.kind === kind && one.layer === layer);

  /** Which kinds of attention the trace has, in the order of the keys 1 2 3. */
  CH.kinds = (trace) => ["encoder", "decoder", "cross"].filter((kind) => trace.attention.some((one) => one.kind === kind));

  /** Which layers of a kind it has. */
  CH.layers = (trace, kind) => trace.attention.filter((one) => one.kind === kind).map((one) => one.layer).sort((a, b) => a - b);

  CH.heads = (trace, kind) => (trace.attention.find((one) => one.kind === kind) || { shape: [0] }).shape[0];

  /**
   * The weights of one head.
   * @returns {{rows: number, cols: number, at: Float32Array, rest: ?Float32Array}} rest: per row, where only the largest are kept
   */
  CH.weights = function (trace, kind, layer, head) {
    const record = recordOf(trace, kind, layer), [, rows, cols] = record.shape;
    const whole = record.enc === "top" ? once(record, spread) : CH.values(record);
    const rest = record.enc === "top" ? CH.values(record.rest).subarray(head * rows, (head + 1) * rows) : null;
    return { rows, cols, at: whole.subarray(head * rows * cols, (head + 1) * rows * cols), rest };
  };

  /** One row of a head's weights. */
  CH.weightRow = (weights, r) => weights.at.subarray(r * weights.cols, (r + 1) * weights.cols);

  /** The statistics of one head, or nothing. */
  CH.statistics = (trace, kind, layer, head) =>
    trace.stats.find((one) => one.kind === kind && one.layer === layer && one.head === head) || {};

  /** The exact vectors of one head, if the trace kept them. */
  CH.detail = (trace, kind, layer, head) =>
    trace.head_detail.find((one) => one.kind === kind && one.layer === layer && one.head === head);
})(window.CH = window.CH || {});
