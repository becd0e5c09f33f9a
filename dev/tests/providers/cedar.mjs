// A decision point that answers questions of the AuthZEN API by Cedar policies.
import http from 'node:http';

import { isAuthorized } from '@cedar-policy/cedar-wasm/nodejs';

/** The answer to one evaluation. Cedar has entities for subject and resource, and their properties as attributes. */
function evaluate({ subject, action, resource, context = {} }, policies) {
  const [principal, target] = [{ type: 'User', id: subject.id }, { type: 'Route', id: resource.id }];
  const plain = (value) => (value === null ? undefined : value);
  const attrs = (properties = {}) => Object.fromEntries(Object.entries(properties).filter(([, value]) => plain(value) !== undefined));
  const answer = isAuthorized({
    principal, action: { type: 'Action', id: action.name }, resource: target, context,
    policies: { staticPolicies: policies },
    entities: [{ uid: principal, attrs: attrs(subject.properties), parents: [] }, { uid: target, attrs: attrs(resource.properties), parents: [] }],
  });
  if (answer.type !== 'success') throw new Error(JSON.stringify(answer.errors));
  const decision = answer.response.decision === 'allow';
  return { decision, ...(!decision && { context: { reason: 'policy_denied' } }) };
}

/** Starts it: {url, questions, stop}. */
export async function startCedar(policies) {
  const questions = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const question = JSON.parse(Buffer.concat(chunks).toString());
    questions.push(question);
    const answer = request.url.endsWith('/evaluations')
      ? { evaluations: question.evaluations.map((one) => evaluate({ ...question, ...one }, policies)) }
      : evaluate(question, policies);
    response.setHeader('content-type', 'application/json');
    response.setHeader('cache-control', 'max-age=1');
    response.end(JSON.stringify(answer));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    questions,
    stop: () => { server.closeAllConnections(); server.close(); },
  };
}
