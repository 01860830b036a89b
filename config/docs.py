"""The settings as people read them: Markdown tables, and `server.yaml` with every key.

Generated from the declarations; a test and `horolog config docs --check` hold the files to it.
"""

import textwrap

from config.declare import keys_of
from config.foreign.kept import KEPT_OF_THE_BROKER, KEPT_OF_TOPICS
from config.key import ConfigKey
from config.names import BROKER_KEYS, TOPIC_KEYS
from config.resources.client_metrics import CLIENT_METRICS_KEYS
from config.resources.group import GROUP_KEYS, bounds_of
from config.sources import variable_of_key
from config.topic import TopicConfig

_YAML_HEAD = """\
# Every setting of the broker with its default, in Kafka's names. Remove the # before a line to
# change it. Nested keys are understood too (log: {retention: {ms: 1h}}), and so are units: a bare
# number counts the unit in the key's name; 90s, 15m, 12h, 7d, 64KiB, 1GiB are understood.
# Flags (--set key=value) win over environment variables, and these over this file.
# Generated: horolog config docs --write
"""
_BIG = {2**63 - 1: "2^63-1", 2**31 - 1: "2^31-1"}


def topic_table() -> str:
    """Markdown: the settings of a topic."""
    head = "| topic setting | default on the broker | default | allowed | what it does |\n"
    rows = (
        f"| `{key.name}` | {_on_broker(key)} | {_default(key)} | {_allowed(key)} | {key.doc} |\n"
        for key in TOPIC_KEYS
    )
    return head + "|---|---|---|---|---|\n" + "".join(rows)


def broker_table() -> str:
    """Markdown: the settings of the broker that are not defaults of topics."""
    head = "| broker setting | environment | default | allowed | what it does |\n"
    rows = (
        f"| `{key.name}` | `{variable_of_key(key.name)}` | {_default(key)} | {_allowed(key)} "
        f"| {key.doc}{' Changes at run time.' if key.dynamic else ''} |\n"
        for key in BROKER_KEYS
    )
    return head + "|---|---|---|---|---|\n" + "".join(rows)


def group_table() -> str:
    """Markdown: the settings of a group."""
    head = "| group setting | default on the broker | default | between | what it does |\n"
    rows = (
        f"| `{key.name}` | {_on_broker(key)} | {_default(key)} | {_between(key)} | {key.doc} |\n"
        for key in GROUP_KEYS
    )
    return head + "|---|---|---|---|---|\n" + "".join(rows)


def client_metrics_table() -> str:
    """Markdown: the settings of a subscription to the metrics of clients."""
    head = "| setting | default | allowed | what it does |\n|---|---|---|---|\n"
    rows = (
        f"| `{key.name}` | {_default(key)} | {_allowed(key)} | {key.doc} |\n"
        for key in CLIENT_METRICS_KEYS
    )
    return head + "".join(rows)


def kept_table() -> str:
    """Markdown: settings that are taken without effect."""
    head = "| setting | of | default | allowed | why it has no effect |\n|---|---|---|---|---|\n"
    rows = (
        f"| `{key.name}` | {_scope(key)} | {_default(key)} | {_allowed(key)} | {key.doc} |\n"
        for key in (*KEPT_OF_TOPICS, *KEPT_OF_THE_BROKER)
    )
    return head + "".join(rows)


def example_yaml() -> str:
    """The text of `config/server.yaml`."""
    parts = [_YAML_HEAD, "\n# --- the broker\n"]
    parts += [_yaml_entry(key) for key in BROKER_KEYS]
    parts.append("\n# --- what a topic has unless it says otherwise\n")
    parts += [_yaml_entry(key) for key in keys_of(TopicConfig) if key.on_broker]
    return "".join(parts)


def with_section(text: str, name: str, content: str) -> str:
    """`text` with what stands between `<!-- name -->` and `<!-- end of name -->` replaced.

    Without such marks `text` is returned as it is.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    return f"{before}{begin}{content}{end}{after}" if found and closed else text


def _yaml_entry(key: ConfigKey) -> str:
    text = key.default_text
    quoted = f"'{text}'" if not text or ":" in text or "," in text else text
    doc = textwrap.fill(key.doc, 100, initial_indent="# ", subsequent_indent="# ")
    return f"\n{doc}\n#{key.broker_name}: {quoted}\n"


def _scope(key: ConfigKey) -> str:
    scopes = (("topics", key.on_topic), ("the broker", key.on_broker))
    return " and ".join(name for name, spellings in scopes if spellings)


def _on_broker(key: ConfigKey) -> str:
    return f"`{key.broker_name}`" if key.on_broker else "none"


def _between(key: ConfigKey) -> str:
    """The bounds of a group's setting: keys of the broker, else what is allowed at all."""
    bounds = bounds_of(key)
    return _allowed(key) if bounds is None else " and ".join(f"`{each}`" for each in bounds if each)


def _default(key: ConfigKey) -> str:
    if isinstance(key.default, int) and key.default in _BIG:
        return _BIG[key.default]
    return f"`{key.default_text}`" if key.default_text else "empty"


def _allowed(key: ConfigKey) -> str:
    return key.type.bounds().replace("|", "\\|")
