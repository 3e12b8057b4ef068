"""Compare stored outputs with fresh ones as a reader would see them.

Numbers are compared to six significant digits, because another BLAS changes
the last bits of a float; pictures are compared point by point, and a few
points may differ for the same reason. What a reader could notice still fails.
"""

import base64
import io
import re

import numpy as np
from matplotlib.image import imread
from nbval.plugin import IPyNbCell

# Neither `x2.5` nor `1.2.3` is a float, hence the conditions on both sides.
FLOAT = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?(?!\w|\.\d)"
)


def rounded(text):
    """The text with its floats at six significant digits, spaces made single.

    Arrays are padded to the width of their longest number, so a number that
    loses digits moves the spaces; line breaks stay.
    """
    if not isinstance(text, str):
        return text
    text = FLOAT.sub(lambda match: f"{float(match[0]) + 0.0:.6g}", text)
    return re.sub(r"[ \t]+", " ", text)


_sanitize = IPyNbCell.sanitize
IPyNbCell.sanitize = lambda self, text: rounded(_sanitize(self, text))


def pictures(outputs):
    """The pictures among a cell's outputs, as arrays of numbers in [0, 1]."""
    data = [output.get("data", {}).get("image/png") for output in outputs]
    return [imread(io.BytesIO(base64.b64decode(png))) for png in data if png]


def same(a, b):
    """Whether all points but one in ten thousand look alike."""
    return a.shape == b.shape and (np.abs(a - b).max(axis=2) > 0.25).mean() <= 1e-4


_compare = IPyNbCell.compare_outputs


def compare_outputs(self, test, ref, skip_compare=None):
    """nbval's own comparison, and that of the pictures, which it leaves out."""
    if not _compare(self, test, ref, skip_compare):
        return False
    fresh, stored = pictures(test), pictures(ref)
    if len(fresh) == len(stored) and all(map(same, fresh, stored)):
        return True
    self.comparison_traceback.append("The stored picture is not what the cell draws.")
    return False


IPyNbCell.compare_outputs = compare_outputs
