"""What a promotion showed, in Markdown, for the UI, and in a line."""

from collections.abc import Sequence

from backfill_engine.escaping import escape_markdown
from backfill_engine.extras.versions.promotions import Promotion
from backfill_engine.orchestration.instance.ranges import shorten

_SHIFTS_LISTED = 31
_IN_A_LINE = 7


def describe_promotion(promotion: Promotion) -> str:
    """Describes what stood against serving a version, and what came of it."""
    return "\n".join(
        [
            escape_markdown(describe_outcome(promotion)),
            "",
            *_list("missing", promotion.missing),
            *_list("beyond the gates", promotion.beyond),
        ]
    )


def _list(word: str, found: Sequence[str]) -> list[str]:
    return [f"- **{word}**: {escape_markdown(what)}" for what in shorten(found, _SHIFTS_LISTED)]


def describe_outcome(promotion: Promotion) -> str:
    """Says in a line what is served now."""
    table, version = promotion.table, promotion.version
    if promotion.is_served:
        return f"{table} serves {version} already"
    if promotion.published is not None:
        return (
            f"{table} serves {version}, as version {promotion.published}: {promotion.partitions} "
            f"partitions in one commit, instead of {promotion.before}"
        )
    if promotion.may_go:
        return (
            f"{table} may serve {version}: nothing stands against it; it serves {promotion.before}"
        )
    return f"{table} still serves {promotion.before or 'nothing'}"


def describe_refusal(promotion: Promotion) -> str:
    """Says in a line why a version is not served, and what helps."""
    if promotion.missing:
        why, cure = promotion.missing, "publish what is missing, then repeat it"
    else:
        why = promotion.beyond
        cure = "say why that is right with --accept, or widen the gates"
    listed = "; ".join(shorten(why, _IN_A_LINE))
    return f"{describe_outcome(promotion)}, and not {promotion.version}: {listed}: {cure}"
