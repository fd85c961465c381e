"""Memory of a likelihood over 1,000,000 x 32 rows beyond the input: growth of the peak resident size, in a new process.

The kernels are warm (a call on a few rows comes first), the table is in memory before the first reading, and the
result of 8 MB is part of what is counted. The peak is Linux's VmHWM, reset just before the call: ``ru_maxrss`` would
not do, as a new process inherits it from the one that started it.
"""

from __future__ import annotations

from pathlib import Path

from measure import Figure, in_new_process, print_section

CODE = """
import re, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import numpy as np
from measure import use_compiled_pass
from networks import learnspn_tree
use_compiled_pass()
spn = learnspn_tree()
table = np.random.default_rng(0).standard_normal((1_000_000, 32))
spn.log_likelihood(table[:1000], n_jobs=1)
def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
value = spn.log_likelihood(table, n_jobs={n_jobs})
print((kilobytes("VmHWM") - before) / 1024)
"""


def main() -> None:
    figures = []
    for how, n_jobs in (("one thread", 1), ("all cores", -1)):
        megabytes = float(in_new_process(CODE.format(folder=str(Path(__file__).parent), n_jobs=n_jobs)))
        figures.append(Figure(f"beyond the input, {how}", "< 200 MB", f"{megabytes:.0f} MB", megabytes < 200))
    print_section("memory: likelihood of 1,000,000 x 32 rows (input 244 MB)", figures)


if __name__ == "__main__":
    main()
