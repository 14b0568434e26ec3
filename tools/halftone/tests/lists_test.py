"""Tests of the commands that list what there is: kernels, schemes, backends."""
import json
import os

from cli_support import CliTest, main


class Kernels(CliTest):
    def test_lists_every_level_and_says_what_runs_here(self):
        done = self.ok("kernels")
        self.assert_narrow(done.stdout)
        self.assertIn("int8_linear", done.stdout)
        capped = {"env": {**os.environ, "HALFTONE_ISA": "scalar"}}
        report = json.loads(self.ok("kernels", "--json", **capped).stdout)
        self.assertEqual(report["instruction_set"], "scalar")
        for kernel in report["kernels"]:
            self.assertEqual(kernel["runs_here"], kernel["instruction_set"] == "scalar", kernel)

    def test_explains_a_choice(self):
        report = json.loads(self.ok("kernels", "--explain", "1", "64", "64", "int8-7bit", "--json").stdout)
        self.assertEqual(sum(kernel["chosen"] for kernel in report["kernels"]), 1)
        self.assertTrue(all(kernel["chosen"] or kernel["reason"] for kernel in report["kernels"]))
        self.assertIn("bf16_linear", self.ok("kernels", "--explain", "1", "64", "64", "bf16wo").stdout)
        self.fails(2, "kernels", "--explain", "1", "64", "64", "int3", says=["int3", "int8wo"])
        self.fails(2, "kernels", "--explain", "0", "64", "64", "fp32", says=["M", "positive"])
        self.fails(2, "kernels", "--explain", "1", "64", says=["--explain"])

    def test_an_unknown_level_is_an_error(self):
        self.fails(1, "kernels", says=["HALFTONE_ISA", "neon9"], env={**os.environ, "HALFTONE_ISA": "neon9"})


class Schemes(CliTest):
    def test_lists_names_and_kernels(self):
        done = self.ok("schemes")
        self.assert_narrow(done.stdout)
        for word in ("int8wo, int8weightonly", "int4wo", "fp8dq", "bf16wo, bf16weightonly", "noquant"):
            self.assertIn(word, done.stdout)
        schemes = json.loads(self.ok("schemes", "--json").stdout)["schemes"]
        by_name = {scheme["names"][0]: scheme for scheme in schemes}
        self.assertEqual(by_name["int4wo"]["config"]["group_size"], 32)
        self.assertIn("int8", by_name["int8dq"]["kernel"])
        self.assertIn("bf16_linear", by_name["bf16wo"]["kernel"])
        self.assertEqual(by_name["noquant"]["kernel"], "")


class Backends(CliTest):
    def test_lists_names_tags_and_what(self):
        done = self.ok("backends")
        self.assert_narrow(done.stdout)
        self.assertIn("halftone", done.stdout)
        self.assertNotIn("relu_", done.stdout)
        everything = self.ok("backends", "--all").stdout
        self.assert_narrow(everything)
        self.assertIn("relu_accuracy_error", everything)
        backends = {b["name"]: b for b in json.loads(self.ok("backends", "--all", "--json").stdout)["backends"]}
        self.assertEqual(backends["ts"]["tags"], ["legacy"])
        self.assertEqual(backends["relu_compile_error"]["tags"], ["debug"])
        self.assertEqual(list(backends), sorted(backends))
        self.assertTrue(all(b["what"] for b in backends.values()))

    def test_lists_the_types_that_files_hold(self):
        types = {entry["type"]: entry["what"] for entry in json.loads(self.ok("backends", "--json").stdout)["types"]}
        self.assertLessEqual({"EagerBackend", "HalftoneBackend", "QuantBackend", "TorchScriptBackend"}, set(types))
        for name, what in types.items():
            self.assertTrue(what, name)
            self.assertIn(name, self.ok("backends").stdout)


if __name__ == "__main__":
    main()
