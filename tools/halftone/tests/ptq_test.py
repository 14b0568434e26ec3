"""Tests of halftone ptq: a small residual network, calibrated, written, run, and everything that can be wrong."""
import json

import torch
from safetensors.torch import load_file, save_file
from torch import nn

import cli_support
from cli_support import FOLDER, CliTest, export, main


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, pixels):
        x = torch.relu(self.bn1(self.conv1(pixels)))
        x = torch.relu(self.bn2(self.conv2(x)) + x)
        return self.head(torch.flatten(self.pool(x), 1))


def images(count, seed):
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


def residual(dynamic):
    torch.manual_seed(0)
    model = Residual()
    model(images(64, 1))  # statistics for batch norm
    model.eval().requires_grad_(False)
    shapes = {"pixels": {0: torch.export.Dim("batch", min=1, max=64)}} if dynamic else None
    return torch.export.export(model, (images(4, 2),), dynamic_shapes=shapes)


class Nothing(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 0)


cli_support.EXPORTERS |= {"residual": lambda: residual(True), "fixed": lambda: residual(False),
                          "nothing": lambda: torch.export.export(Nothing(), (torch.ones(4),))}
export("residual", "fixed", "nothing")
save_file({"pixels": images(30, 3)}, FOLDER / "data.safetensors")
save_file({"pixels": images(6, 4)}, FOLDER / "test.safetensors")
bad = images(4, 5)
bad[1, 0, 2, 2] = float("nan")
save_file({"pixels": bad}, FOLDER / "nan.safetensors")
save_file({"pixels": images(0, 5)}, FOLDER / "empty.safetensors")
save_file({"picture": images(4, 5)}, FOLDER / "other.safetensors")
save_file({"x": torch.ones(8)}, FOLDER / "ones.safetensors")


class Ptq(CliTest):
    DATA = ("residual.pt2", "--data", "data.safetensors")

    def answers(self, model):
        self.ok("run", model, "--inputs", "test.safetensors", "--outputs", "answers.safetensors")
        return load_file(FOLDER / "answers.safetensors")["output_0"]

    def test_writes_a_checkpoint_that_runs_in_int8(self):
        done = self.ok("ptq", *self.DATA, "-o", "int8.ht")
        self.assert_narrow(done.stdout)
        for word in ("Conv2d", "conv1", "head", "cosine", "8 calls calibrated"):
            self.assertIn(word, done.stdout)
        self.assertRegex(done.stderr, r"wrote int8\.ht \([\d.]+ kB; residual\.pt2 has [\d.]+ kB\)")
        got, want = self.answers("int8.ht"), self.answers("residual.pt2")
        self.assertGreater(float(torch.cosine_similarity(got, want).min()), 0.995)
        graph = self.ok("inspect", "int8.ht", "--graph").stdout
        self.assertIn("halftone::int8_conv", graph)
        self.assertNotIn("aten::conv2d", graph)
        self.assertLess((FOLDER / "int8.ht").stat().st_size, (FOLDER / "residual.pt2").stat().st_size)

    def test_verify_and_inspect_count_static_int8(self):
        self.ok("ptq", *self.DATA, "-o", "counted.ht")
        self.assertIn("3 quantized layers (3 static int8)", self.ok("verify", "counted.ht").stdout)
        self.assertEqual(json.loads(self.ok("verify", "counted.ht", "--json").stdout)["quantized_layers"], 3)
        layers = {layer["name"]: layer["parameters"] for layer in json.loads(self.ok("inspect", "counted.ht", "--json").stdout)["layers"]}
        self.assertEqual(layers["conv1"], 16 * 3 * 9 + 16)  # the bias came from the norm
        self.assertEqual(layers["head"], 16 * 10 + 10)

    def test_all_widths_agree_with_fp32(self):
        want = self.answers("residual.pt2")
        for bits in ((8, 8), (7, 8), (8, 7), (7, 7)):
            self.ok("ptq", *self.DATA, "--activation-bits", bits[0], "--weight-bits", bits[1], "-o", "bits.ht")
            self.assertGreater(float(torch.cosine_similarity(self.answers("bits.ht"), want).min()), 0.99, bits)

    def test_the_reference_graph_gives_nearly_the_same(self):
        self.ok("ptq", *self.DATA, "-o", "lowered.ht")
        self.ok("ptq", *self.DATA, "--reference", "-o", "reference.ht")
        graph = self.ok("inspect", "reference.ht", "--graph").stdout
        self.assertIn("halftone::quantize_per_tensor", graph)
        self.assertIn("aten::conv2d", graph)
        got, want = self.answers("lowered.ht"), self.answers("reference.ht")
        self.assertGreater(float(torch.cosine_similarity(got, want).min()), 0.9995)

    def test_json_has_patterns_layers_and_scales(self):
        report = json.loads(self.ok("ptq", *self.DATA, "-o", "json.ht", "--json").stdout)
        self.assertEqual(report["calibrated"], 8)
        self.assertGreater(report["cosine"], 0.99)
        self.assertIn("conv1", {layer["layer"] for layer in report["layers"]})
        for layer in report["layers"]:
            self.assertGreater(layer["snr_db"], 15, layer)  # as diagnose has it: more is better
        quantized = [pattern for pattern in report["patterns"]["patterns"] if pattern["quantized"]]
        self.assertGreaterEqual(len(quantized), 3)

    def test_statistics_are_used_again(self):
        self.ok("ptq", *self.DATA, "--statistics-out", "seen.json", "-o", "a.ht")
        self.ok("ptq", *self.DATA, "--statistics", "seen.json", "-o", "b.ht")
        self.assertEqual((FOLDER / "a.ht").read_bytes(), (FOLDER / "b.ht").read_bytes())
        self.ok("ptq", *self.DATA, "--statistics", "seen.json", "--weight-bits", "7", "-o", "c.ht")
        self.assertNotEqual((FOLDER / "a.ht").read_bytes(), (FOLDER / "c.ht").read_bytes())

    def test_a_model_of_one_batch_leaves_out_the_rest_and_says_so(self):
        done = self.ok("ptq", "fixed.pt2", "--data", "data.safetensors", "-o", "fixed.ht")
        self.assertIn("the last 2 entries are not used", done.stderr)
        self.assertIn("7 calls calibrated", done.stdout)
        save_file({"pixels": images(5, 3)}, FOLDER / "five.safetensors")
        one = self.ok("ptq", "fixed.pt2", "--data", "five.safetensors", "-o", "fixed.ht")
        self.assertIn("the last entry is not used", one.stderr)
        self.assertIn("1 call calibrated", one.stdout)
        self.fails(1, "ptq", "fixed.pt2", "--data", "data.safetensors", "--batch", "3", "-o", "no.ht", says=["--batch 3", "4"])

    def test_bad_input(self):
        ptq = ("ptq", "residual.pt2", "-o", "no.ht", "--data")
        self.fails(1, *ptq, "nan.safetensors", says=["NaN"])
        self.fails(1, *ptq, "empty.safetensors", says=["no entries"])
        self.fails(1, *ptq, "other.safetensors", says=["missing 'pixels'", "unexpected 'picture'"])
        self.fails(2, *ptq, "data.safetensors", "--backend-config", "x68", says=["x68", "x86"])
        self.fails(2, *ptq, "data.safetensors", "--qconfig", "x68", says=["x68"])
        self.fails(1, "ptq", "nothing.pt2", "--data", "ones.safetensors", "-o", "no.ht", says=["match"])
        self.fails(2, *ptq, "data.safetensors", "--weight-bits", "6", says=["--weight-bits"])
        (FOLDER / "broken.json").write_text('{"name": "mine", "configs": [{"pattern": "torch.nn.Conv7d"}]}')
        self.fails(1, *ptq, "data.safetensors", "--backend-config", "broken.json", says=["broken.json", "configs[0]", "torch.nn.Conv7d"])
        (FOLDER / "unquantized.json").write_text("{}")
        self.fails(1, *ptq, "data.safetensors", "--qconfig", "unquantized.json")
        self.assertFalse((FOLDER / "no.ht").exists())


if __name__ == "__main__":
    main()
