"""The mock broker of librdkafka as a program of its own, so that tests can stop and kill it.

It speaks the protocol of Kafka on a port of 127.0.0.1, and keeps the last 5 MB of each partition. It prints its
address, then follows commands, a line each, and answers each with a line:

    create TOPIC PARTITIONS
    delete TOPIC
    fail CODE TOPIC         metadata of the topic, and what is written to it, has an error from now on; 0: no more
    down, up                closes its port and all connections; opens the port again
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import confluent_kafka


def library() -> Any:
    """The librdkafka that is part of confluent-kafka."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    found.rd_kafka_conf_new.restype = ctypes.c_void_p
    found.rd_kafka_new.restype = ctypes.c_void_p
    found.rd_kafka_new.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    found.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    found.rd_kafka_mock_cluster_new.argtypes = [ctypes.c_void_p, ctypes.c_int]
    found.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    found.rd_kafka_mock_cluster_bootstraps.argtypes = [ctypes.c_void_p]
    found.rd_kafka_mock_topic_create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    found.rd_kafka_mock_topic_delete.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    found.rd_kafka_mock_topic_set_error.restype = None
    found.rd_kafka_mock_topic_set_error.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    found.rd_kafka_mock_group_initial_rebalance_delay_ms.restype = None
    found.rd_kafka_mock_group_initial_rebalance_delay_ms.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    found.rd_kafka_mock_broker_set_down.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    found.rd_kafka_mock_broker_set_up.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    return found


def main() -> None:
    kafka = library()
    error = ctypes.create_string_buffer(512)
    client = kafka.rd_kafka_new(0, kafka.rd_kafka_conf_new(), error, 512)
    if not client:
        raise SystemExit(error.value.decode())
    cluster = kafka.rd_kafka_mock_cluster_new(client, 1)
    kafka.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 100)  # consumers of a group begin at once
    print(kafka.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "create":
            code = kafka.rd_kafka_mock_topic_create(cluster, words[0].encode(), int(words[1]), 1)
        elif command == "delete":
            code = kafka.rd_kafka_mock_topic_delete(cluster, words[0].encode())
        elif command == "down":
            code = kafka.rd_kafka_mock_broker_set_down(cluster, 1)
        elif command == "up":
            code = kafka.rd_kafka_mock_broker_set_up(cluster, 1)
        else:
            code = kafka.rd_kafka_mock_topic_set_error(cluster, words[1].encode(), int(words[0]))
        print(code or 0, flush=True)


if __name__ == "__main__":
    main()
