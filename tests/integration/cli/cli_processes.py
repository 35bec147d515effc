"""`tenantry` as a process of its own, for tests: started, spoken to, ended, and nothing of it left."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

TENANTRY = (sys.executable, "-m", "tenantry.cli.main")
PATIENCE = 60.0


class Up:
    """One `tenantry up` on ports that the system chose. ``told``: what it printed when it was up."""

    def __init__(self, data_dir: Path, *words: str, cwd: Path | None = None) -> None:
        self._errors = (data_dir.parent / "errors.txt").open("ab")
        self.process = subprocess.Popen(
            [
                *TENANTRY,
                "up",
                "--json",
                "--data-dir",
                str(data_dir),
                "--listen",
                "0",
                "--metrics",
                "0",
                *words,
            ],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**bare_environment(), "NO_COLOR": "1"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (data_dir.parent / "errors.txt").read_text()
        self.told: dict[str, Any] = json.loads(line)
        self.family = psutil.Process(self.process.pid).children(recursive=True)

    def ask(self, path: str, body: object = None, *, key: str | None = None) -> Any:
        """A request to the API with its key; the answer's JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Authorization": f"Bearer {key or self.told['api_key']}",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(self.told["api_url"] + path, data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def metrics(self) -> str:
        """What a scrape gets."""
        with urllib.request.urlopen(self.told["metrics_url"] + "/metrics", timeout=PATIENCE) as answer:
            return str(answer.read().decode())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit code, once it has ended."""
        return self.process.wait(PATIENCE)

    def left_behind(self) -> list[psutil.Process]:
        """What it had started and is still there."""
        _, alive = psutil.wait_procs(self.family, timeout=PATIENCE)
        return alive

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


def tenantry(*words: str, code: int = 0, **environment: str) -> str:
    """What a command that ends by itself prints; it must end with ``code``."""
    done = subprocess.run(
        [*TENANTRY, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**bare_environment(), **environment},
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def bare_environment() -> dict[str, str]:
    """Ours, without what would change how a command behaves."""
    ours = os.environ.items()  # noqa: TID251 - a child inherits it
    return {name: value for name, value in ours if not name.startswith("TENANTRY_")}


@contextmanager
def up(data_dir: Path, *words: str, cwd: Path | None = None) -> Iterator[Up]:
    with Up(data_dir, *words, cwd=cwd) as process:
        yield process
