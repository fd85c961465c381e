"""The certified fit: climb the worst case itself, and return only what has a positive one.

The worst case is a sum of minima over classes. Smoothed by a low temperature tau, its gradient is that of the
complete-data log-likelihood at soft labels ``q_mk`` proportional to ``exp(-c_mk / tau)``, so an EM step in which class
network k sees row m with weight ``q_mk`` climbs it. At the supervised model all gains are zero and these labels say
nothing: the first step takes the model's own posteriors, and the pessimistic labels of every model that was tried
since, kept or not, are averaged into them. That prevents oscillation between model and labels.

Every pass gives the exact worst case of the model that it tries. If that is above the best so far, the model is kept
and the next step starts there, twice as long; if not, the next step starts where the last one did, half as long, with
the soft labels that the failure taught. So the best worst case never falls, and every pass may be the last.

The best worst case is more than safety asks for. In a last stage the model's own soft labels count for half, as long as
the worst case stays above ``KEPT_SHARE`` of the best: a little of the margin buys likelihood.
"""

from __future__ import annotations

from safespn.engine.evidence import SoftLabelUpdateRule
from safespn.rows.lockstep import Passes
from safespn.safety.certified_em import CertifiedEM, Iterate
from safespn.safety.problem import SafeFit

TEMPERATURE = 0.05
FIRST_RATE, RATE = 0.1, 0.2
"""Share of the newest pessimistic labels in the average: before any model was kept, and after."""
SMALLEST_STEP = 2.0**-20
PATIENCE = 5
"""Passes over which the gain is added up before it is judged."""
SMALLEST_GAIN = 0.02
"""The climb ends when the worst case rose by less than this share of itself: the last of it is mostly overfitting."""
RELAXED_PESSIMISM, RELAXED_TEMPERATURE, RELAXED_RATE = 0.5, 0.3, 0.5
FIRST_RELAXED = SoftLabelUpdateRule(RELAXED_PESSIMISM, RELAXED_TEMPERATURE, rate=1.0)
RELAXED_STEPS = 6
RELAXED_SHARE = 4
"""The last stage has at most one in so many of all steps."""
KEPT_SHARE = 0.9
UNGUARDED_TEMPERATURES = (10.0, 3.0, 1.0, 0.3, 0.1)


def certified_passes(
    em: CertifiedEM, *, pessimism: float = 1.0, max_iter: int = 75, tol: float = 1e-5
) -> Passes[SafeFit]:
    """Learn a class network that is at least as likely as the supervised one for every labelling.

    Parameters
    ----------
    em : CertifiedEM
        Makes the steps, starting from the supervised model.
    pessimism : float
        Share of the pessimistic soft labels; the rest are the model's own. At 0 this is plain EM. Below 1 the last
        model is returned, certified or not.
    max_iter : int
        EM steps in all, at most.
    tol : float
        The fit ends early when the worst case per row rises by less than this many nats per step, or hardly any more.
    """
    if pessimism < 1:
        return (yield from _unguarded(em, pessimism, max_iter, tol))
    n_relaxed = min(RELAXED_STEPS, max_iter // RELAXED_SHARE)
    best, converged = yield from _climb(em, max_iter - n_relaxed, tol, FIRST_RELAXED if n_relaxed else None)
    if n_relaxed and best.worst_case > 0:
        best = yield from _relax(em, best, n_relaxed)
    return (yield from em.result(best, converged))


def _climb(
    em: CertifiedEM, n_steps: int, tol: float, rule_after: SoftLabelUpdateRule | None
) -> Passes[tuple[Iterate, bool]]:
    """Maximise the worst case; return the best model and whether its worst case has stopped rising.

    ``rule_after`` is that of the step after the last one, if there is one.
    """
    # The labels of the first step are those of the start, the supervised model's own.
    rule = SoftLabelUpdateRule(1.0, TEMPERATURE, rate=0.0)
    yield from em.start(rule)
    best, size = em.remember(), 1.0
    values = []
    for number in range(1, n_steps + 1):
        is_first = best.worst_case <= 0
        upcoming = SoftLabelUpdateRule(1.0, TEMPERATURE, FIRST_RATE if is_first else RATE)
        value = yield from em.step(rule, upcoming if number < n_steps else rule_after, best, size)
        rule = upcoming
        if value > best.worst_case:
            best, size = em.remember(), min(1.0, 2 * size)
        else:
            size = max(size / 2, SMALLEST_STEP)
        values.append(best.worst_case)
        if number > PATIENCE:
            gain = best.worst_case - values[-1 - PATIENCE]
            if gain < max(PATIENCE * tol * em.problem.total_weight, SMALLEST_GAIN * best.worst_case):
                return best, True
    return best, False


def _relax(em: CertifiedEM, best: Iterate, n_steps: int) -> Passes[Iterate]:
    """Trust the model's own soft labels more, as long as most of the worst case is kept."""
    enough, size = KEPT_SHARE * best.worst_case, 1.0
    em.move_to(best.parameters)
    rule = FIRST_RELAXED
    for number in range(1, n_steps + 1):
        upcoming = SoftLabelUpdateRule(RELAXED_PESSIMISM, RELAXED_TEMPERATURE, RELAXED_RATE)
        value = yield from em.step(rule, upcoming if number < n_steps else None, best, size)
        rule = upcoming
        if value >= enough:
            best = em.remember()
        else:
            size /= 2
    return best


def _unguarded(em: CertifiedEM, pessimism: float, max_iter: int, tol: float) -> Passes[SafeFit]:
    """Make full steps at falling temperatures, whatever becomes of the worst case, and return the last model."""
    n_steps = max(1, max_iter // len(UNGUARDED_TEMPERATURES))
    converged = False

    def rule(temperature: float, n_made: int) -> SoftLabelUpdateRule:
        return SoftLabelUpdateRule(pessimism, temperature, 1.0 if pessimism == 0 else (n_made + 1) ** -0.5)

    yield from em.start(rule(UNGUARDED_TEMPERATURES[0], 0))
    for stage, temperature in enumerate(UNGUARDED_TEMPERATURES):
        last = -float("inf")
        for made in range(1, n_steps + 1):
            number = len(em.history)
            upcoming = [temperature] * (n_steps - made) + list(UNGUARDED_TEMPERATURES[stage + 1 :])
            next_rule = rule(upcoming[0], number + 1) if upcoming else None
            value = yield from em.step(rule(temperature, number), next_rule, em.remember())
            converged = abs(value - last) < tol * em.problem.total_weight
            last = value
            if converged:
                break
    return (yield from em.result(em.remember(), converged))
