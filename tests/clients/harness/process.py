"""Processes that the harness starts, each in a group of its own, and the proof that none of them stays behind."""
import contextlib
import os
import signal
import socket
import subprocess
import time
import uuid

from .places import OUT

# Every process that a run starts, directly or through a gateway, carries this in its environment.
MARK_NAME, MARK = "DRAWBRIDGE_TRIAL", uuid.uuid4().hex


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def in_use(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.3):
        return True
    return False


def environment(extra=None):
    return {**os.environ, MARK_NAME: MARK, **{name: str(value) for name, value in (extra or {}).items()}}


class Started:
    """A process with its log. A context manager: leaving it ends the whole group."""

    def __init__(self, name, command, env=None, cwd=None, grace=10):
        self.name, self.grace = name, grace
        self.log = OUT / "logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([str(part) for part in command], env=environment(env), cwd=cwd, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_until(self, ready, seconds, what):
        end = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.text()[-3000:]}")
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name}: {what} not in {seconds} s:\n{self.text()[-3000:]}")
            time.sleep(0.05)

    def wait_port(self, port, seconds=30):
        self.wait_until(lambda: in_use(port), seconds, f"port {port} open")

    def stop(self):
        """Asks, then insists. The exit code, or None if it had to be killed."""
        code = self.process.poll()
        if code is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(self.grace)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return code


def run(command, env=None, cwd=None, timeout=60):
    """Runs to the end or until the time is over: exit code (None if ended by us), standard output, standard error."""
    process = subprocess.Popen([str(part) for part in command], env=environment(env), cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        return None, "", f"not done in {timeout} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def left_behind(wait=3):
    """Command lines of processes of this run that still live, after at most `wait` seconds. They are killed."""
    end = time.monotonic() + wait
    while (found := marked()) and time.monotonic() < end:
        time.sleep(0.1)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return sorted(found.values())


def marked():
    found, mark = {}, f"{MARK_NAME}={MARK}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                found[int(entry)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    return {pid: line for pid, line in found.items() if line}  # a zombie has no command line
