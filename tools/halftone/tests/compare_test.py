"""Tests of halftone compare: results, limits, times, sizes, what cannot be compared."""
import json

import numpy

from cli_support import FOLDER, CliTest, export, main, run

export("block", "classifier", "counter", "not_finite", "drawing")


class Compare(CliTest):
    @classmethod
    def setUpClass(cls):
        for model, scheme, output in (("block", "int8wo", "block.ht"), ("not_finite", "int4wo", "not_finite.ht"),
                                      ("classifier", "int8wo", "classifier.ht")):
            done = run("quantize", f"{model}.pt2", "--scheme", scheme, "-o", output)
            assert done.returncode == 0, done.stderr

    def report(self, *arguments):
        return json.loads(self.ok("compare", *arguments, "--json").stdout)

    def test_results_times_and_sizes(self):
        done = self.ok("compare", "block.pt2", "block.ht", "--seconds", "0.3")
        self.assert_narrow(done.stdout)
        for words in ("A: block.pt2, backend halftone", "B: block.ht, backend halftone", "cosine", "SNR dB", "Times: A ", "at 95 %",
                      "Sizes: A "):
            self.assertIn(words, " ".join(done.stdout.split()))
        report = self.report("block.pt2", "block.ht", "--seconds", "0.3")
        output, = report["outputs"]
        self.assertTrue(0.999 < output["cosine"] < 1 and 20 < output["snr_db"] < 80 and output["max_error"] > 0)
        self.assertTrue(report["speedup_low"] <= report["speedup"] <= report["speedup_high"])
        self.assertGreaterEqual(report["rounds"], 6)
        self.assertEqual(report["b"]["bytes"], (FOLDER / "block.ht").stat().st_size)

    def test_numbers_are_those_of_the_outputs(self):
        for name in ("block.pt2", "block.ht"):
            self.ok("run", name, "--outputs", f"{name}.npy")
        x, y = (numpy.load(FOLDER / f"{name}.npy").astype(numpy.float64).ravel() for name in ("block.pt2", "block.ht"))
        output, = self.report("block.pt2", "block.ht", "--no-times")["outputs"]
        self.assertAlmostEqual(output["max_error"], abs(x - y).max())
        self.assertAlmostEqual(output["cosine"], x @ y / numpy.linalg.norm(x) / numpy.linalg.norm(y))
        self.assertAlmostEqual(output["snr_db"], 10 * numpy.log10((x @ x) / ((x - y) @ (x - y))), places=5)

    def test_a_model_equals_itself(self):
        report = self.report("counter.pt2", "counter.pt2", "--no-times", "--tolerance", "0", "--min-cosine", "1")
        self.assertTrue(all(output["exact"] for output in report["outputs"]))
        self.assertNotIn("speedup", report)
        report = self.report("block.pt2", "block.pt2", "--backend-a", "eager", "--no-times", "--tolerance", "1e-5")
        self.assertEqual((report["a"]["backend"], report["b"]["backend"]), ("eager", "halftone"))

    def test_limits_are_exit_code_one(self):
        done = run("compare", "block.pt2", "block.ht", "--no-times", "--tolerance", "1e-7", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertGreater(json.loads(done.stdout)["outputs"][0]["beyond_tolerance"], 0)
        self.assertIn("beyond --tolerance 1e-07", done.stderr)
        done = run("compare", "block.pt2", "block.ht", "--no-times", "--min-cosine", "0.9999999")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is less than 0.9999999", done.stderr)
        self.ok("compare", "block.pt2", "block.ht", "--no-times", "--min-cosine", "0.99")

    def test_what_is_not_finite_is_counted_and_differs(self):
        output, = self.report("not_finite.pt2", "not_finite.pt2", "--no-times", "--tolerance", "0")["outputs"]
        self.assertTrue(output["exact"] and output["same_not_finite"] > 100)
        done = run("compare", "not_finite.pt2", "not_finite.ht", "--no-times", "--min-cosine", "0")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("that is damage", " ".join(done.stdout.split()))
        self.assertIn("NaN or infinite in one model only", done.stderr)

    def test_nested_results_and_shapes(self):
        report = self.report("classifier.pt2", "classifier.ht", "--no-times", "--shapes", "ids:3x5", "--shapes", "ids:4x5")
        self.assertEqual(report["calls"], ["ids:3x5", "ids:4x5"])
        self.assertEqual(report["outputs"][0]["shape"], "float32 [3, 5, 16]")
        self.assertEqual(len(report["outputs"]), 7)

    def test_what_cannot_be_compared(self):
        self.fails(1, "compare", "block.pt2", "classifier.pt2", says=["they take other inputs", "A takes", "ids: int64"])
        self.fails(1, "compare", "drawing.pt2", "drawing.pt2", says=["draws random numbers", "aten::randn_like"])
        self.fails(1, "compare", "block.pt2", "nowhere.ht", says=["nowhere.ht", "no such file"])
        self.fails(2, "compare", "block.pt2", says=["B"])
        self.fails(2, "compare", "block.pt2", "block.ht", "--backend-b", "halfton", says=["--backend-b", 'did you mean "halftone"?'])
        self.fails(2, "compare", "block.pt2", "block.ht", "--tolerance", "-1", says=["--tolerance"])
        self.fails(2, "compare", "block.pt2", "block.ht", "--no-times", "--seconds", "1", says=["--seconds"])


if __name__ == "__main__":
    main()
