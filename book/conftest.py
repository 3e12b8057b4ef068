"""Compare the numbers in stored outputs to six significant digits.

Another BLAS changes the last bits of a float, and so would fail a comparison
of the printed text; a change that a reader could notice still fails.
"""

import re

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
