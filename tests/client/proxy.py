"""A loopback TCP proxy that loses answers on demand: the request arrives, the caller hears nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Passes connections on; the next `cuts` answers are cut off before their first byte."""

    def __init__(self, port: int, cuts: int) -> None:
        self._target = ("127.0.0.1", port)
        self.cuts = cuts
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        # A listening socket that is only closed leaves the thread in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(caller,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, caller: socket.socket) -> None:
        with caller, socket.create_connection(self._target, timeout=30) as server:
            caller.settimeout(30)
            sending = threading.Thread(target=_pump, args=(caller, server), daemon=True)
            sending.start()
            with contextlib.suppress(OSError):
                while data := server.recv(65_536):
                    if self.cuts > 0:
                        self.cuts -= 1
                        break
                    caller.sendall(data)
            for one in (caller, server):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            sending.join(timeout=30)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def losing_answers(url: str, cuts: int) -> Iterator[Proxy]:
    proxy = Proxy(int(url.rpartition(":")[2]), cuts)
    try:
        yield proxy
    finally:
        proxy.close()
