#!/usr/bin/env python3
"""oracle_test.py TOOL: lower() on the models that the PTQ flow is compared with torch.ao on: what it leaves float, and that results
stay those of the reference graph."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ptq"))
import oracle_models  # noqa: E402
import oracle_reference as oracle  # noqa: E402

TOOL = sys.argv[1] if len(sys.argv) > 1 else "lower_tool"
# Models that have an operator which the others have not.
NAMES = sys.argv[2:] or ["resnet_x86", "mobilenet", "squeeze_excite", "mlp_onednn", "mlp_dynamic", "net1d", "net3d", "decoder", "inception",
                         "unet", "shapes", "mixer", "embedded", "bag", "functional", "odds", "sums"]

# All that may stay float, and why; every other operator of every model has an int8 kernel.
KEPT = {
    "aten::embedding": "no int8 kernel",
    "aten::embedding_bag.padding_idx": "no int8 kernel",
    "aten::group_norm": "no int8 kernel",
    "aten::instance_norm": "no int8 kernel",
    "aten::layer_norm": "no int8 kernel",
    "aten::leaky_relu": "where a product writes its result",
    "aten::linear": ("its weight is not quantized", "quantized at run time"),
    "aten::matmul": "no int8 kernel",
    "aten::prelu": "its slopes differ between channels",
    "aten::softmax.int": "no int8 kernel",
}
# Linear interpolation by a factor of 2 has weights of quarters: results often lie on the border between two integers.
ROUNDED_DIFFERENTLY = {"unet": 0.06}


def write_model(folder, name):
    model, calibration, test, backend, mapping = oracle_models.make(name)
    base = pathlib.Path(folder, name)
    with torch.no_grad():
        torch.export.save(torch.export.export(model, calibration[0]), base.with_suffix(".pt2"))
    samples = {**{str(i): sample for i, sample in enumerate(calibration)}, "test": test}
    tensors = {f"{key}.{j}": x.contiguous() for key, sample in samples.items() for j, x in enumerate(sample)}
    save_file(tensors, f"{base}.data.safetensors")
    pathlib.Path(f"{base}.backend.json").write_text(json.dumps(oracle.backend_json(oracle.backend_of(backend))))
    pathlib.Path(f"{base}.qconfig.json").write_text(json.dumps(oracle.mapping_json(oracle.mapping_of(mapping))))


class Lowered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            for name in NAMES:
                write_model(folder, name)
            done = subprocess.run([TOOL, folder, *NAMES], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.models = dict(zip(NAMES, map(json.loads, done.stdout.splitlines()), strict=True))

    def test_what_stays_float(self):
        for name, model in self.models.items():
            with self.subTest(name):
                for kept in model["kept"]:
                    self.assertIn(kept["target"], KEPT)
                    reasons = KEPT[kept["target"]]
                    reasons = (reasons,) if isinstance(reasons, str) else reasons
                    self.assertTrue(any(reason in kept["reason"] for reason in reasons), kept)
                self.assertTrue(model["operators"] or name == "mlp_dynamic")

    def test_results(self):
        for name, model in self.models.items():
            with self.subTest(name):
                print(f"{name}: {model['differing']} of {model['elements']} elements differ, by {model['largest']:.3f} steps at most")
                self.assertLessEqual(model["largest"], 1.001)
                self.assertLessEqual(model["differing"], ROUNDED_DIFFERENTLY.get(name, 0.001) * model["elements"])
                self.assertTrue(model["strides"])

    def test_compiled(self):
        for name, model in self.models.items():
            with self.subTest(name):
                # Float products of our kernels add in another order than ATen's.
                exact = not any(kept["target"] in ("aten::linear", "aten::matmul") for kept in model["kept"])
                self.assertLessEqual(model["compiled"], 0 if exact else 1e-5)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
