"""rediss:// is a real TLS connection to a real Valkey for every client we have, and none with a wrong certificate."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from tests.conftest import VALKEY_SOCKET

ROOT = Path(__file__).parents[2]
ASK = """
import django; django.setup()
from dashboard import valkey
from dashboard.celery import app
assert valkey.client().ping()
app.connection_for_write().ensure_connection(max_retries=1, interval_start=0, timeout=5)
assert app.backend.client.ping()
"""


class Forward(StreamRequestHandler):
    """What comes in clear from the TLS side goes to Valkey's socket, and back."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as valkey:
            valkey.connect(str(VALKEY_SOCKET))
            back = threading.Thread(target=pump, args=(valkey, self.request), daemon=True)
            back.start()
            pump(self.request, valkey)
            back.join(5)


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class Server(ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", 0), Forward)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not trust us goes away."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=valkey"
    extension = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *extension], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "cert.pem"


@pytest.fixture
def tls_port(valkey: str, certificate: Path) -> Iterator[int]:
    with Server(certificate, certificate.with_name("key.pem")) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def ask(port: int, **trusted: str) -> "subprocess.CompletedProcess[str]":
    environ = os.environ | {"REDIS_URL": f"rediss://127.0.0.1:{port}/0"} | trusted
    return subprocess.run(
        [sys.executable, "-c", ASK], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60
    )


def test_every_client_speaks_tls(tls_port: int, certificate: Path) -> None:
    asked = ask(tls_port, SSL_CERT_FILE=str(certificate))
    assert asked.returncode == 0, asked.stderr


def test_nobody_talks_to_a_server_that_cannot_be_trusted(tls_port: int) -> None:
    assert "CERTIFICATE_VERIFY_FAILED" in ask(tls_port).stderr
