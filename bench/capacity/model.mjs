// From sessions and requests to machines: arithmetic alone.
import { storeBytes } from './bytes.mjs';

const GIB = 1024 ** 3;
const LEAST = { edges: 2, services: 3, replicas: 2 };
const STREAMS = 32; // of a cluster
const READS_A_SECOND = 100;
const RECORD_OVERHEAD = 120; // bytes of protocol around a record on the wire

/** What a second brings. */
function rates({ sessions, requests, assumed }) {
  const there = Math.min(requests / assumed.requestsEach, sessions);
  const asked = Math.min(requests, there / assumed.cacheSecs);
  const created = (sessions * assumed.signInsADay) / 86_400;
  const refreshed = there / assumed.tokenSecs;
  const rolled = there / assumed.rollSecs;
  const ended = created * assumed.endedByChoice;
  return { there, asked, created, refreshed, rolled, ended, events: created + refreshed + rolled + ended };
}

const cores = (micros) => micros / 1e6;

export function capacity({ sessions, requests, constants, assumed }) {
  const rate = rates({ sessions, requests, assumed });
  const services = Math.max(LEAST.services, Math.ceil(cores((rate.asked + 3 * rate.events) * constants.askedMicros) / assumed.busy));
  const edges = Math.max(LEAST.edges, Math.ceil(cores(requests * constants.proxiedMicros) / assumed.busy));
  // A replica reads a busy stream a hundred times a second at most (events.rs): what comes meanwhile comes together.
  const readsAlone = (streams) => Math.min(rate.events, streams * READS_A_SECOND);
  const heard = (streams) => services * (readsAlone(streams) * constants.heardMicros + rate.events * constants.togetherMicros);
  const redisCores = (masters) => cores(
    rate.asked * constants.loadMicros + rate.created * (constants.createMicros + constants.listMicros)
    + rate.rolled * constants.rollMicros + rate.refreshed * (constants.rollMicros + 3 * constants.loadMicros)
    + rate.ended * constants.endMicros + heard(masters > 1 ? STREAMS : 1),
  );
  const bytesOn = (masters) => storeBytes({ sessions, masters, ...constants });
  const fits = (masters) => bytesOn(masters).all / masters <= assumed.nodeGib * GIB * assumed.full && redisCores(masters) / masters <= assumed.busy;
  let masters = fits(1) ? 1 : 3;
  while (!fits(masters)) masters += 1;
  const bytes = bytesOn(masters);
  const record = constants.sealedBytes + constants.frameBytes + RECORD_OVERHEAD;
  const written = rate.created + rate.refreshed + rate.rolled;
  return {
    rate, services, edges, masters, bytes, redisCores: redisCores(masters),
    told: rate.events * services * edges,
    tellingCores: cores(rate.events * edges * constants.toldMicros),
    perSession: bytes.all / sessions,
    replicasOfEach: LEAST.replicas,
    nodeBytes: bytes.all / masters,
    network: {
      toServices: (rate.asked + written) * record + rate.events * services * (constants.eventBytes + RECORD_OVERHEAD),
      toReplicas: LEAST.replicas * (written * (record + 2 * RECORD_OVERHEAD) + rate.events * constants.eventBytes),
      toEdges: rate.asked * record + rate.events * services * edges * constants.eventBytes,
    },
    failover: {
      share: 1 / masters,
      refused: (rate.asked / masters) * constants.failoverSecs,
      asked: requests * constants.failoverSecs,
      copied: bytes.all / masters,
    },
  };
}
