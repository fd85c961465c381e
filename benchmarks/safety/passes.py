"""How far the worst case of a certified fit has risen after some passes, against the schedule of before.

``passes.py [--trials 1] [--budgets 20 100] [--only iris] [--jobs 2]``: on the tables of the wide comparison
(SAFESPN_SUITE) and of the paper (SAFESPN_DATA), every class network that a default fit learns, and a LearnSPN network
of each class, is fitted twice from the same supervised model: as it is now, and by stages of falling temperature (10,
3, 1, 0.3, 0.1; 75 passes, then up to 28 that trust the model's own labels more), of which the best model is returned.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from safespn import SafeSPNClassifier, datasets
from safespn.engine import passes
from safespn.engine.bound import bind
from safespn.engine.evidence import SoftLabelUpdateRule
from safespn.experiments.protocol import draw_trial
from safespn.experiments.suite_protocol import CLIPPED_AT, draw_suite_trial, load_table, table_names
from safespn.foundation.posteriors import log_posterior
from safespn.rows.lockstep import Passes
from safespn.safety import method
from safespn.safety.certified import KEPT_SHARE, certified_passes
from safespn.safety.certified_em import CertifiedEM, Iterate
from safespn.safety.problem import SafeFit

TEMPERATURES, STEPS_PER_STAGE, TOLERANCE = (10.0, 3.0, 1.0, 0.3, 0.1), 15, 1e-5
RELAXED_PESSIMISM, RELAXED_TEMPERATURE, RELAXED_STEPS = (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0), 0.3, 4
NETWORKS: dict[str, dict[str, Any]] = {"committee": {}, "deep": {"network": "deep", "univariate": True}}
Schedule = Callable[..., Passes[SafeFit]]


def falling_temperatures(em: CertifiedEM, **options: float) -> Passes[SafeFit]:
    """Make full steps at soft labels that are averaged over all steps, by stages; return the best model."""

    def rule(temperature: float, n_made: int) -> SoftLabelUpdateRule:
        return SoftLabelUpdateRule(1.0, temperature, (n_made + 1) ** -0.5)

    yield from em.start(rule(TEMPERATURES[0], 0))
    best = em.remember()
    for temperature in TEMPERATURES:
        last = -float("inf")
        for _ in range(STEPS_PER_STAGE):
            value = yield from em.step(rule(temperature, len(em.history)), None, em.remember())
            best = em.remember() if value > best.worst_case else best
            if abs(value - last) < TOLERANCE * em.problem.total_weight:
                break
            last = value
    if best.worst_case > 0:
        best = yield from _relax(em, best)
    return (yield from em.result(best, True))


def _relax(em: CertifiedEM, best: Iterate) -> Passes[Iterate]:
    enough = KEPT_SHARE * best.worst_case
    em.move_to(best.parameters)
    for stage, pessimism in enumerate(RELAXED_PESSIMISM):
        value = 0.0
        for step in range(RELAXED_STEPS):
            rate = 1.0 if stage == step == 0 else 0.5
            rule = SoftLabelUpdateRule(pessimism, RELAXED_TEMPERATURE, rate)
            value = yield from em.step(rule, None, em.remember())
        if not value >= enough:
            break
        best = em.remember()
    return best


class Figures(NamedTuple):
    """What became of one network: worst cases after some passes, and scores on test rows over its supervised model."""

    after_3: float
    after_10: float
    in_the_end: float
    n_passes: float
    log_likelihood: float
    log_loss: float


def fit(train: Any, labels: Any, test: Any, classes: Any, settings: Any, schedule: Schedule) -> list[Figures]:
    """Fit with a schedule; return figures of every network that the certified step was given, in their order."""
    ems: list[CertifiedEM] = []
    made: dict[int, SafeFit] = {}

    def recorded(em: CertifiedEM, **options: Any) -> Passes[SafeFit]:
        number = len(ems)
        ems.append(em)
        made[number] = yield from schedule(em, **options)
        return made[number]

    original, method.certified_passes = method.certified_passes, recorded
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = SafeSPNClassifier(**settings).fit(train, labels)
    finally:
        method.certified_passes = original
    table = classifier._check_table(test, reset=False)[0]
    codes = np.searchsorted(classifier.classes_, classes)
    return [_figures(em, made[number], table, codes) for number, em in enumerate(ems)]


def _figures(em: CertifiedEM, fit: SafeFit, table: Any, codes: Any) -> Figures:
    best = np.maximum.accumulate([0.0, *(entry["worst_case"] for entry in em.history)])
    scores = []
    for parameters in (em.supervised, fit.parameters):
        joint = passes.log_joint(bind(em.problem.structure, parameters), table)
        of_class = np.arange(len(codes)), codes
        loss = -log_posterior(joint)[of_class].clip(np.log(CLIPPED_AT))
        scores.append([joint[of_class].mean(), loss.mean()])
    after_3, after_10 = (float(best[min(n, len(best) - 1)]) for n in (3, 10))
    return Figures(after_3, after_10, float(best[-1]), len(best) - 1.0, *np.subtract(scores[1], scores[0]).tolist())


def compare(train: Any, labels: Any, test: Any, classes: Any, seed: int) -> list[tuple[Figures, Figures]]:
    """Figures of every network, by both schedules."""
    pairs = []
    for settings in NETWORKS.values():
        before, now = (
            fit(train, labels, test, classes, {**settings, "random_state": seed}, schedule)
            for schedule in (falling_temperatures, certified_passes)
        )
        pairs += list(zip(before, now, strict=True))
    return pairs


def cases(options: argparse.Namespace) -> list[tuple[str, int, int]]:
    suite = os.environ.get("SAFESPN_SUITE")
    names = [*(table_names(suite) if suite else ()), *(datasets.NAMES if "SAFESPN_DATA" in os.environ else ())]
    chosen = [name for name in names if options.only is None or name in options.only]
    budgets = {name: options.budgets if suite and name in table_names(suite) else [0] for name in chosen}
    return [(name, budget, trial) for name in chosen for budget in budgets[name] for trial in range(options.trials)]


def run(name: str, budget: int, trial: int) -> list[tuple[Figures, Figures]]:
    if budget == 0:
        values = datasets.load(name)
        drawn = draw_trial(values.data, np.unique(values.target, return_inverse=True)[1], trial)
        rest = np.concatenate([drawn.validation, drawn.unlabelled])
        labels = np.concatenate([drawn.labelled_classes, np.full(len(rest), -1)])
        return compare(np.concatenate([drawn.labelled, rest]), labels, drawn.test, drawn.test_classes, trial)
    table = load_table(os.environ["SAFESPN_SUITE"], name)
    of_suite = draw_suite_trial(table, budget, trial)
    if of_suite is None:
        return []
    train, test = (table.features.iloc[rows] for rows in (of_suite.train, of_suite.test))
    return compare(train, of_suite.labels, test, table.codes[of_suite.test], trial)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--budgets", nargs="+", type=int, default=[20, 100])
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    asked = cases(options)
    results = Parallel(n_jobs=options.jobs)(delayed(run)(*case) for case in asked)
    of_before, of_now = zip(*[pair for pairs in results for pair in pairs], strict=True)
    before, now = (Figures(*np.array(figures).T) for figures in (of_before, of_now))
    positive = before.in_the_end > 0
    print(f"{len(positive)} networks of {len(asked)} draws; {positive.sum()} end with W > 0 before\n")
    print("| | before | now |\n|---|---|---|")

    def row(title: str, of: Callable[[Figures], str]) -> None:
        print(f"| {title} | {of(before)} | {of(now)} |")

    def relative(worst_case: Any) -> str:
        shares = worst_case[positive] / before.in_the_end[positive]
        return f"{shares.mean():.2f}; {np.median(shares):.2f}"

    row("W > 0 in the end", lambda each: f"{(each.in_the_end > 0).sum()}")
    row("W > 0 after 3 passes, of those with W > 0 before", lambda each: f"{(each.after_3[positive] > 0).mean():.1%}")
    row("W after 3 passes, relative to before in the end: mean; median", lambda each: relative(each.after_3))
    row("W after 10 passes, likewise", lambda each: relative(each.after_10))
    row("W in the end, likewise", lambda each: relative(each.in_the_end))
    row("passes, mean", lambda each: f"{each.n_passes.mean():.0f}")
    row("test log p(x, y) per row over the supervised model: mean", lambda each: f"{each.log_likelihood.mean():+.3f}")
    row("the same: median", lambda each: f"{np.median(each.log_likelihood):+.4f}")
    row("test log loss against the supervised model: mean", lambda each: f"{each.log_loss.mean():+.4f}")


if __name__ == "__main__":
    main()
