#!/usr/bin/env python3
"""make_digits.py OUT.safetensors: scikit-learn's handwritten digits (1,797 images of 8 x 8, values 0 to 16) as a small file.

Run once, by hand, where scikit-learn is installed; the file is kept in the repository.
"""
import sys

import numpy as np
from safetensors.numpy import save_file
from sklearn.datasets import load_digits

digits = load_digits()
save_file({"images": digits.data.astype(np.uint8), "labels": digits.target.astype(np.uint8)}, sys.argv[1],
          metadata={"source": "scikit-learn load_digits: Optical Recognition of Handwritten Digits (UCI, CC BY 4.0)"})
