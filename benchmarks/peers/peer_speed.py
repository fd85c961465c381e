"""Seconds a peer takes to learn a structure; with the peer's Python: peer_speed.py deeprob|spflow FILE MIN_ROWS."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

peer, path, min_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = np.load(path).astype(np.float32)
if peer == "deeprob":
    from deeprob.spn.learning.wrappers import learn_estimator
    from deeprob.spn.structure.leaf import Gaussian

    start = time.process_time()
    learn_estimator(table, [Gaussian] * table.shape[1], min_rows_slice=min_rows, random_state=0, verbose=False)
else:
    import torch
    from spflow.learn import learn_spn
    from spflow.meta import Scope
    from spflow.modules.leaves import Normal

    start = time.process_time()
    scope = Scope(list(range(table.shape[1])))
    learn_spn(torch.tensor(table), leaf_modules=[Normal(scope=scope)], min_instances_slice=min_rows)
print(json.dumps(time.process_time() - start))
