"""The certified fit: maximise the worst case itself, smoothed, and keep only models whose exact worst case is positive.

The smoothed worst case replaces every minimum over classes by a soft one of temperature tau. Its gradient is that of
the complete-data log-likelihood at soft labels ``q_mk`` proportional to ``exp(-c_mk / tau)``, so an EM step in which
class network k sees row m with weight ``q_mk`` climbs it. Soft labels are averaged over iterations, which keeps the two
players from chasing each other, and the temperature falls by stages. The exact worst case of every iterate is known
from one pass; the best one is kept, and the supervised model is returned when none is positive.

The best worst case is more than safety asks for. In a last stage the model's own soft labels get a growing share, as
long as the worst case stays above ``KEPT_SHARE`` of the best: a little of the margin buys likelihood.
"""

from __future__ import annotations

from safespn.engine.evidence import ResponseRule
from safespn.safety.climb import Climber, Iterate
from safespn.safety.problem import SafeFit

TEMPERATURES = (10.0, 3.0, 1.0, 0.3, 0.1)
RELAXED_PESSIMISM = (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0)
RELAXED_TEMPERATURE = 0.3
RELAXED_STEPS = 4
KEPT_SHARE = 0.9


def fit_certified(climber: Climber, *, pessimism: float = 1.0, max_iter: int = 75, tol: float = 1e-5) -> SafeFit:
    """Learn a class network that is at least as likely as the supervised one for every labelling.

    Parameters
    ----------
    climber : Climber
        Makes the steps; it stands at the supervised model.
    pessimism : float
        Share of the pessimistic soft labels; the rest are the model's own. At 0 this is plain EM. Below 1 the last
        model is returned, certified or not.
    max_iter : int
        EM steps in all, over the stages of falling temperature; the last stage adds a few.
    tol : float
        A stage ends early when the worst case per row rises by less than this many nats.
    """
    supervised = climber.position
    best = supervised
    n_steps = max(1, max_iter // len(TEMPERATURES))
    converged = False

    def rule(temperature: float, n_made: int) -> ResponseRule:
        return ResponseRule(pessimism, temperature, 1.0 if pessimism == 0 else (n_made + 1) ** -0.5)

    for stage, temperature in enumerate(TEMPERATURES):
        last = -float("inf")
        for made in range(1, n_steps + 1):
            number = len(climber.history)
            upcoming = [temperature] * (n_steps - made) + list(TEMPERATURES[stage + 1 :])
            guess = rule(upcoming[0], number + 1) if upcoming else None
            value = climber.step(rule(temperature, number), guess, best)
            if value > best.worst_case or pessimism < 1:
                best = climber.position
            converged = abs(value - last) < tol * climber.problem.total_weight
            last = value
            if converged:
                break
    if pessimism == 1 and best is not supervised:
        best = _relax(climber, best)
    return climber.result(best, converged)


def _relax(climber: Climber, best: Iterate) -> Iterate:
    """Trust the model's own soft labels more and more, as long as most of the worst case is kept."""
    enough = KEPT_SHARE * best.worst_case
    climber.move_to(best.parameters)
    # The first step forgets where the soft labels were.
    rules = [
        ResponseRule(pessimism, RELAXED_TEMPERATURE, 1.0 if pessimism == RELAXED_PESSIMISM[0] and step == 0 else 0.5)
        for pessimism in RELAXED_PESSIMISM
        for step in range(RELAXED_STEPS)
    ]
    for number, (rule, guess) in enumerate(zip(rules, [*rules[1:], None], strict=True), start=1):
        value = climber.step(rule, guess, best)
        if number % RELAXED_STEPS == 0:
            if not value >= enough:
                break
            best = climber.position
    return best
