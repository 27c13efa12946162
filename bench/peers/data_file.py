"""`data_file.py CASE FILE.npz`: the data of a case as a file for `tandem fit`: bytes, to be divided by 255, and class numbers."""
import sys

import numpy as np
import peer

case = peer.CASES[sys.argv[1]]
x, y = peer.data(case, case.steps)
np.savez(sys.argv[2], x=np.rint(x * 255).astype(np.uint8), y=y)
