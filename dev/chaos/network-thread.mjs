// Runs the network in a separate thread, so that busy people do not delay its links. This file holds both ends:
// the thread, and the Network for its callers, whose methods return promises.
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

import { watchStalls } from '../lib/clock.mjs';
import { Network } from './network.mjs';

if (!isMainThread) {
  const network = new Network();
  watchStalls((stall) => parentPort.postMessage({ stall }));
  parentPort.on('message', async ({ id, method, values }) => parentPort.postMessage({ id, result: await network[method](...values) }));
}

export class NetworkThread {
  constructor() {
    this.worker = new Worker(new URL(import.meta.url));
    this.worker.on('message', ({ id, result, stall }) => {
      if (stall) {
        this.onStall(stall);
        return;
      }
      this.waiting.get(id)(result);
      this.waiting.delete(id);
    });
    Object.assign(this, { waiting: new Map(), last: 0, onStall: () => {} }); // onStall: called when links were late as a whole
  }

  call(method, ...values) {
    this.last += 1;
    return new Promise((resolve) => {
      this.waiting.set(this.last, resolve);
      this.worker.postMessage({ id: this.last, method, values });
    });
  }

  know = (...values) => this.call('know', ...values);

  front = (...values) => this.call('front', ...values);

  cut = (...values) => this.call('cut', ...values);

  hold = (...values) => this.call('hold', ...values);

  delay = (...values) => this.call('delay', ...values);

  heal = (...values) => this.call('heal', ...values);

  async stop() {
    await this.call('stop');
    await this.worker.terminate();
  }
}
