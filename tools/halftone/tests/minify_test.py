"""Tests of halftone minify."""
import json

from safetensors.torch import load_file, save_file

from cli_support import FOLDER, CliTest, classifier_inputs, export, main, run

export("classifier")


class Minify(CliTest):
    def test_finds_the_node_that_fails_and_checks_it_again(self):
        for kind, failure in (("compile", "compile error"), ("runtime", "run error"), ("accuracy", "wrong numbers")):
            backend = f"relu_{kind}_error"
            done = self.ok("minify", "classifier.pt2", "--backend", backend, "-o", backend)
            self.assert_narrow(done.stdout)
            self.assertIn(failure, done.stdout)
            self.assertIn("aten::relu(", done.stdout)
            self.assertEqual({path.name for path in (FOLDER / backend).iterdir()},
                             {"graph.txt", "inputs.safetensors", "README.txt"})
            graph = (FOLDER / backend / "graph.txt").read_text()
            self.assertEqual(graph.count("::"), 1, graph)
            self.assertEqual(len(load_file(FOLDER / backend / "inputs.safetensors")), 1)
            self.assertIn(f"--backend {backend}", (FOLDER / backend / "README.txt").read_text())
            self.fails(1, "minify", "--check", backend, "--backend", backend, says=[failure, backend])
            checked = run("minify", "--check", backend, "--backend", backend, "--json")
            self.assertEqual(checked.returncode, 1)
            self.assertTrue(json.loads(checked.stdout)["fails"])
            self.assertIn("does not fail", self.ok("minify", "--check", backend, "--backend", "eager").stdout)

    def test_reports_for_programs(self):
        save_file(classifier_inputs(3), FOLDER / "three.safetensors")
        report = json.loads(self.ok("minify", "classifier.pt2", "--backend", "relu_runtime_error", "--inputs",
                                    "three.safetensors", "-o", "three", "--json").stdout)
        self.assertEqual(report["nodes_after"], 1)
        self.assertGreater(report["nodes_before"], 5)
        self.assertTrue(report["complete"])
        self.assertEqual(report["failure"]["kind"], "run error")
        self.assertEqual(next(iter(load_file(FOLDER / "three/inputs.safetensors").values())).shape[0], 3)
        self.assertFalse(json.loads(self.ok("minify", "--check", "three", "--backend", "ts", "--json").stdout)["fails"])

    def test_a_limit_on_trials_is_no_secret(self):
        done = self.ok("minify", "classifier.pt2", "--backend", "relu_runtime_error", "-o", "few", "--max-trials", "1")
        self.assertIn("--max-trials", done.stderr)

    def test_refuses(self):
        self.fails(1, "minify", "classifier.pt2", "--backend", "eager", "-o", "never", says=["does not fail", "0.001 * (1 + |y|)"])
        # Rounding is no failure, and the message says where that ends.
        self.fails(1, "minify", "classifier.pt2", "--backend", "halftone", "--tolerance", "0", "-o", "never",
                   says=["does not fail", "within 0 * (1 + |y|)", "eight steps"])
        self.assertFalse((FOLDER / "never").exists())
        self.fails(2, "minify", "classifier.pt2", "--backend", "haltone", says=["haltone", "there are halftone,"])
        self.fails(1, "minify", "--check", "nowhere", "--backend", "eager", says=["nowhere", "no such folder"])
        self.fails(1, "minify", "--check", "classifier.pt2", "--backend", "eager", says=["not a folder that minify wrote"])
        self.fails(2, "minify", "--check", "few", "--backend", "eager", "--inputs", "x.safetensors", says=["--check", "--inputs"])
        self.fails(2, "minify", "--backend", "eager", says=["MODEL", "--check"])
        self.fails(2, "minify", "classifier.pt2", "--check", "few", "--backend", "eager", says=["--check"])
        self.fails(2, "minify", "classifier.pt2", says=["--backend"])

    def test_places_that_cannot_be_written_come_before_the_search(self):
        """The model is missing too: that would be said later."""
        search = ("minify", "nowhere.pt2", "--backend", "relu_compile_error")
        (FOLDER / "file").write_text("x")
        for place, says in (("/proc/case", "cannot be written"), ("/proc/a/b", "cannot be written"), ("file", "no folder"),
                            ("file/case", "cannot be written")):
            self.fails(1, *search, "-o", place, says=[place.split("/")[0] or "/proc", says])

    def test_inputs_that_do_not_fit_are_named_by_their_file(self):
        save_file({"ids": classifier_inputs()["ids"]}, FOLDER / "short.safetensors")
        save_file(classifier_inputs(40), FOLDER / "forty.safetensors")
        for name, says in (("short", "missing 'scale'"), ("forty", "1 to 32"), ("nowhere", "No such file")):
            self.fails(1, "minify", "classifier.pt2", "--backend", "relu_compile_error", "--inputs", f"{name}.safetensors",
                       says=[f"{name}.safetensors", says])


if __name__ == "__main__":
    main()
