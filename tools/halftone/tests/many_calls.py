"""Calls of the program without starting it anew each time: loading torch takes most of a short call.

HALFTONE_MANY names halftone_many (many_calls.cpp). Without it, Calls starts the program itself.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

SEPARATOR = "\x1f"


class Server:
    """One process that forks; one call at a time."""

    def __init__(self, program, environment, folder):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="halftone_many_"))
        atexit.register(shutil.rmtree, self.scratch, ignore_errors=True)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)
        self.calls = 0

    def call(self, arguments):
        self.calls += 1
        name = str(self.scratch / str(self.calls))
        self.process.stdin.write(SEPARATOR.join([name, *arguments]) + "\n\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 3 or answer[0] != name:
            raise RuntimeError(f"halftone_many answered {answer} to {arguments}")
        texts = []
        for ending in (".out", ".err"):
            file = pathlib.Path(name + ending)
            texts.append(file.read_text())
            file.unlink()
        return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(int(answer[1])), *texts)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Calls:
    """The program with one environment and working folder, callable from several threads."""

    def __init__(self, program, environment, folder=None, timeout=120):
        self.program, self.environment, self.folder, self.timeout = str(program), environment, folder, timeout
        self.many = os.environ.get("HALFTONE_MANY")
        self.of_thread = threading.local()

    def __call__(self, *arguments):
        arguments = [str(argument) for argument in arguments]
        # No arguments would be a request to serve; a line cannot hold a line.
        if not self.many or not arguments or any("\n" in word or SEPARATOR in word for word in arguments):
            return subprocess.run([self.program, *arguments], capture_output=True, text=True, cwd=self.folder, env=self.environment,
                                  timeout=self.timeout, check=False)
        if not hasattr(self.of_thread, "server"):
            self.of_thread.server = Server(self.many, self.environment, self.folder)
            atexit.register(self.of_thread.server.close)
        return self.of_thread.server.call(arguments)
