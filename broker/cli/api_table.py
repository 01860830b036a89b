"""The table of served APIs in the README, read from the routes, so that it cannot drift."""

from broker.daemon.routes import served


def api_table() -> str:
    """Markdown: every API that ApiVersions lists, with its versions."""
    head = "| API | key | versions |\n|---|---|---|\n"
    rows = (
        f"| {api.name} | {api.key} | {api.min_version}-{api.max_version} |\n" for api, _ in served()
    )
    return head + "".join(rows)
