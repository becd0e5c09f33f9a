// Pseudorandom numbers, equal for equal seeds: mulberry32.

export class Random {
  constructor(seed) {
    this.state = seed >>> 0;
  }

  /** From 0 up to, but not including, 1. */
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`, both included. */
  between(least, most) {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  pick(list) {
    return list[this.between(0, list.length - 1)];
  }

  /** One of the keys of `weights`, with a probability in proportion to its weight. */
  weighted(weights) {
    let rest = this.next() * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
    return Object.keys(weights).find((key) => (rest -= weights[key]) < 0);
  }

  /** A separate series, for a caller that draws at a different pace. */
  branch() {
    return new Random(this.between(0, 2 ** 32 - 1));
  }
}
