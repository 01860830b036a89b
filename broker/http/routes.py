"""All questions that the API answers, subject by subject."""

from broker.http import clock, dirty, openapi, retention, segments, times, topics
from broker.http.route import Route

ROUTES: tuple[Route, ...] = (
    *topics.ROUTES,
    *segments.ROUTES,
    *retention.ROUTES,
    *times.ROUTES,
    *dirty.ROUTES,
    *clock.ROUTES,
    *openapi.ROUTES,
)
