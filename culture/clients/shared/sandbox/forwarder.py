"""Runs inside a sandbox, before the agent's program: passes connections on its loopback to the daemon's Unix socket.

``forwarder.py <socket> <ports> -- <program>...``; an empty socket means that there is no network. It listens on a free
port as the HTTP proxy of everything in the sandbox, and on each of the ports (``127.0.0.1:8080``, comma-separated) that
the owner opened by address, so that programs without support for proxies reach those. A child does the forwarding; this
process becomes the agent's program. Standard library only: it is run by its path, with no package around it.
"""

import os
import socket
import sys
import threading

HELD_TOKEN, TOKEN = "CULTURE_HELD_TOKEN", "CULTURE_TOKEN"
"""bubblewrap itself must not carry the mark of the agent's processes: its death would end them without notice."""
CHUNK = 1 << 16
MOST = 128
BACKLOG = 64
PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
NOT_THROUGH_IT = "localhost,127.0.0.1,::1"


def main() -> None:
    """Listen, leave a child behind that forwards, and become the program."""
    path, opened, separator, *program = sys.argv[1:]
    if separator != "--" or not program:
        sys.exit("usage: forwarder.py <socket> <ports> -- <program>...")
    token = os.environ.pop(HELD_TOKEN, "")
    if token:
        os.environ[TOKEN] = token
    if path:
        _offer_network(path, [each for each in opened.split(",") if each])
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.exit(f"{program[0]}: {error.strerror}")


def _offer_network(path: str, opened: list[str]) -> None:
    listeners = {_listener("127.0.0.1", 0): ""}
    (proxy,) = listeners
    for place in opened:
        host, _, port = place.rpartition(":")
        listeners[_listener(host.strip("[]"), int(port))] = place
    address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
    if os.fork() == 0:
        _forward_for_ever(path, listeners)
    for listener in listeners:
        listener.close()
    os.environ.update(dict.fromkeys(PROXY_VARIABLES, address))
    os.environ.update(NO_PROXY=NOT_THROUGH_IT, no_proxy=NOT_THROUGH_IT, NODE_USE_ENV_PROXY="1")


def _listener(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener


def _forward_for_ever(path: str, listeners: dict[socket.socket, str]) -> None:
    """Ends with the sandbox; the program's pipes are not held open."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    room = threading.BoundedSemaphore(MOST)
    serving = [threading.Thread(target=_serve, args=(each, path, place, room)) for each, place in listeners.items()]
    for thread in serving:
        thread.start()
    for thread in serving:
        thread.join()


def _serve(listener: socket.socket, path: str, place: str, room: threading.BoundedSemaphore) -> None:
    while True:
        room.acquire()
        try:
            inner, _ = listener.accept()
        except OSError:
            room.release()
            continue
        threading.Thread(target=_carry, args=(inner, path, place, room), daemon=True).start()


def _carry(inner: socket.socket, path: str, place: str, room: threading.BoundedSemaphore) -> None:
    """One connection, to its end on both sides."""
    try:
        with inner, socket.socket(socket.AF_UNIX) as outer:
            outer.connect(path)
            if place and not _tunnelled(outer, place):
                return
            back = threading.Thread(target=_pump, args=(outer, inner), daemon=True)
            back.start()
            _pump(inner, outer)
            back.join()
    except OSError:
        pass
    finally:
        room.release()


def _tunnelled(outer: socket.socket, place: str) -> bool:
    """Ask for a tunnel on behalf of a program that knows nothing of proxies; whether there is one."""
    outer.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        letter = outer.recv(1)
        if not letter or len(answer) > CHUNK:
            return False
        answer += letter
    return answer.split(b" ", 2)[1:2] == [b"200"]


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends; the other is told."""
    try:
        while chunk := source.recv(CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


if __name__ == "__main__":
    main()
