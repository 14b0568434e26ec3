"""A small driver of headless Chromium, over the DevTools protocol's pipe: the standard library and Debian's chromium are enough."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

TIMEOUT = 60


def find_chromium():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    """Messages are JSON with a NUL at the end, to the browser's descriptor 3 and from its descriptor 4."""

    def __init__(self, *flags):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands_read, self.commands = os.pipe()
        self.answers, answers_write = os.pipe()

        def wire():
            # Through numbers that neither pipe has, as either may be 3 or 4.
            high = [os.dup2(commands_read, 100), os.dup2(answers_write, 101)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.close(100)
            os.close(101)

        command = [find_chromium(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "--no-first-run",
                   "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", *flags]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses its sandbox to root
        self.process = subprocess.Popen(command, preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands_read)
        os.close(answers_write)
        os.set_blocking(self.answers, False)
        self.buffer = b""
        self.last_id = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.folder.cleanup()

    def read_message(self, deadline):
        while b"\0" not in self.buffer:
            try:
                chunk = os.read(self.answers, 1 << 20)
                if not chunk:
                    raise RuntimeError("chromium ended")
                self.buffer += chunk
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RuntimeError("chromium does not answer") from None
                time.sleep(0.005)
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.last_id += 1
        request = {"id": self.last_id, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        deadline = time.monotonic() + TIMEOUT
        while True:
            message = self.read_message(deadline)
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise RuntimeError(f"never true: {condition}")
            time.sleep(0.02)

    def open(self, path):
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("location.protocol === 'file:' && document.readyState === 'complete'")

    def events(self, method):
        return [event["params"] for event in self.browser.events if event.get("method") == method and event.get("sessionId") == self.session]

    def problems(self):
        """What the console would show as an error or warning."""
        found = [str(event["exceptionDetails"]) for event in self.events("Runtime.exceptionThrown")]
        found += [str(event) for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        return found + [event["entry"]["text"] for event in self.events("Log.entryAdded") if event["entry"]["level"] in ("error", "warning")]

    def requests(self):
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def viewport(self, width, height, scale=1, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, selector):
        """A press of the mouse in the middle of the element, wherever that is: it must not be covered."""
        place = self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: "center"}});
            const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def key(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def type(self, selector, text):
        self.click(selector)
        self.call("Input.insertText", text=text)

    def select(self, selector, value):
        self.evaluate(f"""(() => {{ const s = document.querySelector({json.dumps(selector)}); s.value = {json.dumps(value)};
            s.dispatchEvent(new Event("change", {{bubbles: true}})); }})()""")

    def screenshot(self, path, whole=True):
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(image))

    def print_pdf(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]))
