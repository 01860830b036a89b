"""The table of served APIs in the README, read from the routes, so that it cannot drift."""

from broker.daemon.routes import routes


def api_table() -> str:
    """Markdown: every API that ApiVersions lists, with its versions."""
    head = "| API | key | versions |\n|---|---|---|\n"
    rows = (
        f"| {route.api.name} | {key} | {route.api.min_version}-{route.api.max_version} |\n"
        for key, route in routes().items()
    )
    return head + "".join(rows)
