"""Mean test log-likelihoods of LearnSPN in deeprob-kit (defaults, Gaussian leaves); run with deeprob-kit's Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from deeprob.spn.algorithms.inference import log_likelihood
from deeprob.spn.learning.wrappers import learn_estimator
from deeprob.spn.structure.leaf import Gaussian

from tables import NAMES, splits

results = {}
for name in NAMES:
    results[name] = []
    for seed, (train, test, _, _) in enumerate(splits(name)):
        leaves = [Gaussian] * train.shape[1]
        root = learn_estimator(train.astype(np.float32), leaves, random_state=seed, verbose=False)
        results[name].append(float(np.mean(log_likelihood(root, test.astype(np.float32)))))
print(json.dumps(results))
