"""What the unlabelled rows did, and what is guaranteed, in numbers and in plain sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from safespn.foundation.html_tables import html_table

ACCURACY = "Accuracy"
"""How sentences on accuracy begin."""


@dataclass(frozen=True)
class SafetyReport:
    """The safety of a semi-supervised model against the purely supervised one.

    Parameters
    ----------
    safety : str
        The method that was used.
    objective : str
        What was compared: "generative" (joint log density) or "discriminative" (class posteriors).
    network : str
        What the model consists of, in words.
    n_labelled, n_unlabelled : int
    worst_case : float
        Least gain in log-likelihood over all labellings of the unlabelled rows that the promise covers, in nats.
    density_gain, posterior_loss : float
        The two parts of the worst case, ``density_gain - posterior_loss``: the gain in log density of all rows, and the
        most that the class posteriors can have lost, in nats.
    contrast : float
        Gain at the final soft labels, in nats.
    labelled_gain : float
        Gain on the labelled rows alone, in nats.
    certified : bool
        Whether ``worst_case`` is not negative.
    fallback : bool
        Whether the purely supervised model itself was returned.
    disagreement : float
        Share of the unlabelled rows that the two models predict differently.
    promises : list of str
        What is and what is not guaranteed.
    """

    safety: str
    objective: str
    network: str
    n_labelled: int
    n_unlabelled: int
    worst_case: float
    density_gain: float
    posterior_loss: float
    contrast: float
    labelled_gain: float
    certified: bool
    fallback: bool
    disagreement: float
    promises: list[str]

    def without_unlabelled_rows(self) -> SafetyReport:
        """Return the report of the supervised model itself."""
        report = replace(self, n_unlabelled=0, worst_case=0.0, density_gain=0.0, posterior_loss=0.0, contrast=0.0)
        report = replace(report, labelled_gain=0.0, certified=True, fallback=False, disagreement=0.0)
        return replace(report, promises=supervised_promises())

    def about_most_probable_classes(self) -> SafetyReport:
        """Say that promises on accuracy are those of the most probable classes, which are not what is predicted."""
        changed = [text.replace(ACCURACY, f"{ACCURACY} of the most probable classes", 1) for text in self.promises]
        return replace(self, promises=changed)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain Python values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        rows = [
            (
                "certified, in likelihood",
                ("yes" if self.certified else "no") + (", supervised model" if self.fallback else ""),
            ),
            ("worst case", f"{self.worst_case:+.4g} nats"),
            ("from the density", f"{self.density_gain:+.4g} nats"),
            ("from posteriors, at worst", f"{-self.posterior_loss:+.4g} nats"),
            ("at the soft labels", f"{self.contrast:+.4g} nats"),
            ("on labelled rows", f"{self.labelled_gain:+.4g} nats"),
            ("predictions changed", f"{100 * self.disagreement:.1f} % of {self.n_unlabelled} unlabelled rows"),
        ]
        sentences = "".join(f"<li>{escape(promise)}</li>" for promise in self.promises)
        return f"{html_table((), rows)}<ul>{sentences}</ul>"

    def __str__(self) -> str:
        returned = " (the supervised model was returned)" if self.fallback else ""
        rows = f"{self.n_labelled} labelled rows, {self.n_unlabelled} unlabelled"
        lines = [
            f"Safety report ({self.safety}, {self.objective}; {rows})",
            f"  model                {self.network}",
            f"  certified            {'yes' if self.certified else 'no'}{returned}",
            f"  worst case           {self.worst_case:+.4g} nats",
            f"    from the density   {self.density_gain:+.4g} nats",
            f"    from posteriors    {-self.posterior_loss:+.4g} nats, at worst",
            f"  at the soft labels   {self.contrast:+.4g} nats",
            f"  on labelled rows     {self.labelled_gain:+.4g} nats",
            f"  predictions changed  {100 * self.disagreement:.1f} % of the unlabelled rows",
        ]
        return "\n".join(lines + [f"- {promise}" for promise in self.promises])


def supervised_promises() -> list[str]:
    """What is to say of a model that has seen no unlabelled rows."""
    return ["There were no unlabelled rows: this is the supervised model."]


def promises(
    *,
    safety: str,
    conditional: bool,
    certified: bool,
    fallback: bool,
    disagreement: float,
    n_unlabelled: int,
    confidence: float,
    contrast: float,
) -> list[str]:
    """Say in plain sentences what a fitted model carries."""
    if n_unlabelled == 0:
        return supervised_promises()
    measure = "the conditional likelihood of the classes" if conditional else "the likelihood of rows and classes"
    sentences = []
    if fallback:
        sentences.append(
            "No model was found that met the guarantee (and was no worse on validation rows, if there were any), "
            "so the supervised model was returned."
        )
    elif safety == "none":
        sentences.append("The unlabelled rows were used without any guard: nothing is guaranteed.")
    elif certified and conditional:
        sentences.append(
            f"On these rows {measure} is at least that of the supervised model for every labelling of the unlabelled "
            f"rows whose class proportions lie in the {100 * confidence:g} % interval around the labelled ones; "
            "not for other labellings."
        )
    elif certified:
        sentences.append(
            f"On these rows {measure} is at least that of the supervised model, whatever the true classes of the "
            "unlabelled rows are."
        )
    else:
        side = "above" if contrast >= 0 else "below"
        sentences.append(
            f"At the final soft labels {measure} is {abs(contrast):.4g} nats {side} that of the supervised model; "
            "for other labellings of the unlabelled rows nothing is guaranteed."
        )
    sentences.append(
        f"{ACCURACY} on these unlabelled rows differs from the supervised model's by at most {100 * disagreement:.1f} "
        "points, the share of rows predicted differently."
    )
    sentences.append("Nothing is guaranteed about accuracy beyond that, nor about rows from another population.")
    return sentences
