"""Tests the gRPC services for health, as a call and as a stream, and for reflection."""

import signal
import unittest

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from google.protobuf.descriptor_pool import DescriptorPool

from service import Service

Status = health_pb2.HealthCheckResponse
SERVICE = "session.v1.SessionService"
OPERATORS = "session.v1.OperatorSessionService"


class HealthAndReflection(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service()
        cls.addClassCleanup(cls.service.stop)

    def setUp(self):
        self.channel = grpc.insecure_channel(self.service.address)
        self.addCleanup(self.channel.close)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def check(self, service):
        return self.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status

    def test_health_knows_the_service_readiness_and_liveness(self):
        for service in ("", SERVICE, "readiness", "liveness"):
            self.assertEqual(self.check(service), Status.SERVING, service)

    def test_health_lists_every_name_with_its_status(self):
        listed = self.health.List(health_pb2.HealthListRequest(), timeout=20).statuses
        known = ("", SERVICE, "readiness", "liveness")
        self.assertEqual({name: status.status for name, status in listed.items()}, {name: Status.SERVING for name in known})

    def test_health_does_not_know_others(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.check("somebody.else")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        stream = self.health.Watch(health_pb2.HealthCheckRequest(service="somebody.else"))
        self.addCleanup(stream.cancel)
        self.assertEqual(next(stream).status, Status.SERVICE_UNKNOWN)
        self.check("")
        self.assertTrue(stream.is_active())

    def test_requests_compressed_with_gzip_are_read(self):
        answer = self.health.Check(health_pb2.HealthCheckRequest(), timeout=20, compression=grpc.Compression.Gzip)
        self.assertEqual(answer.status, Status.SERVING)

    def test_health_is_told_as_it_changes_and_a_drain_is_no_longer_serving(self):
        service = Service(DRAIN_DELAY="60")
        self.addCleanup(service.stop)
        channel = grpc.insecure_channel(service.address)
        self.addCleanup(channel.close)
        stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        self.addCleanup(stream.cancel)
        self.assertEqual(next(stream).status, Status.SERVING)
        service.process.send_signal(signal.SIGTERM)
        self.assertEqual(next(stream).status, Status.NOT_SERVING)
        # The service still answers calls. A second signal ends the delay.
        self.assertEqual(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20).status, Status.NOT_SERVING)

    def test_reflection_names_the_services_and_describes_them(self):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        names = database.get_services()
        reflection = [f"grpc.reflection.{version}.ServerReflection" for version in ("v1", "v1alpha")]
        self.assertEqual(sorted(names), sorted([SERVICE, OPERATORS, "grpc.health.v1.Health", *reflection]))
        for name in names:
            self.assertEqual(DescriptorPool(database).FindServiceByName(name).full_name, name)
        described = DescriptorPool(database).FindServiceByName(SERVICE)
        self.assertEqual(len(described.methods), 16)
        self.assertTrue(described.methods_by_name["WatchSessions"].server_streaming)
        batch = described.methods_by_name["BatchGetSessions"]
        self.assertFalse(batch.client_streaming or batch.server_streaming)

    def test_reflection_describes_what_failures_carry(self):
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))
        for name in ("google.rpc.Status", "google.rpc.ErrorInfo"):
            self.assertEqual(pool.FindMessageTypeByName(name).full_name, name)
        for file in ("google/rpc/status.proto", "google/rpc/error_details.proto"):
            self.assertEqual(pool.FindFileByName(file).package, "google.rpc")


if __name__ == "__main__":
    unittest.main()
