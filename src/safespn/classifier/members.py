"""The members of a committee, as notebooks show them."""

from __future__ import annotations

from safespn.class_networks.committee import Member
from safespn.foundation.html_tables import html_table


class Members(tuple[Member, ...]):
    """A tuple of members; notebooks show it as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_table(
            ("family", "weight", "temperature", "held-out log loss"),
            [
                (each.family, f"{each.weight:.3f}", f"{each.temperature:.2f}", f"{each.log_loss:.3f} nats")
                for each in self
            ],
        )
