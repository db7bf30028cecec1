"""A headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
PATIENCE = 60  # seconds


class Browser:
    """One tab. `requests` are the addresses it asked for, `problems` what its console said."""

    def __init__(self, folder: Path) -> None:
        self._program = subprocess.Popen(
            [
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-port=0",
                f"--user-data-dir={folder}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = folder / "DevToolsActivePort"
        self._wait(lambda: port.exists() and port.read_text().count("\n"), "the browser does not start")
        number = port.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/json/list") as answer:
            tab = next(tab for tab in json.load(answer) if tab["type"] == "page")
        from websockets.sync.client import connect

        self._open = contextlib.ExitStack()
        self._socket = self._open.enter_context(connect(tab["webSocketDebuggerUrl"], max_size=None))
        self._calls = 0
        self.requests: list[str] = []
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters):
        self._calls += 1
        mine = self._calls
        self._socket.send(json.dumps({"id": mine, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == mine:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"])[:1000])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(given["args"])[:1000])
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"] + " " + given["entry"].get("url", ""))

    def look(self, *, width=1280, height=900, dark=False) -> None:
        """Set the size of the window and the colours that the user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str):
        """Return what an expression of the page's script is."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, script: str):
        """Wait until an expression is true, and return it."""
        return self._wait(
            lambda: self.run(f"(() => {{ try {{ return {script} }} catch {{ return false }} }})()"), script
        )

    def text(self) -> str:
        return self.run("document.body.innerText")

    def screenshot(self, path: Path) -> bytes:
        size = self.run("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        data = base64.b64decode(
            self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        )
        path.write_bytes(data)
        return data

    @staticmethod
    def _wait(done, what: str):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = done()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {PATIENCE} s: {what}")

    def close(self) -> None:
        self._open.close()
        self._program.terminate()
        self._program.wait()
