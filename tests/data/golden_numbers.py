"""Numbers as C's float constants, for the scripts that write golden headers."""
import numpy as np


def number(value):
    text = f"{float(value):.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def numbers(values):
    return ", ".join(number(value) for value in np.asarray(values).ravel())
