"""The comparison must see every kind of difference, or the zoo proves nothing."""

import unittest

import torch

from compare import differences


def found(got, want, tolerance: float = 0.0) -> list[str]:
    return differences({"output_0": got}, {"output_0": want}, tolerance)


class Differences(unittest.TestCase):
    def test_equal_tensors_have_none(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.complex64, torch.uint8):
            value = torch.tensor([0, 1, 1]).to(dtype)
            self.assertEqual(found(value.clone(), value), [], dtype)

    def test_one_bit_is_seen_unless_a_tolerance_allows_it(self):
        want = torch.tensor([1.0, 2.0])
        got = torch.nextafter(want, torch.tensor(9.0))
        self.assertIn("differs by up to", found(got, want)[0])
        self.assertEqual(found(got, want, 1e-6), [])
        self.assertNotEqual(found(want + 1e-3, want, 1e-5), [])

    def test_tolerance_does_not_cover_integers(self):
        self.assertNotEqual(found(torch.tensor([100001]), torch.tensor([100000]), 1e-1), [])

    def test_signs_of_zero_and_nan(self):
        zero, nan = torch.tensor([0.0]), torch.tensor([torch.nan])
        self.assertNotEqual(found(-zero, zero), [])
        self.assertEqual(found(nan, nan.clone()), [])
        self.assertNotEqual(found(zero, nan, 1.0), [])
        self.assertNotEqual(found(torch.tensor([torch.inf]), torch.tensor([-torch.inf]), 1.0), [])

    def test_dtype_and_shape(self):
        value = torch.zeros(2, 3)
        self.assertIn("torch.float64", found(value.double(), value)[0])
        self.assertIn("[3, 2]", found(value.t(), value)[0])
        self.assertNotEqual(found(torch.zeros(1), torch.zeros(())), [])

    def test_missing_and_unexpected_names(self):
        value = torch.zeros(1)
        problems = differences({"a": value}, {"b": value}, 0.0)
        self.assertEqual(problems, ["b is missing", "a is not expected"])

    def test_empty_tensors_are_equal(self):
        self.assertEqual(found(torch.zeros(0, 4), torch.zeros(0, 4)), [])


if __name__ == "__main__":
    unittest.main()
