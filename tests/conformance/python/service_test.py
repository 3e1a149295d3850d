"""What tools such as grpcurl and health probes ask of the server."""

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)

from server import PATIENCE


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield channel


def test_reflection_lists_the_services(channel):
    services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert {"google.pubsub.v1.Publisher", "google.pubsub.v1.Subscriber",
            "google.iam.v1.IAMPolicy", "grpc.health.v1.Health"} <= set(services)


def test_reflection_describes_calls_and_messages_so_that_they_can_be_made(channel):
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    publisher = pool.FindServiceByName("google.pubsub.v1.Publisher")
    assert publisher.methods_by_name["Publish"].input_type.fields_by_name["messages"].number == 2
    subscriber = pool.FindServiceByName("google.pubsub.v1.Subscriber")
    assert "StreamingPull" in subscriber.methods_by_name
    message = pool.FindMessageTypeByName("google.pubsub.v1.PubsubMessage")
    assert message.fields_by_name["ordering_key"].number == 5


@pytest.mark.parametrize("service", ["", "google.pubsub.v1.Publisher", "google.pubsub.v1.Subscriber"])
def test_health_is_serving(channel, service):
    health = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    first = next(iter(health.Watch(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)))
    assert first.status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_what_is_not_served_is_not_found(channel):
    with pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service="none.such"), timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_call_that_nobody_knows_is_unimplemented(channel):
    call = channel.unary_unary("/google.pubsub.v1.SchemaService/ListSchemas")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"", timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
