"""All questions that the API answers, subject by subject."""

from typing import Any

from broker.http.port import openapi
from broker.http.port.route import HttpRoute
from broker.http.resources import (
    clock,
    compaction,
    fleet,
    group_reset,
    groups,
    offenders,
    redrive,
    retention,
    scrub,
    segments,
    settings,
    share_groups,
    share_records,
    starts,
    tier,
    time_queries,
    topics,
    transactions,
)
from broker.http.timeline import queues, time_lookup, timeline

ROUTES: tuple[HttpRoute[Any], ...] = (
    *topics.ROUTES,
    *fleet.ROUTES,
    *segments.ROUTES,
    *retention.ROUTES,
    *compaction.ROUTES,
    *time_queries.ROUTES,
    *offenders.ROUTES,
    *groups.ROUTES,
    *group_reset.ROUTES,
    *share_groups.ROUTES,
    *share_records.ROUTES,
    *redrive.ROUTES,
    *transactions.ROUTES,
    *timeline.ROUTES,
    *queues.ROUTES,
    *time_lookup.ROUTES,
    *clock.ROUTES,
    *settings.ROUTES,
    *scrub.ROUTES,
    *starts.ROUTES,
    *tier.ROUTES,
    openapi.route(lambda: ROUTES),
)
