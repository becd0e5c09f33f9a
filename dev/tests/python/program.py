"""Runs one of our programs as a process on free ports of loopback."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug"
READY_SECONDS = 60


# Below the range for outgoing connections: one of those could take a port between its choice and its use.
PORTS = range(12_000, 32_000)


def free_port():
    """Returns a port of 127.0.0.1 that was free a moment ago."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as server:
            try:
                server.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Program:
    """One program with only these settings. `admin` is its admin address. With `ready` false, waits only until it is
    alive. `stop` deletes `folder`."""

    def __init__(self, name, admin, settings, folder=None, ready=True):
        self.folder = folder or tempfile.TemporaryDirectory(prefix="vestibule-python-")
        self.name = name
        self.admin = admin
        self.settings = settings
        self.ready = ready
        self.start()

    def start(self):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SESSION_", "EDGE_", "OIDC_", "AUDIT_"))}
        self.log = open(f"{self.folder.name}/log", "ab")
        self.process = subprocess.Popen([PROGRAMS / self.name], env=inherited | self.settings, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + READY_SECONDS
        while not self.answers("readyz" if self.ready else "livez"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(pathlib.Path(f"{self.folder.name}/log").read_text())
            time.sleep(0.02)

    def answers(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.admin}/{path}", timeout=1) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def restart(self):
        self.kill()
        self.start()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.log.close()
        self.folder.cleanup()
        return code
