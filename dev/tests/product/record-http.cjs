// Loaded into a node process by NODE_OPTIONS: writes its HTTP requests and answers to RECORD_HTTP_TO, one JSON line a
// request, so that a test knows every secret that was ever on the wire.
const { appendFileSync } = require('node:fs');
const http = require('node:http');

const { emit } = http.Server.prototype;
http.Server.prototype.emit = function record(event, request, response) {
  if (event === 'request') {
    const [asked, answered] = [[], []];
    const { push } = request;
    request.push = function pushed(chunk, ...more) {
      if (chunk) asked.push(Buffer.from(chunk));
      return push.call(this, chunk, ...more);
    };
    for (const name of ['write', 'end']) {
      const original = response[name];
      response[name] = function sent(chunk, ...more) {
        if (chunk && typeof chunk !== 'function') answered.push(Buffer.from(chunk));
        return original.call(this, chunk, ...more);
      };
    }
    response.on('finish', () => {
      const line = {
        method: request.method, url: request.url, headers: request.headers, asked: Buffer.concat(asked).toString(),
        location: response.getHeader('location'), answered: Buffer.concat(answered).toString(),
      };
      appendFileSync(process.env.RECORD_HTTP_TO, `${JSON.stringify(line)}\n`);
    });
  }
  return emit.apply(this, arguments);
};
