"""Decodes the Secret with helm's record of a release, a protobuf message (k8s.io/api/core/v1, generated.proto)."""

import base64

MAGIC = b"k8s\0"
LENGTH_DELIMITED = 2


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """Yields number and bytes of each length-delimited field. Skips numbers, which a record does not need."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == LENGTH_DELIMITED:
            yield key >> 3, data[at : at + value]
            at += value


def entries(message, number):
    for found, entry in fields(message):
        if found == number:
            pair = dict(fields(entry))
            yield pair[1].decode(), pair.get(2, b"")


def secret(data):
    """Converts a Secret to JSON. Fields: raw 2; metadata 1, data 2, type 3; name 1, namespace 3, labels 11."""
    raw = dict(fields(data.removeprefix(MAGIC)))[2]
    parts = dict(fields(raw))
    metadata = dict(fields(parts[1]))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": metadata[1].decode(), "namespace": metadata[3].decode(), "labels": {key: value.decode() for key, value in entries(parts[1], 11)}},
        "data": {key: base64.b64encode(value).decode() for key, value in entries(raw, 2)},
        "type": parts[3].decode(),
    }
