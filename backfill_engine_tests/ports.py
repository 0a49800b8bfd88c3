"""Ports for servers that a test starts."""

import socket


def find_free_port() -> int:
    """One of this machine that nothing listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
