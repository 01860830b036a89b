"""Questions about the levels of features."""

from typing import Any

from protocol.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.questions.question import Question


def raised(*levels: tuple[str, int], kind: int = 1, version: int = 2, **how: Any) -> Question:
    """Asks whether features may have these levels; version 0 does it, others only ask."""
    updates = [
        FeatureUpdateKey(
            feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind > 1
        )
        for name, level in levels
    ]
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=version > 0)
    what = f"features v{version} kind {kind}: {levels}"
    return Question(what, version, lambda _: request, own_words=True, **how)
