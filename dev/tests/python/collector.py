"""A collector of traces (OTLP over gRPC). It prints its address, then a line of JSON for each received span.

It has its own packages, because `xds-protos`, which other tests need, includes an older copy of the same modules.
"""

import concurrent.futures
import json
import logging
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, request, context):
        for resource in request.resource_spans:
            service = values(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    print(json.dumps(described(service, span)), flush=True)
        return trace_service_pb2.ExportTraceServiceResponse()


def values(attributes):
    return {attribute.key: value(attribute.value) for attribute in attributes}


def value(any_value):
    kind = any_value.WhichOneof("value")
    return [value(each) for each in any_value.array_value.values] if kind == "array_value" else getattr(any_value, kind)


def described(service, span):
    return {
        "service": service,
        "name": span.name,
        "kind": trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "is_error": span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        "attributes": values(span.attributes),
        "links": [{"trace": link.trace_id.hex(), "id": link.span_id.hex()} for link in span.links],
        "text": str(span),
    }


if __name__ == "__main__":
    logging.basicConfig()  # logs errors in Export
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Collector(), server)
    print(f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    server.start()
    threading.Event().wait()
