"""All questions that the API answers, subject by subject."""

from broker.http import (
    clock,
    compaction,
    dirty,
    group_reset,
    groups,
    landing,
    openapi,
    retention,
    scrub,
    segments,
    settings,
    starts,
    timeline,
    times,
    topics,
    transactions,
)
from broker.http.route import Route

ROUTES: tuple[Route, ...] = (
    *topics.ROUTES,
    *segments.ROUTES,
    *retention.ROUTES,
    *compaction.ROUTES,
    *times.ROUTES,
    *dirty.ROUTES,
    *groups.ROUTES,
    *group_reset.ROUTES,
    *transactions.ROUTES,
    *timeline.ROUTES,
    *landing.ROUTES,
    *clock.ROUTES,
    *settings.ROUTES,
    *scrub.ROUTES,
    *starts.ROUTES,
    *openapi.ROUTES,
)
