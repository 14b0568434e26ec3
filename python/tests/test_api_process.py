"""What a process may do with the package: many threads, many cycles, logging, and ending in the middle of a call."""

import gc
import logging
import subprocess
import sys
import threading
import time

import pytest
import torch

import halftone
from conftest import mlp, resident_bytes


def in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run_script(text, timeout=120):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout)


class TestThreads:
    def test_eight_threads_two_hundred_calls(self, graph, x):
        inputs = [x[: 1 + number] for number in range(8)]
        expected = [graph.session("eager")(value) for value in inputs]

        def work(number):
            for _ in range(200):
                assert torch.allclose(graph(inputs[number]), expected[number], atol=1e-5)

        in_threads(8, work)

    def test_the_first_call_from_many_threads(self, model, x):
        graph = halftone.export(model, x)
        results = [None] * 8
        in_threads(8, lambda number: results.__setitem__(number, graph(x)))
        assert all(torch.equal(result, results[0]) for result in results)

    def test_calls_with_state_take_turns(self):
        class Counter(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("count", torch.zeros(1))

            def forward(self, x):
                self.count.add_(1)
                return x + self.count

        graph = halftone.compile_exported(torch.export.export(Counter(), (torch.zeros(1),)))
        seen = []
        in_threads(4, lambda _: seen.extend(float(graph(torch.zeros(1))) for _ in range(50)))
        assert sorted(seen) == [float(number) for number in range(1, 201)]

    def test_a_session_is_for_one_thread(self, graph, x):
        session = graph.session()
        assert torch.equal(session(x), graph(x))

    def test_the_gil_is_released(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(12))).eval()
        x = torch.randn(256, 1024)
        graph = halftone.export(model, x)
        graph(x)
        started = threading.Event()
        in_call = []

        def call():
            started.set()
            begin = time.perf_counter()
            graph(x)
            in_call.append((begin, time.perf_counter()))

        thread = threading.Thread(target=call)
        ticks = []
        thread.start()
        started.wait()
        while thread.is_alive():
            ticks.append(time.perf_counter())
        thread.join()
        begin, end = in_call[0]
        # Without the release, this thread would get nothing between the call's begin and end.
        assert sum(begin + 0.2 * (end - begin) < tick < end - 0.2 * (end - begin) for tick in ticks) > 10


class TestMemory:
    def test_no_growth_over_load_run_drop(self, graph, x, tmp_path):
        halftone.quantize_(graph, "int8wo")
        graph.save(str(tmp_path / "model.ht"))

        def cycles(count):
            for _ in range(count):
                loaded = halftone.load(tmp_path / "model.ht")
                loaded(x)
                del loaded
            gc.collect()

        cycles(50)
        before = resident_bytes()
        cycles(200)
        grown = resident_bytes() - before
        assert grown < 4e6, f"{grown} bytes more after 200 cycles"

    def test_a_dropped_module_is_gone(self, model, x):
        import weakref

        graph = halftone.export(model, x)
        graph(x)
        gone = weakref.ref(graph)
        del graph
        gc.collect()
        assert gone() is None


class TestLog:
    def test_messages_go_to_logging(self, caplog):
        backend = halftone.Backend("StaticInt8Backend", {"only_convolutions": True})
        with caplog.at_level(logging.DEBUG, logger="halftone"), pytest.raises(halftone.Error):
            backend.build(mlp(), None, [torch.ones(2, 64)])  # a failed build is logged
        assert any(record.name == "halftone" and record.levelno >= logging.WARNING for record in caplog.records)

    def test_nothing_is_printed(self, capfd):
        halftone.quantize_(mlp(), "int8wo")
        assert capfd.readouterr() == ("", "")


class TestExit:
    SCRIPT = """
import threading, time, torch, halftone
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(20))).eval()
x = torch.randn(512, 512)
graph = halftone.export(model, x)
graph(x)
def work():
    while True:
        graph(x)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("done")
"""

    def test_in_the_middle_of_calls(self):
        done = run_script(self.SCRIPT)
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

    def test_with_everything_alive(self):
        done = run_script(
            "import torch, halftone\n"
            "model = torch.nn.Sequential(torch.nn.Linear(64, 64)).eval()\n"
            "keep = [halftone.export(model, torch.ones(1, 64)), halftone.Backend('HalftoneBackend').build(model, None, [torch.ones(1, 64)])]\n"
            "keep.append(keep[0].session())\n"
            "print(keep[0](torch.ones(1, 64)).shape[1])\n"
        )
        assert (done.returncode, done.stdout) == (0, "64\n"), done.stderr

    def test_after_a_fork(self):
        done = run_script(
            "import os, torch, halftone\n"
            "torch.set_num_threads(1)\n"
            "graph = halftone.export(torch.nn.Sequential(torch.nn.Linear(64, 8)).eval(), torch.ones(1, 64))\n"
            "expected = graph(torch.ones(1, 64))\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(0 if torch.equal(graph(torch.ones(1, 64)), expected) else 1)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


class TestSurface:
    def test_everything_public_is_there(self):
        for name in halftone.__all__:
            assert getattr(halftone, name) is not None

    def test_an_unknown_name(self):
        with pytest.raises(AttributeError, match="no_such_thing"):
            _ = halftone.no_such_thing

    def test_version(self):
        assert halftone.__version__ == halftone._C.__version__ and halftone.__version__.count(".") == 2
