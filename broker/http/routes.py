"""All questions that the API answers, subject by subject."""

from broker.http import clock, openapi, retention, segments, times, topics
from broker.http.route import Route

ROUTES: tuple[Route, ...] = (
    *topics.ROUTES,
    *segments.ROUTES,
    *retention.ROUTES,
    *times.ROUTES,
    *clock.ROUTES,
    *openapi.ROUTES,
)
