"""All questions that the API answers, subject by subject."""

from broker.http import clock, openapi, retention, segments, topics
from broker.http.route import Route

ROUTES: tuple[Route, ...] = (
    *topics.ROUTES,
    *segments.ROUTES,
    *retention.ROUTES,
    *clock.ROUTES,
    *openapi.ROUTES,
)
