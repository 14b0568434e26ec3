"""Tests of halftone quantize and diagnose."""
import json

import torch
from safetensors.torch import load_file
from torch import nn

from cli_support import FOLDER, CliTest, export, main

export("classifier", "not_finite")


class Tied(nn.Module):
    """One weight for the embedding and the linear behind it."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(1000, 32)
        self.h = nn.Linear(32, 1000, bias=False)
        self.h.weight = self.e.weight

    def forward(self, ids):
        return self.h(self.e(ids))


class Recurrent(nn.Module):
    """Nearly all of its weights are those of an LSTM."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, num_layers=2)
        self.o = nn.Linear(64, 4)

    def forward(self, x):
        return self.o(self.lstm(x)[0])


class Images(nn.Module):
    """Convolutions, one of them transposed, and a linear."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.depth = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.point = nn.Conv2d(32, 64, 1)
        self.up = nn.ConvTranspose2d(64, 2, 2, 2)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.point(torch.relu(self.depth(torch.relu(self.norm(self.stem(x))))))
        return self.head(x.mean((2, 3))), self.up(x)


def save(name, module, *inputs):
    torch.manual_seed(0)
    with torch.no_grad():
        torch.export.save(torch.export.export(module().eval(), inputs), FOLDER / f"{name}.pt2")


save("tied", Tied, torch.arange(5))
save("images", Images, torch.randn(2, 3, 16, 16))
save("odd", lambda: nn.Sequential(nn.Linear(100, 33), nn.ReLU(), nn.Linear(33, 31), nn.ReLU(), nn.Linear(31, 40)), torch.randn(3, 100))
save("recurrent", Recurrent, torch.randn(3, 2, 32))


class Quantize(CliTest):
    BLOCK = "a_rather_long_name_of_a_block"

    def test_writes_a_checkpoint_that_runs(self):
        done = self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "-o", "int8.ht")
        self.assert_narrow(done.stdout)
        self.assertIn("3 layers quantized", done.stdout)
        self.assertIn("times smaller", done.stdout)
        self.assertRegex(done.stderr, r"wrote int8\.ht \(.*\); to run it: halftone run int8\.ht\n")
        self.ok("run", "int8.ht", "--outputs", "int8.safetensors")
        self.ok("run", "classifier.pt2", "--outputs", "fp32.safetensors")
        got, want = load_file(FOLDER / "int8.safetensors"), load_file(FOLDER / "fp32.safetensors")
        for name, tensor in want.items():
            if tensor.is_floating_point() and tensor.dim() > 0:
                similarity = torch.cosine_similarity(got[name].flatten(), tensor.flatten(), dim=0)
                self.assertGreater(float(similarity), 0.999, name)
        self.assertIn("halftone::int8_weight_only_linear", self.ok("inspect", "int8.ht", "--graph").stdout)

    def test_the_same_command_gives_the_same_bytes(self):
        for name in ("a.ht", "b.ht"):
            self.ok("quantize", "classifier.pt2", "--scheme", "int8dq", "--embeddings", "-o", name)
        self.assertEqual((FOLDER / "a.ht").read_bytes(), (FOLDER / "b.ht").read_bytes())

    def test_options_choose_layers_and_fields(self):
        report = json.loads(self.ok(
            "quantize", "classifier.pt2", "--scheme", "int8dq", "--weight-bits", "7", "--embeddings", "--exclude", r".*\.0",
            "--override", r".*\.2=int4wo", "--dry-run", "--json").stdout)
        layers = {layer["name"]: layer for layer in report["layers"]}
        self.assertEqual(layers["embedding"]["config"]["type"], "Int8WeightOnlyConfig")
        self.assertEqual(layers[self.BLOCK + ".0"]["outcome"], "kept")
        self.assertEqual(layers[self.BLOCK + ".2"]["config"]["type"], "Int4WeightOnlyConfig")
        self.assertEqual(layers["convolution"]["reason"], "a convolution of kernel 3")

    def test_a_dry_run_writes_nothing(self):
        done = self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "--dry-run", "-o", "never.ht")
        self.assertIn("3 layers quantized", done.stdout)
        self.assertFalse((FOLDER / "never.ht").exists())

    def test_nothing_is_silent(self):
        quantize = ("quantize", "classifier.pt2", "-o", "no.ht", "--scheme")
        self.fails(2, *quantize, "int8w", says=["int8w", "int8wo"])
        self.fails(1, *quantize, "int8wo", "--include", "nothing", says=["include pattern", "nothing", "embedding"])
        self.fails(1, *quantize, "int8wo", "--min-weights", "100000", says=["nothing to quantize", "fewer than"])
        self.fails(2, *quantize, "int8wo", "--group-size", "32", says=["--group-size", "Int8WeightOnlyConfig"])
        self.fails(2, *quantize, "int8wo", "--override", "x", says=["--override", "REGEX=SCHEME"])
        self.fails(2, "quantize", "classifier.pt2", "--scheme", "int8wo", says=["-o"])
        self.fails(2, "quantize", "classifier.pt2", says=["--scheme"])
        self.assertFalse((FOLDER / "no.ht").exists())

    def test_a_quantized_file_has_as_many_parameters(self):
        def parameters(model):
            return json.loads(self.ok("inspect", model, "--json").stdout)["totals"]["parameters"]

        for scheme in ("int8wo", "int8dq", "int4wo", "fp8wo", "bf16wo"):
            self.ok("quantize", "tied.pt2", "--scheme", scheme, "--embeddings", "-o", "counted.ht")
            self.assertEqual(parameters("counted.ht"), parameters("tied.pt2"), scheme)

    def test_four_bits_take_any_number_of_inputs(self):
        self.ok("run", "odd.pt2", "--outputs", "odd_fp32.safetensors")
        fp32 = load_file(FOLDER / "odd_fp32.safetensors")["output_0"]
        for config in ("int4wo", '{"type": "Int4WeightOnlyConfig", "activations": "int8"}'):
            self.ok("quantize", "odd.pt2", "--scheme", config, "--packed", "-o", "odd.ht")
            self.assertIn("is sound", self.ok("verify", "odd.ht").stdout)
            results = []
            for backend in ("eager", "halftone"):
                self.ok("run", "odd.ht", "--backend", backend, "--outputs", "odd.safetensors")
                results.append(load_file(FOLDER / "odd.safetensors")["output_0"])
            self.assertLess(float((results[0] - results[1]).abs().max()), 1e-5, config)
            self.assertGreater(float(torch.cosine_similarity(results[0].flatten(), fp32.flatten(), dim=0)), 0.98, config)

    def test_convolutions_are_stored_in_eight_bits(self):
        done = self.ok("quantize", "images.pt2", "--scheme", "int8wo", "-o", "images.ht")
        self.assertIn("4 layers quantized", done.stdout)
        self.assertRegex(done.stdout, r"1 convolution \(2\.0 kB, .* % of the bytes\) is not touched by this scheme")
        self.assertIn("4 quantized layers", self.ok("verify", "images.ht").stdout)
        totals = [json.loads(self.ok("inspect", f"images.{end}", "--json").stdout)["totals"]["parameters"] for end in ("pt2", "ht")]
        self.assertEqual(totals[0], totals[1])
        self.assertIn("point", self.ok("diagnose", "images.pt2", "--scheme", "int8wo").stdout)
        self.ok("run", "images.pt2", "--outputs", "images_fp32.safetensors")
        want = load_file(FOLDER / "images_fp32.safetensors")
        for backend in ("eager", "halftone"):
            self.ok("run", "images.ht", "--backend", backend, "--outputs", "images.safetensors")
            for name, tensor in load_file(FOLDER / "images.safetensors").items():
                self.assertGreater(float(torch.cosine_similarity(tensor.flatten(), want[name].flatten(), dim=0)), 0.9995, name)
        self.assertIn("quantized before", self.ok("quantize", "images.ht", "--scheme", "int8wo", "--dry-run").stdout)
        done = self.ok("quantize", "images.pt2", "--scheme", "int8dq", "--dry-run")
        self.assertIn("4 convolutions", done.stdout)
        self.assertIn("--scheme int8wo", done.stderr)

    def test_says_what_it_left_alone(self):
        done = self.ok("quantize", "recurrent.pt2", "--scheme", "int8wo", "-o", "recurrent.ht")
        self.assert_narrow(done.stdout)
        self.assertRegex(done.stdout, r"1 LSTM \(2\d\d\.\d kB, 99\.\d % of the bytes\) is not touched by this scheme")
        self.assertIn("warning: most of the model", done.stderr)
        report = json.loads(self.ok("quantize", "recurrent.pt2", "--scheme", "int8wo", "--dry-run", "--json").stdout)
        self.assertEqual([kind["kind"] for kind in report["left_alone"]], ["LSTM"])
        self.assertGreater(report["left_alone"][0]["share"], 0.98)
        self.assertEqual(len(report["warnings"]), 1)
        self.assertNotIn("warning", self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "--embeddings", "--dry-run").stderr)

    def test_a_larger_file_is_a_warning(self):
        done = self.ok("quantize", "tied.pt2", "--scheme", "int8wo", "-o", "tied.ht")
        self.assertIn("1.28 times larger", done.stdout)
        self.assertNotIn("0.78", done.stdout)
        self.assertIn("warning: the model became larger", done.stderr)
        self.assertIn("--embeddings", done.stderr)
        done = self.ok("quantize", "tied.pt2", "--scheme", "int8wo", "--embeddings", "-o", "tied.ht")
        self.assertNotIn("warning", done.stderr)
        self.assertIn("Quantized weights: 128.0 kB -> 36.0 kB (3.56 times smaller)", done.stdout)
        self.assertIn("Whole model:       128.0 kB -> 36.0 kB (3.56 times smaller)", done.stdout)

    def test_another_scheme_on_a_quantized_model_is_an_error(self):
        self.ok("quantize", "classifier.pt2", "--scheme", "int8wo", "-o", "once.ht")
        self.assertIn("3 layers quantized before", self.ok("quantize", "once.ht", "--scheme", "int8wo", "--dry-run").stdout)
        self.fails(1, "quantize", "once.ht", "--scheme", "int8dq", "-o", "twice.ht", says=["already", self.BLOCK + ".0"])


class Diagnose(CliTest):
    def test_sorts_layers_by_harm(self):
        done = self.ok("diagnose", "classifier.pt2", "--scheme", "int8wo", "--csv", "layers.csv")
        self.assert_narrow(done.stdout)
        self.assertIn("All of them quantized", done.stdout)
        self.assertEqual(len((FOLDER / "layers.csv").read_text().splitlines()), 4)
        report = json.loads(self.ok("diagnose", "classifier.pt2", "--scheme", "int8wo", "--json").stdout)
        shares = [layer["share"] for layer in report["layers"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 1.0)
        for layer in report["layers"]:
            for part in ("weight", "output", "result"):
                self.assertGreater(layer[part]["snr_db"], 25, layer)
                self.assertGreater(layer[part]["cosine"], 0.999)

    def test_refuses_as_quantize_does(self):
        self.fails(1, "diagnose", "classifier.pt2", "--scheme", "int8wo", "--include", "nope", says=["nope"])

    def test_diagnose_does_not_call_a_damaged_result_exact(self):
        done = self.ok("diagnose", "not_finite.pt2", "--scheme", "int4wo")
        result = json.loads(self.ok("diagnose", "not_finite.pt2", "--scheme", "int4wo", "--json").stdout)["result"]
        self.assertNotIn("exact", done.stdout)
        self.assertIn("elements are NaN or infinite in one of the two models", done.stdout)
        self.assertIn("elements are NaN or infinite in both models", done.stdout)
        self.assertFalse(result["exact"])
        self.assertGreater(result["same_not_finite"], 100)
        self.assertGreater(result["differing_not_finite"], 0)
        self.assertGreater(result["max_error"], 0)
        self.assertTrue(0 < result["snr_db"] < 60, result)

    def test_diagnose_says_what_it_cannot_read_and_write(self):
        self.fails(1, "diagnose", "classifier.pt2", "--scheme", "int8wo", "--csv", "no/folder.csv", says=["no/folder.csv"])


if __name__ == "__main__":
    main()
