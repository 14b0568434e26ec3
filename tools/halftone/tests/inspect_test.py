"""Tests of halftone inspect."""
import json

from safetensors.torch import save_file

from cli_support import FOLDER, CliTest, classifier, classifier_inputs, export, main

export("classifier", "block", "counter", "custom", "no_samples")


class Inspect(CliTest):
    def test_tables(self):
        done = self.ok("inspect", "classifier.pt2")
        self.assert_narrow(done.stdout)
        self.assertEqual(done.stderr, "")
        for word in ("embedding", "a_rather_long_name_of_a_block.0", "convolution", "ids", "int64", "1…32", "scale",
                     "['features']", "conv1d", "quantize"):
            self.assertIn(word, done.stdout)

    def test_json(self):
        report = json.loads(self.ok("inspect", "classifier.pt2", "--json").stdout)
        parameters = sum(parameter.numel() for parameter in classifier().parameters())
        self.assertEqual(report["totals"]["parameters"], parameters)
        self.assertEqual(report["totals"]["parameter_bytes"], 4 * parameters)
        self.assertEqual([entry["name"] for entry in report["inputs"]], ["ids", "scale"])
        self.assertEqual(report["inputs"][0]["dtype"], "int64")
        (dimension,) = report["inputs"][0]["dynamic"]
        self.assertEqual((dimension["dim"], dimension["min"], dimension["max"]), (0, 1, 32))
        layers = {layer["name"]: layer for layer in report["layers"]}
        self.assertEqual(layers["convolution"]["parameters"], 16 * 8 * 3 + 8)
        self.assertEqual(report["quantizable"]["linears"]["count"], 2)
        self.assertEqual(report["quantizable"]["linears"]["bytes"], 4 * (2 * 16 * 32 + 16 + 32))
        self.assertEqual(report["quantizable"]["embeddings"]["count"], 1)
        self.assertEqual(report["quantizable"]["convolutions"]["count"], 1)

    def test_time_shares_add_up(self):
        done = self.ok("inspect", "classifier.pt2", "--time", "--json")
        shares = [layer["time_share"] for layer in json.loads(done.stdout)["layers"]]
        self.assertAlmostEqual(sum(shares), 1, places=5)
        self.assertTrue(all(share >= 0 for share in shares))
        table = self.ok("inspect", "classifier.pt2", "--time")
        self.assertIn("%", table.stdout)
        self.assert_narrow(table.stdout)

    def test_time_takes_inputs(self):
        save_file(classifier_inputs(batch=3), FOLDER / "three.safetensors")
        self.ok("inspect", "classifier.pt2", "--time", "--inputs", "three.safetensors")
        self.fails(1, "inspect", "no_samples.pt2", "--time", says=["--inputs"])
        self.ok("inspect", "no_samples.pt2")

    def test_submodules_that_are_worth_tuning(self):
        done = self.ok("inspect", "block.pt2", "--submodules")
        self.assert_narrow(done.stdout)
        report = json.loads(self.ok("inspect", "block.pt2", "--submodules", "--json").stdout)
        parts = {part["name"]: part for part in report["submodules"]}
        self.assertTrue(parts["up"]["worth"] and parts["down"]["worth"], parts)
        self.assertFalse(parts["norm"]["worth"])
        self.assertTrue(parts["norm"]["reason"])
        self.assertAlmostEqual(sum(part["share"] for part in parts.values()), 1, places=3)
        self.fails(1, "inspect", "no_samples.pt2", "--submodules", says=["--inputs"])
        self.fails(2, "inspect", "block.pt2", "--submodules", "--time", says=["--time"])

    def test_graph_and_dot(self):
        self.assertIn("aten::", self.ok("inspect", "classifier.pt2", "--graph").stdout)
        self.assertTrue(self.ok("inspect", "classifier.pt2", "--dot").stdout.lstrip().startswith("digraph"))

    def test_state_is_shown(self):
        self.assertIn("total", self.ok("inspect", "counter.pt2").stdout)

    def test_unknown_operators_are_listed_as_such(self):
        done = self.ok("inspect", "custom.pt2")
        self.assert_narrow(done.stdout)
        for words in ("cannot run here", "aten::linear", "halftone_cli_test::magic", "f.weight", "[4, 8]", "float32", "--load-library"):
            self.assertIn(words, done.stdout)
        report = json.loads(self.ok("inspect", "custom.pt2", "--json").stdout)
        self.assertFalse(report["runs_here"])
        node, = report["refused"]
        self.assertEqual(node["op"], "torch.ops.halftone_cli_test.magic.default")
        self.assertEqual([(tensor["name"], tensor["shape"]) for tensor in report["tensors"]], [("f.weight", "[4, 8]"), ("f.bias", "[4]")])
        self.assertEqual(report["inputs"][0]["name"], "x")

    def test_all_else_refuses_them_still(self):
        for command in (("run", "custom.pt2"), ("inspect", "custom.pt2", "--graph"), ("inspect", "custom.pt2", "--time"),
                        ("quantize", "custom.pt2", "--scheme", "int8wo", "-o", "never.ht"), ("tune", "custom.pt2"),
                        ("compare", "custom.pt2", "custom.pt2")):
            self.fails(1, *command, says=["halftone_cli_test.magic", "--load-library"])
        self.assertFalse((FOLDER / "never.ht").exists())

    def test_inspect_shows_what_the_backend_makes(self):
        done = self.ok("inspect", "classifier.pt2", "--backend", "halftone")
        for part in ("fuse_linear", "halftone::fused_linear", "fuse_conv", "halftone::conv", "Left to ATen, and why",
                     "aten::mul.Tensor", "Compiled in"):
            self.assertIn(part, done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)
        found = json.loads(self.ok("inspect", "classifier.pt2", "--backend", "halftone", "--json").stdout)
        self.assertTrue(any("aten::mul" in line for line in found["left_to_aten"]))
        self.assertTrue(found["steps"])
        self.assertIn("Nothing is left to ATen", self.ok("inspect", "block.pt2", "--backend", "halftone").stdout)
        self.fails(2, "inspect", "classifier.pt2", "--backend", "gpu", says=["halftone"])
        self.fails(2, "inspect", "classifier.pt2", "--inputs", "x.safetensors", says=["--time"])


if __name__ == "__main__":
    main()
