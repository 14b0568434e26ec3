"""The scripts of the peers without the peers: options, processes, medians. Needs none of their packages."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
import measuring  # noqa: E402
import network  # noqa: E402

SCRIPTS = ("encoder", "linear", "resnet", "vit")
# A stand-in for a script: its network has one peer that writes a line and one that fails.
SCRIPT = """
import json, sys
sys.path.insert(0, {folder!r})
import measuring, network
network.PEERS = {{"good": network.Peer(None), "bad": network.Peer(None), "absent": network.Peer(None, ("no_such_runtime",))}}
measuring.missing_modules = lambda peer: ["no_such_runtime"] if peer == "absent" else []
def measure(peer, made, threads, seconds):
    if peer == "bad": raise SystemExit(5)
    print(json.dumps({{"peer": peer, "made": made, "threads": threads, "seconds": seconds}}))
measuring.measure = measure
sys.exit(measuring.main(__file__, "stand-in", lambda: 7, "good,absent"))
"""


class Peers(unittest.TestCase):
    def run_script(self, path, *options):
        return subprocess.run([sys.executable, "-B", str(path), *options], capture_output=True, text=True)

    def test_help_needs_no_packages_and_names_the_peers(self):
        for script in SCRIPTS:
            done = self.run_script(FOLDER / f"{script}.py", "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("ort-int8", done.stdout)

    def test_unknown_peers_are_refused_with_the_known_ones(self):
        for script in SCRIPTS:
            done = self.run_script(FOLDER / f"{script}.py", "--peers", "ort-int8,another")
            self.assertEqual(done.returncode, 2, script)
            self.assertIn("unknown peer 'another'; known: ", done.stderr)

    def stand_in(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "stand_in.py"
            path.write_text(SCRIPT.format(folder=str(FOLDER)))
            return self.run_script(path, *options)

    def test_each_peer_is_a_process_and_absent_ones_are_named(self):
        done = self.stand_in("--threads", "3", "--seconds", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"peer": "good", "made": 7, "threads": 3, "seconds": 0.5})
        self.assertIn("stand_in: absent is not measured: this Python has no no_such_runtime", done.stderr)

    def test_a_peer_that_fails_is_named_and_the_others_run(self):
        done = self.stand_in("--peers", "bad,good")
        self.assertEqual(done.returncode, 1)
        self.assertIn("stand_in: bad failed", done.stderr)
        self.assertEqual(json.loads(done.stdout)["peer"], "good")

    def test_the_median_leaves_out_the_first_two_calls(self):
        now, lengths = [0.0], iter([100, 50, 1, 2, 3, 4, 90, 7])

        def run():
            now[0] += next(lengths)

        self.assertEqual(measuring.median_ms(run, 0, clock=lambda: now[0]), 3000)
        self.assertEqual(next(lengths), 7)  # five runs, though the time was over after one

    def test_missing_modules(self):
        with mock.patch.dict(network.PEERS, {"odd": network.Peer(None, ("json", "no_such_module"))}):
            self.assertEqual([name for name in measuring.missing_modules("odd") if name != "torch"], ["no_such_module"])


if __name__ == "__main__":
    unittest.main()
